//! Section that this member owns, and how far its window moves at once.

use snowmint_core::ElapsedMillis;

use crate::ids::{Mark, Term};
use crate::machine::demand::Demand;
use crate::machine::{Now, RequestNumbers};
use crate::model::lease::Extend;
use crate::model::pool::Pool;

/// Duration of a window below which the next one is twice as long. A window that lasted over ten
/// times as long is followed by one half as long.
const HURRY_MS: u64 = 1_000;
/// Largest number of doublings of a step.
const DOUBLINGS_MAX: u32 = 12;

#[derive(Clone, Debug)]
pub(super) struct OwnedSection {
    pub(super) term: Term,
    pub(super) mark: Mark,
    pub(super) want: Option<Demand>,
    /// Extend that was sent, or is to be sent again.
    pub(super) extend: Option<Extend>,
    pub(super) extended_at: Option<ElapsedMillis>,
    pub(super) doublings: u32,
}

impl OwnedSection {
    /// Returns the next extend: a step, or as far as callers want, whichever is more.
    pub(super) fn next(
        &mut self,
        pool: &Pool,
        section: u16,
        want: Demand,
        now: Now,
        skew_max_ms: u64,
        requests: &mut RequestNumbers,
    ) -> Extend {
        let (to, ahead_max_ms) = match want {
            Demand::Numbers { until, step } => (self.numbers_to(until, step, now), None),
            Demand::Time { taken_until, window_ms, lead_max_ms } => {
                // IDs have run ahead into this window: follow it with short ones.
                let ahead = taken_until.saturating_add(window_ms / 4);
                let to = now.wall.saturating_add(window_ms).max(ahead);
                let ahead_max_ms = lead_max_ms.saturating_add(window_ms);
                (to.get(), Some(ahead_max_ms.saturating_add(skew_max_ms)))
            }
        };
        let to = to.max(self.mark.get().saturating_add(1)).min(Mark::MAX.get());
        Extend {
            pool: pool.name.clone(),
            slot: section.into(),
            term: self.term,
            holder: None,
            from: self.mark,
            to: Mark::new(to),
            request: requests.next(now.chance),
            ahead_max_ms,
        }
    }

    /// Returns the next mark of a window of numbers. Steps grow and shrink with the consumption
    /// rate.
    fn numbers_to(&mut self, until: u64, step: u64, now: Now) -> u64 {
        if let Some(at) = self.extended_at {
            let lasted_ms = now.elapsed.since(at);
            if lasted_ms < HURRY_MS {
                self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
            } else if lasted_ms > 10 * HURRY_MS {
                self.doublings = self.doublings.saturating_sub(1);
            }
        }
        let step = step.max(1).saturating_mul(1 << self.doublings);
        self.mark.get().max(until).saturating_add(step)
    }
}
