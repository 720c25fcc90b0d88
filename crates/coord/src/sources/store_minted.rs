//! Snowflake IDs that the store mints. The store keeps tick and sequence of a source as one number,
//! and takes the next numbers in the same step that reads its clock. This process claims no worker
//! number and holds no window; the worker number in the IDs is the store's own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use snowmint_core::clock::{ClockStep, Direction, Outcome};
use snowmint_core::layout::Field;
use snowmint_core::{ElapsedMillis, Layout, Observer as _, Parts, Tick, UnixMillis};

use super::defined::Defined;
use super::node_context::NodeContext;
use super::per_request::{PerRequest, check_forward, store_late};
use super::source_kind::SourceKind;
use super::values::SourceStats;
use crate::error::{Error, ErrorKind, Result};
use crate::model::segment::{Bounds, Reserve, Segment};
use crate::model::ticks::Ticks;
use crate::spec::{Plan, SnowflakePlan};
use crate::store::capability::ClockOf;

/// A snowflake source that the store mints.
pub(crate) struct StoreMinted {
    name: String,
    ctx: Arc<NodeContext>,
    layout: Layout,
    worker: u64,
    plan: ArcSwap<SnowflakePlan>,
    definition_version: AtomicU64,
    /// End of all numbers seen: a store that returns a lower number was rolled back.
    seen_end: AtomicU64,
    clock: StoreClock,
}

impl StoreMinted {
    pub(super) fn new(
        name: &str,
        plan: &SnowflakePlan,
        worker: u64,
        definition_version: u64,
        ctx: Arc<NodeContext>,
    ) -> Self {
        Self {
            name: name.into(),
            ctx,
            layout: plan.layout,
            worker,
            plan: ArcSwap::from_pointee(plan.clone()),
            definition_version: AtomicU64::new(definition_version),
            seen_end: AtomicU64::new(0),
            clock: StoreClock::default(),
        }
    }

    fn ticks(&self, now: UnixMillis) -> Ticks {
        let plan = self.plan.load();
        let lead_ms = plan.rollback_plan.lead_max_ms();
        Ticks::of(&self.layout, plan.burst_ms, lead_ms, now)
    }

    /// Returns the time for a store without a clock of its own. A mark that our clock put years
    /// ahead would stay there, for all servers.
    async fn now(&self) -> Result<UnixMillis> {
        match self.ctx.store.capabilities().clock {
            ClockOf::Store => Ok(self.ctx.clock.unix_ms()),
            ClockOf::Caller => self.ctx.time_not_ahead().await,
        }
    }

    /// Returns the end of the last tick seen here.
    fn taken_until(&self) -> Option<UnixMillis> {
        let last = self.seen_end.load(Ordering::Relaxed).checked_sub(1)?;
        let tick = self.ticks(UnixMillis::ZERO).tick_of(last);
        Some(self.layout.start_of(Tick::new(tick.saturating_add(1))))
    }

    /// Reports a step of the store's clock that a reserve result shows.
    fn watch_clock(&self, segment: &Segment, sent_at: ElapsedMillis, ticks: &Ticks) {
        let Some(at) = segment.at else { return };
        let returned_at = self.ctx.timer.elapsed();
        let Some((direction, by_ms)) = self.clock.saw(at, sent_at, returned_at) else { return };
        let led = self.layout.start_of(Tick::new(ticks.tick_of(segment.first))) > at;
        self.report_step(direction, by_ms, if led { Outcome::Led } else { Outcome::Unaffected });
    }

    fn report_step(&self, direction: Direction, by_ms: u64, outcome: Outcome) {
        let policy = self.plan.load().rollback_plan.policy();
        let step = ClockStep { direction, by_ms, policy, outcome };
        tracing::warn!(source = %self.name, %step, "the store's clock was set");
        self.ctx.observer.clock_step(&step);
    }

    /// Reports a step that only an error shows: the error has the lag of the clock, but not its
    /// time.
    fn watch_error(&self, error: &Error) {
        match error.kind() {
            ErrorKind::ClockBehind { behind_ms, .. } if !self.clock.refused(true) => {
                self.report_step(Direction::Back, *behind_ms, Outcome::Refused);
            }
            _ => {}
        }
    }
}

impl SourceKind for StoreMinted {
    fn alter(&self, defined: &Defined) {
        let Plan::Snowflake(plan) = &defined.plan else { return };
        self.plan.store(Arc::new(plan.clone()));
        self.definition_version.store(defined.version, Ordering::Release);
    }

    fn stats(&self, ready: bool) -> SourceStats {
        let StoreClock { back, ahead, .. } = &self.clock;
        let clock_steps = (back.load(Ordering::Relaxed), ahead.load(Ordering::Relaxed));
        SourceStats {
            ready,
            taken_until: self.taken_until(),
            clock_steps,
            ..SourceStats::default()
        }
    }

    fn is_per_request(&self) -> bool {
        true
    }

    fn seen_end(&self) -> Option<u64> {
        Some(self.seen_end.load(Ordering::Acquire))
    }
}

