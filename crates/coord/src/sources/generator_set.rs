//! Generators of a snowflake source, with one interface for all policies.

use std::fmt;
use std::sync::Arc;

use snowmint_core::{
    Clock, ClockSequence, Generator, Layout, MintError, OutOfRange, Ring, SequenceStart, Settings,
    Short, UnixMillis, Window,
};

use crate::error::{Error, Result};
use crate::machine::Position;
use crate::platform::clock::{NodeClock, NodeObserver};
use crate::spec::{RollbackPlan, SnowflakePlan, StartPlan};

/// Layout and behaviour of a generator. Two sources that share a generator must agree on all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GeneratorConfig {
    pub(crate) layout: Layout,
    pub(crate) rollback_plan: RollbackPlan,
    pub(crate) burst_ms: u64,
    pub(crate) start: StartPlan,
}

impl GeneratorConfig {
    pub(crate) const fn of(plan: &SnowflakePlan) -> Self {
        Self {
            layout: plan.layout,
            rollback_plan: plan.rollback_plan,
            burst_ms: plan.burst_ms,
            start: plan.start,
        }
    }

    /// Returns the same configuration, with a lead of at least `max_ms` where the policy has one.
    pub(crate) fn leading(mut self, max_ms: u64) -> Self {
        self.rollback_plan = self.rollback_plan.leading(max_ms);
        self
    }

    /// Returns the same configuration, with a lead longer by `more_ms` where the policy has one.
    pub(crate) fn leading_by(self, more_ms: u64) -> Self {
        self.leading(self.lead_max_ms().saturating_add(more_ms))
    }

    /// Returns how far IDs may lead the clock, in milliseconds.
    pub(crate) const fn lead_max_ms(&self) -> u64 {
        self.rollback_plan.lead_max_ms()
    }

    fn settings(&self, seed: u64) -> Settings {
        let rollback = self.rollback_plan.of_generator();
        let sequence_start = match self.start {
            StartPlan::Zero => SequenceStart::Zero,
            StartPlan::RandomBelow(bound) => SequenceStart::RandomBelow { bound, seed },
            StartPlan::Carried => SequenceStart::Carried,
            StartPlan::Shards(count) => SequenceStart::Shards { count, seed },
        };
        Settings { rollback, burst_ms: self.burst_ms, sequence_start, ..Settings::DEFAULT }
    }
}

/// One slot, and the window that may be minted from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotWindow {
    pub(crate) worker: u64,
    pub(crate) clock_value: u64,
    pub(crate) window: Window,
}

/// Generator or generators of one source.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each source, and no way round it is free"
)]
pub(crate) enum GeneratorSet {
    Plain(Generator<NodeClock, NodeObserver>),
    Values(ClockSequence<Vec<Generator<NodeClock>>, NodeClock, NodeObserver>),
    Ring(Box<Ring<NodeClock, NodeObserver>>),
}

impl GeneratorSet {
    /// Creates generators for the slots of one claim: one slot, or all clock values of one worker.
    pub(crate) fn new(
        config: &GeneratorConfig,
        slots: &[SlotWindow],
        clock: NodeClock,
        observer: NodeObserver,
        seed: u64,
    ) -> Result<Self> {
        let impossible = |error: OutOfRange| {
            Error::internal(format!(
                "internal error: generator cannot be made: {error}; please report it"
            ))
        };
        let settings = config.settings(seed);
        let first = slots.first().copied().unwrap_or(SlotWindow {
            worker: 0,
            clock_value: 0,
            window: Window::new(UnixMillis::ZERO, UnixMillis::ZERO),
        });
        match config.rollback_plan {
            RollbackPlan::ClockSequence => {
                let value = |slot: &SlotWindow| {
                    let SlotWindow { worker, clock_value, window } = *slot;
                    let clock = Arc::clone(&clock);
                    Generator::with_observer(
                        config.layout,
                        worker,
                        clock_value,
                        settings,
                        window,
                        clock,
                        (),
                    )
                };
                let values: Result<_, _> = slots.iter().map(value).collect();
                let values = values.map_err(impossible)?;
                Ok(Self::Values(ClockSequence::new(values, clock, observer)))
            }
            RollbackPlan::Ring { lead_max_ms } => {
                let SlotWindow { worker, window, .. } = first;
                let (lead, start) = (Some(lead_max_ms), settings.sequence_start);
                Ring::new(config.layout, worker, lead, start, window, clock, observer)
                    .map(|ring| Self::Ring(Box::new(ring)))
                    .map_err(impossible)
            }
            _ => {
                let SlotWindow { worker, clock_value, window } = first;
                let (layout, value) = (config.layout, clock_value);
                Generator::with_observer(layout, worker, value, settings, window, clock, observer)
                    .map(Self::Plain)
                    .map_err(impossible)
            }
        }
    }

