//! A clock for tests and simulations.

use super::{Clock, Pause, Reading};
use crate::sync::{AtomicU64, Ordering};
use crate::time::UnixMillis;

/// A clock that moves only by its methods, and can be set back. Shared by reference.
///
/// [`ManualClock::advance_ms`] moves wall and elapsed time; [`ManualClock::set`] moves only the
/// wall time, as an operator or NTP does.
#[derive(Debug)]
pub struct ManualClock {
    wall_us: AtomicU64,
    elapsed_us: AtomicU64,
}

impl ManualClock {
    /// Returns a clock that shows `wall`, with an elapsed time of zero.
    #[must_use]
    pub fn new(wall: UnixMillis) -> Self {
        Self {
            wall_us: AtomicU64::new(wall.get().saturating_mul(1_000)),
            elapsed_us: AtomicU64::new(0),
        }
    }

    /// Moves wall and elapsed time ahead by `ms` milliseconds.
    pub fn advance_ms(&self, ms: u64) {
        self.advance_us(ms.saturating_mul(1_000));
    }

    /// Moves wall and elapsed time ahead by `us` microseconds.
    pub fn advance_us(&self, us: u64) {
        self.elapsed_us.fetch_add(us, Ordering::SeqCst);
        self.wall_us.fetch_add(us, Ordering::SeqCst);
    }

    /// Moves only the elapsed time ahead, as on a machine with a frozen wall clock.
    pub fn freeze_for_ms(&self, ms: u64) {
        self.elapsed_us.fetch_add(ms.saturating_mul(1_000), Ordering::SeqCst);
    }

    /// Sets the wall clock; elapsed time stays.
    pub fn set(&self, wall: UnixMillis) {
        self.wall_us.store(wall.get().saturating_mul(1_000), Ordering::SeqCst);
    }

    /// Sets the wall clock back by `ms`, at most to 1970.
    pub fn step_back_ms(&self, ms: u64) {
        let wall_us = self.wall_us.load(Ordering::SeqCst);
        self.wall_us.store(wall_us.saturating_sub(ms.saturating_mul(1_000)), Ordering::SeqCst);
    }

    /// Sets the wall clock ahead by `ms`.
    pub fn step_ahead_ms(&self, ms: u64) {
        self.wall_us.fetch_add(ms.saturating_mul(1_000), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn unix_ms(&self) -> UnixMillis {
        self.read().wall()
    }

    fn read(&self) -> Reading {
        Reading {
            wall_us: self.wall_us.load(Ordering::SeqCst),
            elapsed_us: self.elapsed_us.load(Ordering::SeqCst),
        }
    }
}

impl Pause for ManualClock {
    /// Advances the clock at once: up to `wall`, by no more than `at_most_ms`.
    fn pause_until(&self, wall: UnixMillis, at_most_ms: u64) {
        let left_us = wall.get().saturating_mul(1_000).saturating_sub(self.read().wall_us);
        self.advance_us(left_us.min(at_most_ms.saturating_mul(1_000)));
    }
}
