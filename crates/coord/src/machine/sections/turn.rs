//! Times and sizes of calls about sections.

use snowmint_core::ElapsedMillis;

use super::cost::Cost;
use crate::machine::backoff_ms;

/// Largest number of sections that one call acquires, extends or relinquishes.
pub(super) const AT_ONCE: usize = 1_000;
/// Number of sections in the first call, and the smallest limit.
const AT_ONCE_FIRST: usize = 64;
const AT_ONCE_MIN: usize = 8;
/// Milliseconds for a call's sections, above which calls are made smaller. When the rest of the
/// call takes longer still, they are not: a store that is slow for any call would make callers wait
/// longer with smaller calls.
const SECTIONS_MS: f64 = 100.0;

/// Gate for one kind of call: when it may be made again, and for how many sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    busy: bool,
    failures: u32,
    next_at: Option<ElapsedMillis>,
    began_at: ElapsedMillis,
    /// Number of sections in the call in flight.
    sections: u16,
    cost: Cost,
    /// Limit of sections in the next call.
    pub(super) at_once: usize,
}

impl Default for Turn {
    fn default() -> Self {
        let (next_at, began_at) = (None, ElapsedMillis::new(0));
        let (sections, cost) = (0, Cost::default());
        Self { busy: false, failures: 0, next_at, began_at, sections, cost, at_once: AT_ONCE_FIRST }
    }
}

impl Turn {
    pub(super) fn may_begin(self, now: ElapsedMillis) -> bool {
        !self.busy && self.next_at.is_none_or(|at| now >= at)
    }

    /// Records that a call for this number of sections is sent.
    pub(super) fn began(&mut self, now: ElapsedMillis, sections: usize) {
        self.busy = true;
        self.began_at = now;
        self.sections = u16::try_from(sections).unwrap_or(u16::MAX);
    }

    pub(super) fn ended(&mut self, now: ElapsedMillis, failed: bool) {
        self.busy = false;
        let took_ms = u32::try_from(now.since(self.began_at)).unwrap_or(u32::MAX);
        self.cost.saw(f64::from(self.sections), f64::from(took_ms));
        // A caller waits for the first section, and so for the whole call.
        let (call_ms, each_ms) = self.cost.line();
        let at_once = u32::try_from(self.at_once).unwrap_or(u32::MAX);
        let sections_ms = each_ms * f64::from(at_once);
        let slow_ms = call_ms.max(SECTIONS_MS);
        if sections_ms > slow_ms {
            self.at_once = (self.at_once / 2).max(AT_ONCE_MIN);
        } else if sections_ms < slow_ms / 2.0 {
            self.at_once = (self.at_once * 2).min(AT_ONCE);
        }
        self.failures = if failed { self.failures.saturating_add(1) } else { 0 };
        self.next_at = failed.then(|| now.saturating_add(backoff_ms(self.failures)));
    }

    pub(super) fn in_ms(self, now: ElapsedMillis) -> Option<u64> {
        (!self.busy).then(|| self.next_at.map_or(0, |at| at.since(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of a call after many calls, when `took_ms` gives each one's duration.
    fn settles(took_ms: impl Fn(u64) -> u64) -> usize {
        let (mut turn, mut now) = (Turn::default(), ElapsedMillis::new(0));
        for call in 0_u64..100 {
            // Sometimes fewer are wanted.
            let sections = if call % 3 == 0 { 3 } else { turn.at_once };
            turn.began(now, sections);
            now = now.saturating_add(took_ms(u64::try_from(sections).unwrap()));
            turn.ended(now, false);
        }
        turn.at_once
    }

    #[test]
    fn calls_are_for_as_many_as_take_no_longer_than_the_call_itself() {
        assert_eq!(settles(|_| 2), AT_ONCE, "a quick store");
        assert_eq!(settles(|sections| sections / 20), AT_ONCE);
        assert_eq!(settles(|sections| 5 * sections), 16, "each takes its time: 80 ms");
        assert_eq!(settles(|sections| 50 * sections), AT_ONCE_MIN);
        assert_eq!(settles(|sections| 150 + sections / 10), AT_ONCE, "slow, whatever it is asked");
        assert_eq!(settles(|sections| 400 + 2 * sections), 128);
    }
}
