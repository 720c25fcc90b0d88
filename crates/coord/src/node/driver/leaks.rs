//! Audit of leaked slots: held for this node in the store, and tracked by no lease.
//!
//! A network can keep a claim, or a copy of it, and deliver it long after its result. The store may
//! then grant a claim that it first rejected, to a node that no longer waits for it. Nothing would
//! ever be minted from such a slot, and no other member would get it for as long as this node
//! lives. So a node that has reason to doubt lists the slots that the store holds for it, less and
//! less often. A claim that the network kept for some time is found before the same time has passed
//! again.

use std::sync::Arc;

use snowmint_core::Clock;

use super::state::{Completion, Driver, Stage};
use crate::error::{Result, Verb};
use crate::ids::Incarnation;
use crate::machine::{Now, WindowMachine};
use crate::model::lease::Release;
use crate::model::pool::is_worker_pool;
use crate::model::slot::SlotInfo;

impl Driver {
    pub(super) fn poll_leaks(&mut self, now: Now) {
        let Stage::In { member, .. } = &self.stage else { return };
        if self.leaks.next_poll_ms(now) != Some(0) {
            return;
        }
        self.leaks.busy = true;
        let (core, member) = (Arc::clone(&self.core), member.incarnation);
        self.tasks.spawn(async move {
            let ctx = &core.ctx;
            let listed = ctx.store.workers(ctx.clock.unix_ms());
            Completion::Listed(member, ctx.store_call(Verb::Workers, listed).await)
        });
    }

    pub(super) fn listed(&mut self, now: Now, member: Incarnation, result: Result<Vec<SlotInfo>>) {
        if !self.leaks.listed(now, result.is_ok()) || !self.is_member(member) {
            return;
        }
        let listed = result.unwrap_or_default().into_iter();
        let ours = listed.filter(|slot| slot.holder == Some(member) && is_worker_pool(&slot.pool));
        let leaks: Vec<_> = ours.filter(|slot| !self.knows(slot)).map(unused).collect();
        for leaked in &leaks {
            let (pool, slot) = (&leaked.pool, leaked.slot);
            tracing::warn!(%pool, slot, "releasing a worker number of a late claim");
        }
        self.add_leaked(leaks);
    }

    /// Returns whether a lease or a pending release has this slot.
    fn knows(&self, slot: &SlotInfo) -> bool {
        let is_it =
            |pool: &str, number, term| (pool, number, term) == (&*slot.pool, slot.slot, slot.term);
        let mut windows = self.leases.values().flat_map(|held| held.machine.windows());
        let mut pending_releases = self.pending_releases.all();
        windows.any(|window: &WindowMachine| {
            let lease = window.lease();
            is_it(&lease.pool, lease.slot, lease.term)
        }) || pending_releases.any(|release| is_it(&release.pool, release.slot, release.term))
    }
}

fn unused(slot: SlotInfo) -> Release {
    let SlotInfo { pool, slot, term, holder, mark, .. } = slot;
    Release { pool, slot, term, holder, mark, from: None }
}