impl PerRequest for StoreMinted {
    fn ctx(&self) -> &Arc<NodeContext> {
        &self.ctx
    }

    async fn reserve_numbers(&self, count: u64) -> Result<Segment> {
        let ticks = self.ticks(self.now().await?);
        let reserve = Reserve {
            source: self.name.clone(),
            length: count,
            definition_version: self.definition_version.load(Ordering::Acquire),
            within: Some(Bounds::Now(ticks)),
        };
        let recoveries = self.ctx.doubts.recoveries();
        let seen_end = self.seen_end.load(Ordering::Acquire);
        let sent_at = self.ctx.timer.elapsed();
        let result = self.ctx.reserve(&reserve).await;
        let segment = result.inspect_err(|error| self.watch_error(error))?;
        check_forward(&self.name, &segment, seen_end)
            .inspect_err(|error| self.ctx.doubt_since(recoveries, error))?;
        self.seen_end.fetch_max(segment.last.saturating_add(1), Ordering::AcqRel);
        self.ctx.saw(segment.catalog_version, segment.writes);
        self.ctx.handed_out();
        self.watch_clock(&segment, sent_at, &ticks);
        Ok(segment)
    }

    fn late(&self, within_ms: u64) -> Error {
        store_late(&self.name, within_ms)
    }

    fn id_of(&self, number: u64) -> Option<u64> {
        let bits = self.layout.bits(Field::Sequence);
        let tick = number.checked_shr(bits.into())?;
        let sequence = number & self.layout.sequence_max();
        let tick = Tick::new(tick);
        self.layout.pack(Parts { tick, worker: self.worker, sequence, ..Parts::default() }).ok()
    }
}

crate::opaque_debug!(StoreMinted: name, worker);

/// Detector of steps of the store's clock against our elapsed time, larger than a call takes.
#[derive(Debug, Default)]
struct StoreClock {
    /// Lowest and highest possible value, at the last result, of the store's clock minus our
    /// elapsed time.
    offset: Mutex<Option<(i64, i64)>>,
    /// Whether the last news of the clock was that it is too far behind.
    behind: AtomicBool,
    back: AtomicU64,
    ahead: AtomicU64,
}

impl StoreClock {
    /// Milliseconds lost to rounding in both clocks.
    const SLACK_MS: i64 = 2;

    /// Records the store's time, read between two moments of our elapsed clock; returns the clock's
    /// step, if there was one.
    fn saw(
        &self,
        at: UnixMillis,
        requested_at: ElapsedMillis,
        responded_at: ElapsedMillis,
    ) -> Option<(Direction, u64)> {
        let was_refused = self.refused(false);
        let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let from = |elapsed: ElapsedMillis| ms(at.get()).saturating_sub(ms(elapsed.get()));
        let now = (from(responded_at), from(requested_at));
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        let before = offset.replace(now)?;
        drop(offset);
        let back_ms = before.0.saturating_sub(now.1).saturating_sub(Self::SLACK_MS);
        let ahead_ms = now.0.saturating_sub(before.1).saturating_sub(Self::SLACK_MS);
        if back_ms > 0 && !was_refused {
            self.back.fetch_add(1, Ordering::Relaxed);
            return Some((Direction::Back, back_ms.unsigned_abs()));
        }
        if ahead_ms > 0 {
            self.ahead.fetch_add(1, Ordering::Relaxed);
            return Some((Direction::Ahead, ahead_ms.unsigned_abs()));
        }
        None
    }

    /// Records whether this result is a clock error; returns whether the last one was.
    fn refused(&self, now: bool) -> bool {
        let before = self.behind.swap(now, Ordering::AcqRel);
        if now && !before {
            self.back.fetch_add(1, Ordering::Relaxed);
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_clock_step_is_reported_once() {
        let clock = StoreClock::default();
        let saw = |at, requested_at, responded_at| {
            let elapsed = ElapsedMillis::new;
            clock.saw(UnixMillis::new(at), elapsed(requested_at), elapsed(responded_at))
        };
        assert_eq!(saw(100_000, 10, 11), None, "the first says nothing");
        assert_eq!(saw(100_020, 30, 31), None);
        assert_eq!(saw(100_500, 40, 900), None, "a result that took long");
        assert_eq!(saw(100_910, 920, 921), None);
        let (direction, by_ms) = saw(97_930, 940, 941).unwrap();
        assert_eq!(direction, Direction::Back);
        assert!((2_990..=3_000).contains(&by_ms), "{by_ms}");
        assert_eq!(saw(97_940, 950, 951), None);
        let (direction, by_ms) = saw(100_950, 960, 961).unwrap();
        assert_eq!(direction, Direction::Ahead);
        assert!((2_990..=3_000).contains(&by_ms), "{by_ms}");
        // Rejected twice; the step was reported with the error.
        assert!(!clock.refused(true) && clock.refused(true));
        assert_eq!(saw(95_000, 970, 971), None);
        assert_eq!((clock.back.into_inner(), clock.ahead.into_inner()), (2, 1));
    }
}
