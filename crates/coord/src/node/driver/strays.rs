//! Slots that the store says are ours, and that no lease of ours knows of.
//!
//! A network can keep a claim and deliver it, or deliver it again, long after it was answered: refused then,
//! it may be granted now, to a node that has gone on. Nothing would ever be minted from such a slot, and
//! nobody else would get it for as long as this node lives. So a node that has reason to doubt asks the store
//! what it holds, less and less often: a claim that the network kept for some time is found before the same
//! time has passed again.

use std::sync::Arc;

use snowmint_core::{Clock, ElapsedMillis};

use super::{Done, Driver, Stage};
use crate::error::Result;
use crate::lease::Release;
use crate::machine::{Now, WindowMachine};
use crate::member::Incarnation;
use crate::pool::is_worker_pool;
use crate::slot::SlotInfo;

/// How long after the first reason to doubt, and up to how much later: many who start at once have it at once.
const FIRST_MS: u64 = 10_000;
const SPREAD_MS: u64 = 20_000;
/// How long after another one, at most.
const AGAIN_MS: u64 = 30_000;
/// No network keeps a message for longer.
const LAST_MS: u64 = 3_600_000;
/// How long to wait when the answer is of no use, because something was claimed meanwhile.
const RETRY_MS: u64 = 1_000;

/// When to look for strays.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// Claims that are on their way: what they take is no stray.
    claims: usize,
    busy: bool,
    next: Option<Next>,
}

#[derive(Clone, Copy, Debug)]
struct Next {
    at: ElapsedMillis,
    every_ms: u64,
}

impl Strays {
    pub(super) const fn claim_sent(&mut self) {
        self.claims = self.claims.saturating_add(1);
    }

    pub(super) const fn claim_answered(&mut self) {
        self.claims = self.claims.saturating_sub(1);
    }

    /// A claim of ours that the network may still have would be granted another slot.
    pub(super) fn doubt(&mut self, now: ElapsedMillis) {
        let every_ms = self.next.map_or_else(|| first_ms(now), |next| next.every_ms.min(AGAIN_MS));
        let at = now.saturating_add(every_ms);
        let at = self.next.map_or(at, |next| next.at.min(at));
        self.next = Some(Next { at, every_ms });
    }

    /// A node that begins anew as another member holds nothing.
    pub(super) const fn forget(&mut self) {
        self.next = None;
    }

    pub(super) fn wait_ms(&self, now: Now) -> Option<u64> {
        let next = self.next.filter(|_| !self.busy && self.claims == 0)?;
        Some(next.at.since(now.elapsed))
    }

    /// Whether the answer says what is ours now.
    fn answered(&mut self, now: Now, came: bool) -> bool {
        self.busy = false;
        let use_it = came && self.claims == 0;
        self.next = self.next.and_then(|next| {
            let every_ms = if use_it { next.every_ms.saturating_mul(2) } else { next.every_ms };
            let wait_ms = match (came, use_it) {
                (true, true) => every_ms,
                (true, false) => RETRY_MS,
                // It is much to ask of a store that is slow as it is.
                (false, _) => every_ms.min(AGAIN_MS),
            };
            let at = now.elapsed.saturating_add(wait_ms);
            (every_ms <= LAST_MS).then_some(Next { at, every_ms })
        });
        use_it
    }
}

impl Driver {
    pub(super) fn look_for_strays(&mut self, now: Now) {
        let Stage::In { member, .. } = &self.stage else { return };
        if self.strays.wait_ms(now) != Some(0) {
            return;
        }
        self.strays.busy = true;
        let (core, member) = (Arc::clone(&self.core), member.incarnation);
        self.tasks.spawn(async move {
            let around = &core.around;
            let listed = around.store.workers(around.clock.unix_ms());
            Done::Listed(member, around.call("list workers", listed).await)
        });
    }

    pub(super) fn listed(&mut self, now: Now, member: Incarnation, answer: Result<Vec<SlotInfo>>) {
        if !self.strays.answered(now, answer.is_ok()) || !self.is_member(member) {
            return;
        }
        let listed = answer.unwrap_or_default().into_iter();
        let ours = listed.filter(|slot| slot.holder == Some(member) && is_worker_pool(&slot.pool));
        let strays: Vec<_> = ours.filter(|slot| !self.knows(slot)).map(unused).collect();
        for stray in &strays {
            let (pool, slot) = (&stray.pool, stray.slot);
            tracing::warn!(%pool, slot, "a claim that came late took a worker number that nobody waits for: given up");
        }
        self.owe_strays(strays);
    }

    /// Whether a lease, or what is owed, is this slot's.
    fn knows(&self, slot: &SlotInfo) -> bool {
        let is_it =
            |pool: &str, number, term| (pool, number, term) == (&*slot.pool, slot.slot, slot.term);
        let mut windows = self.leases.values().flat_map(|held| held.machine.windows());
        let mut owed = self.owed.all();
        windows.any(|window: &WindowMachine| {
            let lease = window.lease();
            is_it(&lease.pool, lease.slot, lease.term)
        }) || owed.any(|release| is_it(&release.pool, release.slot, release.term))
    }
}

/// Not by chance: a simulation repeats exactly.
const fn first_ms(now: ElapsedMillis) -> u64 {
    let mixed = now.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    FIRST_MS + mixed % SPREAD_MS
}

fn unused(slot: SlotInfo) -> Release {
    let SlotInfo { pool, slot, term, holder, mark, .. } = slot;
    Release { pool, slot, term, holder, mark, from: None }
}
