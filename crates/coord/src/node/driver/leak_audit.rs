//! Schedule of the audit of leaked slots.

use snowmint_core::ElapsedMillis;

use crate::machine::Now;

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
    pub(super) busy: bool,
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
    pub(super) fn listed(&mut self, now: Now, came: bool) -> bool {
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

/// Returns the first wait. It is not random: a simulation repeats exactly.
const fn first_ms(now: ElapsedMillis) -> u64 {
    let mixed = now.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    FIRST_MS + mixed % SPREAD_MS
}
