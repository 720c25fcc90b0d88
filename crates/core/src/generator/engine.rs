//! The parts that all generators share: the clock's reading, the policy, the window, and the call
//! to `advance`. Each generator keeps and swaps its own state.

use crate::advance::{Advance, Ordinal, Rules, State, TickWindow, advance};
use crate::clock::{ClockStep, Direction, Observer, Outcome, PendingStep, Reading, StepWatch};
use crate::layout::{Layout, OutOfRange};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{UnixMillis, Window};

use super::error::MintError;
use super::settings::{Rollback, Settings};
use super::shape::Shape;

/// No hold is active.
const NOT_HELD: u64 = 0;

#[derive(Debug)]
pub(super) struct Engine<O> {
    pub(super) shape: Shape,
    pub(super) rules: Rules,
    pub(super) settings: Settings,
    floor_tick: u64,
    floor_time: UnixMillis,
    /// The first tick that no window covers. Only grows.
    end_tick: AtomicU64,
    watch: StepWatch,
    /// Twice the held time minus the elapsed time, in microseconds, wrapping; [`NOT_HELD`] while
    /// the clock leads. It is one word, so that a hold needs no lock: the held time is half the sum
    /// of this word and the elapsed time.
    hold: AtomicU64,
    steps_back: AtomicU64,
    steps_ahead: AtomicU64,
    observer: O,
}

/// Ordinals that may be taken, and the time span in which more of their tick may follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) first: Ordinal,
    pub(super) count: u64,
    /// The wall time from which, for one unit, the same tick holds.
    pub(super) open_from_ms: u64,
    pub(super) outcome: Outcome,
}

/// The time that one decision uses.
#[derive(Clone, Copy, Debug)]
struct DecisionTime {
    /// The wall time, or the held time when that is ahead.
    now: UnixMillis,
    held: bool,
}

impl<O: Observer> Engine<O> {
    pub(super) fn new(
        layout: Layout,
        worker: u64,
        clock_value: u64,
        settings: Settings,
        window: Window,
        observer: O,
    ) -> Result<Self, OutOfRange> {
        let shape = Shape::new(layout, worker, clock_value)?;
        let ticks = shape.ticks_of(window);
        Ok(Self {
            shape,
            rules: shape.rules(&settings),
            settings,
            floor_tick: ticks.floor,
            floor_time: window.floor,
            end_tick: AtomicU64::new(ticks.end),
            watch: StepWatch::new(),
            hold: AtomicU64::new(NOT_HELD),
            steps_back: AtomicU64::new(0),
            steps_ahead: AtomicU64::new(0),
            observer,
        })
    }

    /// Returns the first ordinal that the window allows.
    pub(super) fn floor(&self) -> Ordinal {
        Ordinal::first_of(self.floor_tick.min(self.rules.tick_max.saturating_add(1)), &self.rules)
    }

    pub(super) fn extend_to(&self, mark: UnixMillis) {
        // Release, with the acquire in `window`: minting from the new ticks comes after the store's
        // acknowledgement.
        self.end_tick.fetch_max(self.shape.end_tick(mark), Ordering::Release);
    }

    /// Returns the end of the granted window: the start of the first tick outside it.
    pub(super) fn mark(&self) -> UnixMillis {
        self.shape.start_of(self.end_tick.load(Ordering::Acquire))
    }

    /// Returns the end of the last tick below `next`; the window's floor when nothing was taken.
    pub(super) fn taken_until(&self, next: Ordinal) -> UnixMillis {
        match next.get().checked_sub(1) {
            Some(last) if next > self.floor() => {
                self.shape.start_of(Ordinal::new(last).tick(&self.rules).saturating_add(1))
            }
            _ => self.floor_time,
        }
    }

    pub(super) fn steps(&self) -> (u64, u64) {
        (self.steps_back.load(Ordering::Relaxed), self.steps_ahead.load(Ordering::Relaxed))
    }

    pub(super) fn notice(&self, reading: Reading) -> Option<PendingStep> {
        self.watch.observe(reading)
    }