    #[inline]
    pub(crate) fn try_mint(&self) -> Result<u64, MintError> {
        match self {
            Self::Plain(generator) => generator.try_mint(),
            Self::Values(values) => values.try_mint(),
            Self::Ring(ring) => ring.try_mint(),
        }
    }

    pub(crate) fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        match self {
            Self::Plain(generator) => generator.try_fill(out),
            Self::Values(values) => values.try_fill(out),
            Self::Ring(ring) => ring.try_fill(out),
        }
    }

    /// Extends the window of the slot with this index to a mark that the store granted.
    pub(crate) fn extend_to(&self, index: usize, mark: UnixMillis) {
        match self {
            Self::Plain(generator) => generator.extend_to(mark),
            Self::Values(values) => {
                if let Some(value) = values.values().get(index) {
                    value.extend_to(mark);
                }
            }
            Self::Ring(ring) => ring.extend_to(mark),
        }
    }

    /// Closes for good; returns for each slot the end of everything taken.
    pub(crate) fn close(&self) -> Vec<UnixMillis> {
        match self {
            Self::Plain(generator) => vec![generator.close()],
            Self::Values(values) => values.values().iter().map(Generator::close).collect(),
            Self::Ring(ring) => vec![ring.close()],
        }
    }

    /// Returns the position of each slot, and whether the slot is needed.
    pub(crate) fn positions(&self) -> Vec<Position> {
        let mut positions = Vec::new();
        self.each_position(|_, position| positions.push(position));
        positions
    }

    /// Visits the same positions in order, with their indices.
    pub(crate) fn each_position(&self, mut see: impl FnMut(usize, Position)) {
        let wanted = |taken_until| Position { taken_until, wanted: true, held: false };
        match self {
            Self::Plain(generator) => see(0, wanted(generator.taken_until())),
            Self::Ring(ring) => see(0, wanted(ring.taken_until())),
            Self::Values(values) => {
                let all = values.values();
                let needed = needed_value(values.serving(), all, self.wall());
                for (index, value) in all.iter().enumerate() {
                    let taken_until = value.taken_until();
                    see(index, Position { taken_until, wanted: index == needed, held: false });
                }
            }
        }
    }

    /// Returns the end of everything minted from the first slot, and the end of its window.
    pub(crate) fn reach(&self) -> (UnixMillis, UnixMillis) {
        match self {
            Self::Plain(generator) => (generator.taken_until(), generator.mark()),
            Self::Ring(ring) => (ring.taken_until(), ring.mark()),
            Self::Values(values) => {
                let first = values.values().first();
                first.map_or_else(Default::default, |value| (value.taken_until(), value.mark()))
            }
        }
    }

    /// Returns the time in the next ID, while IDs are held at it because the clock was set back.
    pub(crate) fn held_at(&self) -> Option<UnixMillis> {
        match self {
            Self::Plain(generator) => generator.held_at(),
            Self::Values(_) | Self::Ring(_) => None,
        }
    }

    fn wall(&self) -> UnixMillis {
        match self {
            Self::Plain(generator) => generator.clock().unix_ms(),
            Self::Values(values) => values.clock().unix_ms(),
            Self::Ring(ring) => ring.clock().unix_ms(),
        }
    }

    /// Reads the clock, so that a step is reported even while no ID is minted.
    pub(crate) fn check_clock(&self) {
        if let Self::Plain(generator) = self {
            generator.check_clock();
        }
    }

    pub(crate) fn steps(&self) -> (u64, u64) {
        match self {
            Self::Plain(generator) => {
                let stats = generator.stats();
                (stats.steps_back, stats.steps_ahead)
            }
            _ => (0, 0),
        }
    }
}

/// Returns the index of the clock value that serves. When the clock is behind everything that this
/// value has taken, returns the next value that the clock is not behind.
fn needed_value(serving: usize, values: &[Generator<NodeClock>], wall: UnixMillis) -> usize {
    // The tick that the clock is in may be taken.
    let unit_ms = values.first().map_or(1, |value| u64::from(value.layout().unit_ms()));
    let limit = wall.saturating_add(unit_ms);
    let turns = (serving..values.len()).chain(0..serving.min(values.len()));
    let mut usable =
        turns.filter(|index| values.get(*index).is_some_and(|value| value.taken_until() <= limit));
    usable.next().unwrap_or(serving)
}

impl fmt::Debug for GeneratorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Plain(_) => "Plain",
            Self::Values(_) => "Values",
            Self::Ring(_) => "Ring",
        };
        f.debug_struct(name).field("positions", &self.positions()).finish()
    }
}
