//! Wall clocks that drift, freeze and oscillate while time passes.

use snowmint_core::ManualClock;

/// Movement of a wall clock that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Steady,
    /// Fast by this many thousandths.
    Fast(u64),
    /// Slow by this many thousandths.
    Slow(u64),
    /// Stands still.
    Frozen,
    /// Ahead by this many milliseconds, and right again, by turns.
    Oscillating(u64),
}

/// The clock's state between two moments.
#[derive(Debug)]
pub(super) struct Wall {
    pub(super) mood: Mood,
    ahead: bool,
}

impl Wall {
    pub(super) const fn new() -> Self {
        Self { mood: Mood::Steady, ahead: false }
    }

    /// Lets time pass: the clock follows in its own way, and its elapsed time advances by
    /// `elapsed_ms`.
    pub(super) fn pass(&mut self, clock: &ManualClock, ms: u64, elapsed_ms: u64) {
        clock.freeze_for_ms(elapsed_ms);
        if self.mood != Mood::Frozen {
            clock.step_ahead_ms(ms);
        }
        match self.mood {
            Mood::Steady | Mood::Frozen => {}
            Mood::Fast(thousandths) => clock.step_ahead_ms(ms * thousandths / 1_000),
            Mood::Slow(thousandths) => clock.step_back_ms(ms * thousandths / 1_000),
            Mood::Oscillating(by_ms) => {
                if self.ahead {
                    clock.step_back_ms(by_ms);
                } else {
                    clock.step_ahead_ms(by_ms);
                }
                self.ahead = !self.ahead;
            }
        }
    }
}
