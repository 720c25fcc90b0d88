//! Fetching numbers ahead of need, one fetch at a time.

use std::sync::Arc;

use snowmint_core::ElapsedMillis;
use snowmint_core::cursor::PushError;

use super::SegmentSource;
use super::prefetched::{Piece, Prefetched};
use super::refill_state::Refill;
use crate::error::{ErrorKind, Result, Retry, chain};
use crate::model::segment::{Bounds, Reserve, Segment};
use crate::platform::backoff::retry_ms;
use crate::sources::journal_budget::ReservedFor;
use crate::sources::node_context::STALE_MS;
use crate::sources::per_request::check_forward;

impl SegmentSource {
    /// Checks whether to fetch more after a part was opened or numbers ran out. `wanted`: needed
    /// now.
    pub(in crate::sources) fn prefetch(self: &Arc<Self>, wanted: u64) {
        if self.is_per_request {
            return;
        }
        let length = {
            let mut refill = self.refill();
            self.hand_on(&mut refill);
            let left = self.cursor.left().saturating_add(refill.parked());
            let taken = refill.fetched.saturating_sub(left);
            let now = self.ctx.timer.elapsed();
            refill.consumption_rate.measure(taken, now, left < wanted);
            let must = left < wanted || self.cursor.waiting() == 0;
            let (step, tally) = (self.plan.load().step, refill.tally(left));
            let Some(step) = refill.steps.wanted(step, &refill.consumption_rate, tally, must, now)
            else {
                return;
            };
            if !refill.may_ask(now) {
                return;
            }
            refill.fetching = true;
            step.max(wanted.saturating_sub(left))
        };
        let source = Arc::clone(self);
        self.ctx.runtime.spawn(async move {
            let begun = source.ctx.timer.elapsed();
            let result = source.reserve(length).await;
            source.finish_fetch(result, begun);
        });
    }

    /// Gives the cursor the parts that it has room for.
    pub(super) fn hand_on(&self, refill: &mut Refill) {
        while let Some((first, end)) = refill.parts.front().copied() {
            match self.cursor.push(first, end) {
                Ok(()) => {}
                Err(PushError::Full) => return,
                Err(error @ PushError::NotAbove { .. }) => {
                    // `check_forward` lets only rising segments in.
                    tracing::error!(source = %self.name, first, end, %error, "prefetched numbers dropped");
                }
            }
            refill.parts.pop_front();
        }
    }

    /// Reserves numbers; rejects a store that repeats numbers it handed out before.
    pub(super) async fn reserve(&self, length: u64) -> Result<Segment> {
        let (reserved_for, now) =
            ((self.name.as_str(), ReservedFor::Node), self.ctx.timer.elapsed());
        self.ctx.journal_budget.check(reserved_for, self.stripe.renumbers(), now)?;
        if let Some(upstream) = &self.plan.load().upstream {
            return self.reserve_allocated(length, upstream).await;
        }
        let period = self.reservable().await?;
        match self.reserve_within(length, self.within(period)).await {
            // Another server's clock has reached a newer period, and no server leaves it for an
            // earlier one.
            Err(error) if self.has_newer_period(&error) => {
                let newer = self.reservable().await?;
                let result = self.reserve_within(length, self.within(newer)).await;
                result.map_err(|error| self.spent_period(error, newer))
            }
            result => result.map_err(|error| self.spent_period(error, period)),
        }
    }

    pub(super) async fn reserve_within(
        &self,
        length: u64,
        within: Option<Bounds>,
    ) -> Result<Segment> {
        // The version is read first: a reserve by it ends where it or a newer version says.
        let definition_version = self.definition_version();
        let below_end = self.below_end(within);
        let reserve =
            Reserve { source: self.name.clone(), length, definition_version, within: below_end };
        let (recoveries, seen_end) = (self.ctx.doubts.recoveries(), self.refill().seen_end);
        let taken = async {
            let segment = self.ctx.reserve(&reserve).await?;
            self.check_forward(&segment, seen_end)
                .inspect_err(|error| self.ctx.doubt_since(recoveries, error))?;
            self.ctx.remember(&self.name, &segment, self.stripe).await?;
            Ok(segment)
        };
        let result = self.ctx.doubts.in_one_history(taken).await;
        let segment = result.map_err(|error| match error.kind() {
            ErrorKind::MarkMoved { .. } if below_end != within => self.spent(),
            // The store may have reserved these numbers: they are never used.
            ErrorKind::Unavailable if !error.is_not_applied() => {
                self.refill().burn(length);
                error
            }
            _ => error,
        })?;
        if segment.first > self.plan.load().stripe.number_max() {
            return Err(self.spent());
        }
        Ok(segment)
    }

