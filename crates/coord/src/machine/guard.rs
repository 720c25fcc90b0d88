//! Limits on wall clocks that jump ahead.

use snowmint_core::UnixMillis;

use super::Now;
use crate::error::{Error, Result};

/// Check of a wall clock against elapsed time, for stores without a clock of their own.
///
/// A clock that steps back does no harm: marks do not follow it. A clock that jumps years ahead
/// would push a slot's mark years ahead, and leave it there when the clock is corrected. So the
/// time that moves marks follows the wall clock only as far as elapsed time plus one tolerance.
#[derive(Clone, Copy, Debug)]
pub struct ClockGuard {
    tolerance_ms: u64,
    /// The latest accepted time, and the elapsed time at which it was accepted; none before the
    /// first poll.
    anchor: Option<Now>,
}

impl ClockGuard {
    /// Creates a guard that accepts jumps ahead of at most `tolerance_ms`.
    #[must_use]
    pub const fn new(tolerance_ms: u64) -> Self {
        Self { tolerance_ms, anchor: None }
    }

    /// Returns the accepted wall time, and by how many milliseconds the clock lies beyond it.
    ///
    /// The first call accepts any time: there is nothing to compare it with.
    pub fn vet(&mut self, seen: Now) -> (UnixMillis, u64) {
        let Some(anchor) = self.anchor else {
            self.anchor = Some(seen);
            return (seen.wall, 0);
        };
        let expected = anchor.wall.saturating_add(seen.elapsed.since(anchor.elapsed));
        let limit = expected.saturating_add(self.tolerance_ms);
        if seen.wall > limit {
            return (expected, seen.wall.since(expected));
        }
        // A clock that was set back may return to the time that elapsed time predicts.
        let wall = seen.wall.max(expected);
        self.anchor = Some(Now { wall, ..seen });
        (seen.wall, 0)
    }

    /// Returns the largest accepted jump ahead, in milliseconds.
    #[must_use]
    pub const fn tolerance_ms(&self) -> u64 {
        self.tolerance_ms
    }

    /// Accepts the present time of the clock, and compares later times with it: a better source has
    /// confirmed it.
    pub fn believe(&mut self, seen: Now) {
        self.anchor = Some(seen);
    }
}

/// Checks that our clock is at most `limit_ms` from another.
///
/// # Errors
/// `ClockAhead` or `ClockBehind` beyond `limit_ms`.
pub(crate) fn compare_clocks(
    ours: UnixMillis,
    theirs: UnixMillis,
    limit_ms: u64,
    whose: &str,
) -> Result<()> {
    let (ahead_ms, behind_ms) = (ours.since(theirs), theirs.since(ours));
    if ahead_ms > limit_ms {
        let message = format!(
            "this clock is {ahead_ms} ms ahead of {whose}, limit {limit_ms} ms; check both clocks"
        );
        return Err(Error::clock_ahead(ahead_ms, limit_ms, message));
    }
    if behind_ms > limit_ms {
        let message = format!(
            "this clock is {behind_ms} ms behind {whose}, limit {limit_ms} ms; check both clocks"
        );
        return Err(Error::clock_behind(behind_ms, limit_ms, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use snowmint_core::ElapsedMillis;

    use super::*;

    fn at(wall: u64, elapsed: u64) -> Now {
        Now { wall: UnixMillis::new(wall), elapsed: ElapsedMillis::new(elapsed), chance: || 0 }
    }

    fn vet(guard: &mut ClockGuard, wall: u64, elapsed: u64) -> (u64, u64) {
        let (believed, beyond) = guard.vet(at(wall, elapsed));
        (believed.get(), beyond)
    }

    #[test]
    fn a_jump_is_believed_up_to_the_tolerance() {
        for (jump, believed, beyond) in
            [(999, 11_999, 0), (1_000, 12_000, 0), (1_001, 11_000, 1_001)]
        {
            let mut guard = ClockGuard::new(1_000);
            assert_eq!(vet(&mut guard, 10_000, 0), (10_000, 0));
            assert_eq!(vet(&mut guard, 11_000 + jump, 1_000), (believed, beyond));
        }
    }

    #[test]
    fn ten_years_ahead_are_never_believed_and_the_way_back_is() {
        const YEARS_MS: u64 = 10 * 31_556_952_000;
        let mut guard = ClockGuard::new(1_000);
        vet(&mut guard, 10_000, 0);
        for elapsed in 1..1_000 {
            let (believed, beyond) = vet(&mut guard, 10_000 + elapsed + YEARS_MS, elapsed);
            assert_eq!((believed, beyond), (10_000 + elapsed, YEARS_MS));
        }
        assert_eq!(vet(&mut guard, 11_000, 1_000), (11_000, 0));
    }

    #[test]
    fn a_clock_set_back_may_return_to_where_it_would_be() {
        let mut guard = ClockGuard::new(1_000);
        vet(&mut guard, 1_000_000, 0);
        assert_eq!(vet(&mut guard, 5, 10), (5, 0));
        assert_eq!(vet(&mut guard, 1_000_100, 100), (1_000_100, 0));
        assert_eq!(vet(&mut guard, 1_002_001, 1_000), (1_001_000, 1_001));
        guard.believe(at(1_002_001, 1_000));
        assert_eq!(vet(&mut guard, 1_002_002, 1_001), (1_002_002, 0));
    }
}
