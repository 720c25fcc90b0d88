//! Audit of leaked slots: held for this node in the store, and tracked by no lease.
//!
//! A network can keep a claim, or a copy of it, and deliver it long after its result. The store may
//! then grant a claim that it first rejected, to a node that no longer waits for it. Nothing would
//! ever be minted from such a slot, and no other member would get it for as long as this node
//! lives. So a node that has reason to doubt lists the slots that the store holds for it, less and
//! less often. A claim that the network kept for some time is found before the same time has passed
//! again.

use std::sync::Arc;

use snowmint_core::{Clock, ElapsedMillis};

use super::{Completion, Driver, Stage};
use crate::error::{Result, Verb};
use crate::ids::Incarnation;
use crate::machine::{Now, WindowMachine};
use crate::model::lease::Release;
use crate::model::pool::is_worker_pool;
use crate::model::slot::SlotInfo;

/// Wait after the first reason to doubt, plus a spread: many nodes that start at the same time have
/// it at the same time.
const FIRST_MS: u64 = 10_000;
const SPREAD_MS: u64 = 20_000;
/// Longest wait after a further reason.
const AGAIN_MS: u64 = 30_000;
/// Longest time for which a network is assumed to keep a message.
const LAST_MS: u64 = 3_600_000;
/// Wait after a list that is of no use, because a claim was in flight.
const RETRY_MS: u64 = 1_000;

/// Schedule of the audit.
#[derive(Debug, Default)]
pub(super) struct LeakAudit {
    /// Claims in flight: the slots that they take are not leaked.
    claims: usize,
    busy: bool,
    next: Option<Next>,
}

#[derive(Clone, Copy, Debug)]
struct Next {
    at: ElapsedMillis,
    every_ms: u64,
}

impl LeakAudit {
    pub(super) const fn claim_sent(&mut self) {
        self.claims = self.claims.saturating_add(1);
    }

    pub(super) const fn claim_done(&mut self) {
        self.claims = self.claims.saturating_sub(1);
    }

    /// Schedules a list: the network may still deliver a claim of this node, which would get
    /// another slot.
    pub(super) fn doubt(&mut self, now: ElapsedMillis) {
        let every_ms = self.next.map_or_else(|| first_ms(now), |next| next.every_ms.min(AGAIN_MS));
        let at = now.saturating_add(every_ms);
        let at = self.next.map_or(at, |next| next.at.min(at));
        self.next = Some(Next { at, every_ms });
    }

    /// Ends the audit: a node that joins as a new member holds nothing.
    pub(super) const fn forget(&mut self) {
        self.next = None;
    }

    pub(super) fn next_poll_ms(&self, now: Now) -> Option<u64> {
        let next = self.next.filter(|_| !self.busy && self.claims == 0)?;
        Some(next.at.since(now.elapsed))
    }

    /// Handles a list. Returns whether it shows what this node holds now.
    fn listed(&mut self, now: Now, came: bool) -> bool {
        self.busy = false;
        let use_it = came && self.claims == 0;
        self.next = self.next.and_then(|next| {
            let every_ms = if use_it { next.every_ms.saturating_mul(2) } else { next.every_ms };
            let next_poll_ms = match (came, use_it) {
                (true, true) => every_ms,
                (true, false) => RETRY_MS,
                // Listing all slots would load a slow store further.
                (false, _) => every_ms.min(AGAIN_MS),
            };
            let at = now.elapsed.saturating_add(next_poll_ms);
            (every_ms <= LAST_MS).then_some(Next { at, every_ms })
        });
        use_it
    }
}

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

/// Returns the first wait. It is not random: a simulation repeats exactly.
const fn first_ms(now: ElapsedMillis) -> u64 {
    let mixed = now.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    FIRST_MS + mixed % SPREAD_MS
}

fn unused(slot: SlotInfo) -> Release {
    let SlotInfo { pool, slot, term, holder, mark, .. } = slot;
    Release { pool, slot, term, holder, mark, from: None }
}
