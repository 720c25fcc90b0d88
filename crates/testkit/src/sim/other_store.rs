//! The address of the store leads to another store, or to a lagging replica, for a while.

use std::sync::atomic::Ordering;

use snowmint_coord::FastForward;

use super::machine::{Machine, Process};
use super::store::StoreContent;
use super::world::World;
use crate::history::{Checked, Violation};

impl World {
    /// Leads the address to another store of the same namespace, which has counted further, and
    /// later back.
    pub(super) async fn swap(&mut self) -> Checked {
        let copied = self.copied().await?;
        // A process that has met no store would take the other for its own, which lies outside the
        // promise.
        for index in 0..self.machines.len() {
            self.look(index).await;
            let has_met = match &self.machines[index].process {
                Process::Running(node, _) => node.store().seen().is_some(),
                Process::Starting(_) | Process::Stopped => false,
            };
            if !has_met {
                self.kill(index).await;
            }
        }
        let own = self.store.backup();
        let other = self.another(copied).await;
        self.lead_to(other);
        self.leads_astray();
        self.count("the address leads to another store");
        let other_store_ms = self.rng.between(100, 60_000);
        self.all_try(other_store_ms).await?;
        let knows = |machine: &Machine| {
            !machine.set_aside && machine.writes_seen().is_some_and(|seen| seen > 0)
        };
        if let Some(index) = self.pick(knows) {
            self.must_not_start(index, "another store").await?;
            self.count("another store is refused");
        }
        self.lead_to(own);
        self.oracle.set_astray(false);
        Ok(())
    }

    /// Copies a store of keys some time before the swap: many keys have the same version in the
    /// copy.
    async fn copied(&mut self) -> Result<Option<StoreContent>, Violation> {
        if !self.kind.is_keyed() || self.rng.percent(50) {
            return Ok(None);
        }
        let copied = self.store.backup();
        let ago_ms = self.rng.between(1, 30_000);
        self.all_try(ago_ms).await?;
        self.count("the other store is a copy");
        Ok(Some(copied))
    }

    /// Makes another store, or moves the copy forward under a new identity.
    async fn another(&mut self, copied: Option<StoreContent>) -> StoreContent {
        let server = self.another_server();
        let store = self.kind.make(self.store_clock.as_ref(), server);
        let new_identity = copied.is_some();
        match copied {
            Some(copied) => store.restore(copied.on_server(server)),
            None => self.define(&*store).await,
        }
        let writes = self.store.identity().await.unwrap().writes;
        let writes_at_least = writes + self.rng.between(1, 1_000);
        let forward = FastForward { writes_at_least, new_identity, ..FastForward::default() };
        store.fast_forward(&forward).await.unwrap();
        store.backup()
    }

    fn another_server(&mut self) -> u64 {
        self.servers += 1;
        self.servers
    }

    /// Leads the address to this content; no connection lasts.
    fn lead_to(&self, content: StoreContent) {
        self.link.cut();
        self.store.restore(content);
    }

    /// Promotes a replica that lacks the newest writes. Nothing is written there. In the end the
    /// first server returns with all that it had, or an operator moves the replica forward.
    pub(super) async fn fail_over(&mut self) -> Checked {
        if !self.kind.fails_over() {
            return Ok(());
        }
        let replica = self.store.backup().on_server(self.another_server());
        let lags_ms = self.rng.between(1, 5_000);
        self.all_try(lags_ms).await?;
        let (first, before) = (self.store.backup(), self.store.identity().await.unwrap());
        self.lead_to(replica);
        self.link.replica.store(true, Ordering::SeqCst);
        self.leads_astray();
        let other_store_ms = self.rng.between(100, 60_000);
        self.all_try(other_store_ms).await?;
        self.link.replica.store(false, Ordering::SeqCst);
        if self.rng.percent(50) {
            self.lead_to(first);
            self.count("a failover to a replica that lags, and back");
        } else {
            self.move_forward(&before, false).await;
            self.count("a failover to a replica that lags, moved forward");
        }
        self.oracle.set_astray(false);
        Ok(())
    }

    /// Lets time pass, while every awake process mints again and again.
    pub(super) async fn all_try(&mut self, ms: u64) -> Checked {
        let end_ms = self.time.now_ms() + ms;
        while self.time.now_ms() < end_ms {
            let step_ms = self.rng.between(50, 2_000).min(end_ms - self.time.now_ms());
            self.pass(step_ms).await;
            for index in 0..self.machines.len() {
                self.mint(index).await?;
                if self.checks_order() {
                    self.rise(index).await?;
                }
            }
            self.check_forwarded().await?;
        }
        Ok(())
    }
}