    /// Reports a step once, with its outcome.
    pub(super) fn report(&self, step: Option<PendingStep>, result: Result<Outcome, MintError>) {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(MintError::ClockBehind { .. } | MintError::BeforeEpoch { .. }) => Outcome::Refused,
            Err(_) => Outcome::Unaffected,
        };
        self.report_as(step, outcome, self.settings.rollback.name());
    }

    pub(super) fn report_as(
        &self,
        step: Option<PendingStep>,
        outcome: Outcome,
        policy: &'static str,
    ) {
        let Some(PendingStep { direction, by_ms }) = step else { return };
        let counter = match direction {
            Direction::Back => &self.steps_back,
            Direction::Ahead => &self.steps_ahead,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.observer.clock_step(&ClockStep { direction, by_ms, policy, outcome });
    }

    /// Returns the ordinals that may be taken next at this reading of the clock.
    pub(super) fn decide(
        &self,
        state: State,
        wanted: u64,
        reading: Reading,
    ) -> Result<Grant, MintError> {
        let decision_time = self.decision_time(reading);
        let layout = self.shape.layout();
        let Some(since_ms) = decision_time.now.get().checked_sub(layout.epoch().get()) else {
            return self.before_epoch(state, wanted, reading);
        };
        let now = since_ms.checked_div(self.shape.unit_ms).unwrap_or(0);
        match advance(state, now, wanted, self.window(), &self.rules) {
            Advance::ClockBehind { by_ticks } => {
                let reached = now.saturating_add(self.rules.lead_ticks).saturating_add(by_ticks);
                self.behind(state, wanted, reading, reached)
            }
            other => self.outcome(other, now, decision_time, reading),
        }
    }

    pub(super) fn window(&self) -> TickWindow {
        TickWindow { floor: self.floor_tick, end: self.end_tick.load(Ordering::Acquire) }
    }

    /// Returns the wall time, or the held time while it is ahead and within the lead.
    fn decision_time(&self, reading: Reading) -> DecisionTime {
        let word = self.hold.load(Ordering::Relaxed);
        if word != NOT_HELD {
            let held_us = word.wrapping_add(reading.elapsed_us) / 2;
            let lead_us = held_us.saturating_sub(reading.wall_us);
            if lead_us > 0 && lead_us <= self.settings.rollback.lead_max_ms().saturating_mul(1_000)
            {
                return DecisionTime { now: UnixMillis::new(held_us / 1_000), held: true };
            }
            // Caught up, or beyond the limit: the next decision starts from the last ID. A failed
            // exchange means that another thread decided the same, or began its own hold.
            let _ =
                self.hold.compare_exchange(word, NOT_HELD, Ordering::Relaxed, Ordering::Relaxed);
        }
        DecisionTime { now: reading.wall(), held: false }
    }

    pub(super) fn held_at(&self, reading: Reading) -> Option<UnixMillis> {
        let decision_time = self.decision_time(reading);
        decision_time.held.then_some(decision_time.now)
    }

    fn before_epoch(
        &self,
        state: State,
        wanted: u64,
        reading: Reading,
    ) -> Result<Grant, MintError> {
        let epoch = self.shape.layout().epoch();
        match state.issued.get().checked_sub(1) {
            Some(last) => self.behind(state, wanted, reading, Ordinal::new(last).tick(&self.rules)),
            None => Err(MintError::BeforeEpoch { by_ms: epoch.since(reading.wall()) }),
        }
    }

    /// Applies the policy when the clock lies behind tick `reached`, from which an ID may have been
    /// issued.
    fn behind(
        &self,
        state: State,
        wanted: u64,
        reading: Reading,
        reached: u64,
    ) -> Result<Grant, MintError> {
        let reached_at = self.shape.start_of(reached);
        let by_ms = reached_at.since(reading.wall());
        match self.settings.rollback {
            Rollback::Hold { lead_max_ms } if by_ms <= lead_max_ms => {
                self.begin_hold(reached_at, reading);
                let decision_time = DecisionTime { now: reached_at, held: true };
                let next = advance(state, reached, wanted, self.window(), &self.rules);
                self.outcome(next, reached, decision_time, reading)
            }
            rollback => {
                let (limit_ms, retry_after_ms) = rollback.limit_and_retry_ms(by_ms);
                let retry_after_ms = retry_after_ms.max(1);
                Err(MintError::ClockBehind { by_ms, limit_ms, retry_after_ms })
            }
        }
    }

    fn begin_hold(&self, from: UnixMillis, reading: Reading) {
        let twice_us = from.get().saturating_mul(1_000).saturating_mul(2);
        let word = twice_us.wrapping_sub(reading.elapsed_us).max(1);
        // Another thread may have begun the same hold; its word is equally valid.
        let _ = self.hold.compare_exchange(NOT_HELD, word, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn outcome(
        &self,
        advance: Advance,
        now: u64,
        decision_time: DecisionTime,
        reading: Reading,
    ) -> Result<Grant, MintError> {
        match advance {
            Advance::Issued { first, count } => Ok(Grant {
                first,
                count,
                // Held ticks follow elapsed time: decide again as soon as the wall clock moves.
                open_from_ms: if decision_time.held {
                    reading.wall().get()
                } else {
                    self.shape.start_of(now).get()
                },
                outcome: if decision_time.held {
                    Outcome::Held
                } else if first.tick(&self.rules) > now {
                    Outcome::Led
                } else {
                    Outcome::Unaffected
                },
            }),
            Advance::TickFull { next_tick } => {
                let next = self.shape.start_of(next_tick.get());
                // A held clock runs at half speed.
                let speed = if decision_time.held { 2 } else { 1 };
                let retry_after_ms = next.since(decision_time.now).saturating_mul(speed).max(1);
                Err(MintError::TickFull { next, retry_after_ms })
            }
            Advance::ClockBehind { by_ticks } => {
                let by_ms = by_ticks.saturating_mul(self.shape.unit_ms);
                Err(MintError::ClockBehind {
                    by_ms,
                    limit_ms: self.settings.rollback.lead_max_ms(),
                    retry_after_ms: by_ms.max(1),
                })
            }
            Advance::WindowSpent => Err(MintError::WindowSpent { mark: self.mark() }),
            Advance::EpochSpent => Err(MintError::EpochSpent { end: self.shape.layout().end() }),
        }
    }
}
