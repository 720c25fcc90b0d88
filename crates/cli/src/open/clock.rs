//! The clock that this process mints by: the system clock, or in tests a clock with a fixed offset.

use snowmint_coord::sources::{NodeClock, NodeObserver};
use snowmint_core::clock::Reading;
use snowmint_core::{Clock, ClockStep, Observer, Pause, SystemClock, UnixMillis};
use std::sync::Arc;

use crate::terminal::exit::{Failure, Outcome};

/// Variable for tests only: offset of the wall clock, in milliseconds; negative for a clock that is
/// behind.
const OFFSET_VARIABLE: &str = "SNOWMINT_TEST_CLOCK_OFFSET_MS";

/// Returns the system clock, with the offset that a test sets.
pub(crate) fn clock() -> Outcome<NodeClock> {
    let Some(text) = std::env::var_os(OFFSET_VARIABLE) else { return Ok(Arc::new(SystemClock)) };
    let offset_ms = text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        Failure::usage(format!("{OFFSET_VARIABLE} is not a number of milliseconds; correct it"))
    })?;
    tracing::warn!(offset_ms, "clock offset set; for tests only");
    Ok(Arc::new(MovedClock { offset_ms }))
}

/// Returns the observer that logs clock steps.
pub(crate) fn observer() -> NodeObserver {
    Arc::new(Log)
}

#[derive(Clone, Copy, Debug)]
struct Log;

impl Observer for Log {
    fn clock_step(&self, step: &ClockStep) {
        tracing::warn!("{step}");
    }
}

/// A clock with a constant offset.
#[derive(Clone, Copy, Debug)]
struct MovedClock {
    offset_ms: i64,
}

impl Clock for MovedClock {
    fn unix_ms(&self) -> UnixMillis {
        UnixMillis::new(SystemClock.unix_ms().get().saturating_add_signed(self.offset_ms))
    }

    fn read(&self) -> Reading {
        let Reading { wall_us, elapsed_us } = SystemClock.read();
        let offset_us = self.offset_ms.saturating_mul(1_000);
        Reading { wall_us: wall_us.saturating_add_signed(offset_us), elapsed_us }
    }
}

impl Pause for MovedClock {
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
        let offset_ms = self.offset_ms.saturating_neg();
        let system = UnixMillis::new(wall.get().saturating_add_signed(offset_ms));
        SystemClock.pause_until(system, at_most_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_clock_is_off_by_its_offset() {
        for offset_ms in [-3_600_000_i64, 0, 3_600_000] {
            let clock = MovedClock { offset_ms };
            let moved = i128::from(clock.unix_ms().get());
            let read = i128::from(clock.read().wall().get());
            let system = i128::from(SystemClock.unix_ms().get());
            assert!((system + i128::from(offset_ms) - moved).abs() < 60_000, "{offset_ms}");
            assert!((read - moved).abs() < 60_000, "{offset_ms}");
        }
        let long_ago = MovedClock { offset_ms: i64::MIN };
        assert_eq!(long_ago.unix_ms(), UnixMillis::ZERO);
        long_ago.pause_until(UnixMillis::MAX, 1);
    }
}
