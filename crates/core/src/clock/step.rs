//! Detection and reporting of clock steps.

use core::fmt;

use super::Reading;
use crate::sync::{AtomicU64, Ordering};

/// The direction in which the wall clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The clock was set back.
    Back,
    /// The clock was set forward.
    Ahead,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Back => "back",
            Self::Ahead => "ahead",
        })
    }
}

/// A generator's reaction to a clock step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The step affected no minted ID: minting continues from the current clock.
    Unaffected,
    /// Ticks follow elapsed time at half speed until the clock has caught up.
    Held,
    /// Ticks lead the clock, within the source's allowed lead.
    Led,
    /// Another clock value (or another cell of the ring) serves from here on.
    Moved,
    /// No ID is minted until the clock has caught up: callers get an error.
    Refused,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unaffected => "unaffected",
            Self::Held => "held",
            Self::Led => "led",
            Self::Moved => "moved",
            Self::Refused => "refused",
        })
    }
}

/// One step of the wall clock against elapsed time, as one generator observed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// Direction of the step.
    pub direction: Direction,
    /// Size of the step in milliseconds, rounded up.
    pub by_ms: u64,
    /// The source's policy, by its configuration name.
    pub policy: &'static str,
    /// The generator's reaction.
    pub outcome: Outcome,
}

impl fmt::Display for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, by_ms, policy, outcome } = self;
        write!(f, "the clock stepped {direction} by {by_ms} ms (policy {policy}: {outcome})")
    }
}

/// A receiver of clock steps: each step once, also when the policy hides it from callers. It runs
/// on the thread that met the step, while that thread mints: it must be short.
pub trait Observer {
    /// Receives one clock step.
    fn clock_step(&self, step: &ClockStep);
}

impl Observer for () {
    fn clock_step(&self, _: &ClockStep) {}
}

impl<O: Observer + ?Sized> Observer for &O {
    fn clock_step(&self, step: &ClockStep) {
        (**self).clock_step(step);
    }
}

#[cfg(feature = "std")]
impl<O: Observer + ?Sized> Observer for std::sync::Arc<O> {
    fn clock_step(&self, step: &ClockStep) {
        (**self).clock_step(step);
    }
}

/// A step whose outcome is not decided yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingStep {
    pub(crate) direction: Direction,
    pub(crate) by_ms: u64,
}

/// Smallest difference that counts as a step, in microseconds: smaller ones are the rounding and
/// the latency of two clock reads. Elapsed clocks are slewed together with the wall clock, so
/// between steps the difference stays constant.
const STEP_US_MIN: u64 = 500;

/// No reading yet.
const NEVER: u64 = u64::MAX;

/// A detector of wall time moving against elapsed time. Each step is returned to exactly one
/// caller.
#[derive(Debug)]
pub(crate) struct StepWatch {
    /// Wall minus elapsed time at the last reading, in microseconds, wrapping.
    offset_us: AtomicU64,
}

impl StepWatch {
    pub(crate) fn new() -> Self {
        Self { offset_us: AtomicU64::new(NEVER) }
    }

    pub(crate) fn observe(&self, reading: Reading) -> Option<PendingStep> {
        let offset_us = reading.wall_us.wrapping_sub(reading.elapsed_us);
        // Relaxed: no other data depends on this word. The compare-and-swap picks the thread that
        // reports.
        let last_us = self.offset_us.load(Ordering::Relaxed);
        let ahead_us = offset_us.wrapping_sub(last_us);
        let back_us = last_us.wrapping_sub(offset_us);
        let (direction, by_us) = if ahead_us < back_us {
            (Direction::Ahead, ahead_us)
        } else {
            (Direction::Back, back_us)
        };
        if last_us != NEVER && by_us < STEP_US_MIN {
            return None;
        }
        let won = self
            .offset_us
            .compare_exchange(last_us, offset_us, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        (won && last_us != NEVER).then_some(PendingStep { direction, by_ms: by_us.div_ceil(1_000) })
    }
}
