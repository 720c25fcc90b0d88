//! A section that is ours, and how far its window is moved at once.

use snowmint_core::ElapsedMillis;

use crate::lease::{Extend, Mark, Term};
use crate::machine::{Now, Requests};
use crate::pool::Pool;
use crate::sources::Want;

/// A window that was used up in less time than this is followed by one twice as long, and one that
/// lasted ten times as long by one half as long.
const HURRY_MS: u64 = 1_000;
/// How often a step is doubled at most.
const DOUBLINGS_MAX: u32 = 12;

#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) term: Term,
    pub(super) mark: Mark,
    pub(super) want: Option<Want>,
    /// Sent, or to be sent again.
    pub(super) extend: Option<Extend>,
    pub(super) extended_at: Option<ElapsedMillis>,
    pub(super) doublings: u32,
}

impl Held {
    /// The next extend: a step, or as far as is wanted, whichever is more.
    pub(super) fn next(
        &mut self,
        pool: &Pool,
        section: u16,
        want: Want,
        now: Now,
        skew_max_ms: u64,
        requests: &mut Requests,
    ) -> Extend {
        let (to, ahead_max_ms) = match want {
            Want::Numbers { until, step } => (self.numbers_to(until, step, now), None),
            Want::Time { taken_until, window_ms, lead_max_ms } => {
                // A window that IDs have run ahead into is followed by short ones.
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

    /// Where a window of numbers goes next. Steps follow the pace.
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
