//! Whether a wall clock may be believed when it jumps ahead.

use snowmint_core::UnixMillis;

use super::Now;
use crate::error::ErrorKind;

/// Holds a wall clock against elapsed time, for stores that have no clock of their own to do so.
///
/// A clock that goes back harms nobody: marks do not follow it. A clock that jumps years ahead would
/// push a slot's mark years ahead, and leave it there when the clock is corrected. So time that moves
/// marks follows the wall clock only as far as elapsed time and one tolerance allow.
#[derive(Clone, Copy, Debug)]
pub struct ClockGuard {
    tolerance_ms: u64,
    /// The latest time believed, and when that was; none before the first look.
    anchor: Option<Now>,
}

impl ClockGuard {
    /// A guard that believes jumps ahead of at most `tolerance_ms`.
    #[must_use]
    pub const fn new(tolerance_ms: u64) -> Self {
        Self { tolerance_ms, anchor: None }
    }

    /// The part of the wall time that is believed, and by how much the clock lies beyond it.
    ///
    /// The first look believes what it sees: there is nothing to compare it with.
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
        // A clock that was set back may return to where elapsed time says it would be by now.
        let wall = seen.wall.max(expected);
        self.anchor = Some(Now { wall, ..seen });
        (seen.wall, 0)
    }

    /// How far ahead a jump is believed.
    #[must_use]
    pub const fn tolerance_ms(&self) -> u64 {
        self.tolerance_ms
    }

    /// Believes the clock as it is from here on: somebody who knows better says so.
    pub fn believe(&mut self, seen: Now) {
        self.anchor = Some(seen);
    }
}

/// Whether our clock is near enough to another.
///
/// # Errors
/// `ClockAhead`, `ClockBehind`.
pub(crate) fn compare_clocks(
    ours: UnixMillis,
    theirs: UnixMillis,
    limit_ms: u64,
    compared_with: String,
) -> Result<(), ErrorKind> {
    let (ahead_ms, behind_ms) = (ours.since(theirs), theirs.since(ours));
    if ahead_ms > limit_ms {
        return Err(ErrorKind::ClockAhead { ahead_ms, limit_ms, compared_with });
    }
    if behind_ms > limit_ms {
        return Err(ErrorKind::ClockBehind { behind_ms, limit_ms, compared_with });
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