    /// Checks that the segment lies above all that was seen before it was requested: results may
    /// overtake each other.
    fn check_forward(&self, segment: &Segment, seen_end: u64) -> Result<()> {
        check_forward(&self.name, segment, seen_end)?;
        let end = segment.last.saturating_add(1);
        self.record_mark(end);
        let mut refill = self.refill();
        refill.seen_end = refill.seen_end.max(end);
        Ok(())
    }

    fn finish_fetch(self: &Arc<Self>, result: Result<Segment>, requested_at: ElapsedMillis) {
        let came = result.is_ok();
        let mut again_in_ms = None;
        let mut refill = self.refill();
        refill.fetching = false;
        refill.consumption_rate.record_latency(self.ctx.timer.elapsed().since(requested_at));
        match result {
            Ok(segment) => {
                if refill.failures > 0 {
                    tracing::info!(source = %self.name, failures = refill.failures, "segment refills succeed again");
                }
                (refill.error, refill.failures, refill.again_at) = (None, 0, None);
                let plan = self.plan.load();
                refill.steps.came(plan.step, requested_at);
                let length = refill.cut(segment.first, segment.last, plan.stripe);
                if refill.closed {
                    // No caller takes any more.
                    refill.drop_numbers(length);
                } else {
                    let next = self.cursor.next();
                    while refill.chain.front().is_some_and(|piece| piece.last < next) {
                        refill.chain.pop_front();
                    }
                    refill.chain.push_back(Piece::reserved(&segment));
                    self.hand_on(&mut refill);
                }
            }
            Err(error) => {
                refill.failures = refill.failures.saturating_add(1);
                // During a long outage, log less and less often.
                if refill.failures.is_power_of_two() {
                    let (failures, error) = (refill.failures, chain(&error));
                    let plan = self.plan.load();
                    let upstream = plan.upstream.as_ref().map(|upstream| upstream.name.as_str());
                    tracing::warn!(
                        source = %self.name, upstream, %error, failures, "segment refill failed"
                    );
                }
                let stale = matches!(error.kind(), ErrorKind::Conflict);
                let wait_ms =
                    if stale { STALE_MS } else { retry_ms(refill.failures, error.retry()) };
                let later = stale || error.retry() != Retry::Never;
                refill.again_at = Some(self.ctx.timer.elapsed().saturating_add(wait_ms));
                again_in_ms = Some(wait_ms).filter(|_| later && !refill.closed && !refill.ending);
                let retry = Retry::AfterMs(wait_ms);
                refill.error = Some(if later { error.with_retry(retry) } else { error });
            }
        }
        drop(refill);
        self.news.notify_waiters();
        if came {
            // A slow store is asked for the next segment while this one is used.
            self.prefetch(0);
        } else if let Some(wait_ms) = again_in_ms {
            self.look_again_in(wait_ms);
        }
    }

    /// Checks again after `wait_ms`. While numbers are prefetched nothing else may check, and they
    /// would run out in the next outage. The waiting task keeps nothing of a source that ends
    /// meanwhile.
    fn look_again_in(self: &Arc<Self>, wait_ms: u64) {
        let (source, timer) = (Arc::downgrade(self), Arc::clone(&self.ctx.timer));
        self.ctx.runtime.spawn(async move {
            timer.sleep_ms(wait_ms).await;
            if let Some(source) = source.upgrade() {
                source.prefetch(0);
            }
        });
    }

    pub(super) fn prefetched_now(&self) -> Prefetched {
        let refill = self.refill();
        let left = self.cursor.left().saturating_add(refill.parked());
        Prefetched { left, closed: refill.closed }
    }
}
