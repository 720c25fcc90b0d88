//! Processes that know a store by its count of writes alone: they open no source but one of counters
//! or of global order.

use std::sync::atomic::Ordering;

use super::machine::Machine;
use super::monotonicity::OrderedRequest;
use super::world::World;
use crate::history::Checked;

/// Time in milliseconds for which a request waits: longer than the leases of killed processes.
const WITHIN_MS: u64 = 40_000;

impl World {
    /// Kills such a process right after it has returned numbers, and restores the store to the state
    /// just before. The next process with its journal must reject the store.
    pub(super) async fn lose_counts(&mut self) -> Checked {
        let remembers = |machine: &Machine| !machine.forgets && !machine.set_aside;
        let Some(index) = self.pick(remembers) else { return Ok(()) };
        for other in 0..self.machines.len() {
            self.kill(other).await;
        }
        self.machines[index].conditions.calm();
        self.link.up.store(true, Ordering::SeqCst);
        self.end_transactions();
        let request = self.request();
        self.machines[index].opens_only = Some(request.name());
        self.start(index);
        self.come_up(index).await;
        self.back_up().await;
        let has_counted = self.counts(index, request).await;
        self.kill(index).await;
        self.machines[index].opens_only = None;
        if has_counted {
            self.restore_without_counts(index).await?;
        }
        Ok(())
    }

    /// Returns whether the process returned a number, as soon as it did.
    async fn counts(&mut self, index: usize, request: OrderedRequest) -> bool {
        let Some(source) = self.rising_source(index, request) else { return false };
        let counting = tokio::spawn(async move { request.numbers(&source, 1, WITHIN_MS).await });
        while !counting.is_finished() {
            self.pass(20).await;
        }
        counting.await.unwrap().is_ok()
    }

    async fn restore_without_counts(&mut self, index: usize) -> Checked {
        let Some(content) = self.backup_content() else { return Ok(()) };
        let before = self.store.identity().await.unwrap();
        self.store.restore(content);
        self.link.cut();
        self.leads_astray();
        self.must_not_start(index, "a store that lacks its numbers").await?;
        self.oracle.set_astray(false);
        self.move_forward(&before, true).await;
        self.count("restored to before numbers of a counter");
        Ok(())
    }
}
