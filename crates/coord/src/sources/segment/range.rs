//! Consecutive numbers for one caller to use.

use std::sync::Arc;

use snowmint_core::cursor::Run;

use super::SegmentSource;
use crate::error::{Error, Result};
use crate::model::segment::Segment;
use crate::sources::id_batch::NumberRange;
use crate::sources::per_request::PerRequest as _;
use crate::sources::shared_errors::closed;

/// Attempts to take a range from prefetched numbers: a run of numbers may end where a segment ends.
const RANGE_ATTEMPTS: usize = 3;

impl SegmentSource {
    /// Reserves consecutive numbers for a caller to use: from the prefetched numbers if they are
    /// many, else from the store.
    pub(crate) async fn reserve_range(
        self: &Arc<Self>,
        length: u64,
        within_ms: u64,
    ) -> Result<NumberRange> {
        let prefetched = self.prefetched_now();
        if prefetched.closed {
            return Err(closed(&self.name));
        }
        let mut run = None;
        if length <= prefetched.left / 2 {
            run = (0..RANGE_ATTEMPTS).find_map(|_| self.range_from_prefetched(length));
        }
        let (first, last) = match run {
            Some(run) => (run.first, run.end - 1),
            None => {
                let (reserve, late) = (self.reserve(length), || self.late(within_ms));
                let segment = self.ctx.with_timeout(within_ms, late, reserve).await?;
                if segment.last - segment.first < length - 1 {
                    return Err(self.short(&segment, length));
                }
                (segment.first, segment.last)
            }
        };
        let stripe = self.plan.load().stripe;
        let id_of = |number| stripe.id_of_any(number).ok_or_else(|| self.spent());
        Ok(NumberRange { first: id_of(first)?, last: id_of(last)?, increment: stripe.increment() })
    }

    /// Takes consecutive numbers from prefetched runs. Numbers taken before a gap are not used.
    fn range_from_prefetched(self: &Arc<Self>, length: u64) -> Option<Run> {
        let mut row = self.cursor.take_run(length, || self.prefetch(length))?;
        while row.end - row.first < length {
            let left = length - (row.end - row.first);
            let more = self.cursor.take_run(left, || self.prefetch(left));
            let Some(more) = more.filter(|more| more.first == row.end) else {
                let after = more.map_or(0, |more| more.end - more.first);
                self.refill().drop_numbers(row.end - row.first + after);
                return None;
            };
            row.end = more.end;
        }
        Some(row)
    }

    /// Returns the error for a range that came shorter: the source must end there, or the store
    /// gives no longer range.
    fn short(&self, segment: &Segment, wanted: u64) -> Error {
        if segment.last >= self.plan.load().stripe.number_max() {
            return self.spent();
        }
        let limit = segment.last.saturating_sub(segment.first).saturating_add(1);
        Error::limit_exceeded(format!(
            "source {:?} has at most {limit} consecutive numbers, {wanted} requested; \
             ask for fewer",
            self.name
        ))
    }
}
