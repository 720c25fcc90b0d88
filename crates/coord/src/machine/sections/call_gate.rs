//! Times and sizes of calls about sections.

use snowmint_core::ElapsedMillis;

use super::cost::Cost;
use crate::platform::backoff::backoff_ms;

/// Largest number of sections that one call acquires, extends or relinquishes.
pub(super) const BATCH_MAX: usize = 1_000;
/// Number of sections in the first call, and the smallest limit.
const BATCH_FIRST: usize = 64;
const BATCH_MIN: usize = 8;
/// Milliseconds for a call's sections, above which calls are made smaller. When the rest of the
/// call takes longer still, they are not: a store that is slow for any call would make callers wait
/// longer with smaller calls.
const SECTIONS_MS: f64 = 100.0;

/// Gate for one kind of call: when it may be made again, and for how many sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallGate {
    busy: bool,
    failures: u32,
    next_at: Option<ElapsedMillis>,
    began_at: ElapsedMillis,
    /// Number of sections in the call in flight.
    sections: u16,
    cost: Cost,
    /// Limit of sections in the next call.
    pub(super) batch_max: usize,
}

impl Default for CallGate {
    fn default() -> Self {
        let (next_at, began_at) = (None, ElapsedMillis::new(0));
        let (sections, cost) = (0, Cost::default());
        Self { busy: false, failures: 0, next_at, began_at, sections, cost, batch_max: BATCH_FIRST }
    }
}

impl CallGate {
    /// Returns the milliseconds until the call may be made; none while one is in flight.
    pub(super) fn next_ms(self, now: ElapsedMillis) -> Option<u64> {
        (!self.busy).then(|| self.next_at.map_or(0, |at| at.since(now)))
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
        let batch_max = u32::try_from(self.batch_max).unwrap_or(u32::MAX);
        let sections_ms = each_ms * f64::from(batch_max);
        let slow_ms = call_ms.max(SECTIONS_MS);
        if sections_ms > slow_ms {
            self.batch_max = (self.batch_max / 2).max(BATCH_MIN);
        } else if sections_ms < slow_ms / 2.0 {
            self.batch_max = (self.batch_max * 2).min(BATCH_MAX);
        }
        self.failures = if failed { self.failures.saturating_add(1) } else { 0 };
        self.next_at = failed.then(|| now.saturating_add(backoff_ms(self.failures)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of a call after many calls, when `took_ms` gives each one's duration.
    fn settles(took_ms: impl Fn(u64) -> u64) -> usize {
        let (mut turn, mut now) = (CallGate::default(), ElapsedMillis::new(0));
        for call in 0_u64..100 {
            // Sometimes fewer are wanted.
            let sections = if call % 3 == 0 { 3 } else { turn.batch_max };
            turn.began(now, sections);
            now = now.saturating_add(took_ms(u64::try_from(sections).unwrap()));
            turn.ended(now, false);
        }
        turn.batch_max
    }

    #[test]
    fn section_time_of_a_call_stays_below_call_time() {
        assert_eq!(settles(|_| 2), BATCH_MAX, "a quick store");
        assert_eq!(settles(|sections| sections / 20), BATCH_MAX);
        assert_eq!(settles(|sections| 5 * sections), 16, "each takes its time: 80 ms");
        assert_eq!(settles(|sections| 50 * sections), BATCH_MIN);
        assert_eq!(
            settles(|sections| 150 + sections / 10),
            BATCH_MAX,
            "slow, whatever it is asked"
        );
        assert_eq!(settles(|sections| 400 + 2 * sections), 128);
    }
}
