//! The decision whether, and how long, to wait after an error, for every way of waiting.

use crate::clock::Pause;
use crate::time::{ElapsedMillis, UnixMillis};

use super::error::MintError;
use super::settings::{Rollback, Settings};

/// Longest wait without reading the clock again, in milliseconds: the clock may be set meanwhile.
const READ_CLOCK_EVERY_MS: u64 = 10;

/// The state that a waiting caller keeps between two attempts.
///
/// The blocking calls of the generators use it, and so can a caller with a timer of its own. After
/// each error the caller calls [`WaitPolicy::next_step`], waits as it returns, and tries again.
#[derive(Clone, Copy, Debug)]
pub struct WaitPolicy {
    rollback: Rollback,
    deadline: ElapsedMillis,
    /// The one wait of [`Rollback::wait_for`] is over.
    waited_back: bool,
}

/// The wait before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStep {
    /// A wait until the wall clock may show `wall`, and no longer than `at_most_ms` of elapsed
    /// time.
    Until {
        /// Start of the next tick.
        wall: UnixMillis,
        /// Milliseconds after which the clock must be read again.
        at_most_ms: u64,
    },
    /// A wait by elapsed time alone: the wall clock cannot be trusted now.
    For {
        /// Milliseconds to wait; at least 1.
        ms: u64,
    },
}

impl WaitPolicy {
    /// Returns a policy that waits as the settings allow, until `deadline` of the generator's
    /// elapsed clock.
    #[must_use]
    pub const fn until(deadline: ElapsedMillis, settings: &Settings) -> Self {
        Self { rollback: settings.rollback, deadline, waited_back: false }
    }

    /// Returns how long to wait after `error`, at elapsed time `now`.
    ///
    /// # Errors
    /// `error` itself: no wait helps, or the time is up.
    pub fn next_step(
        &mut self,
        error: MintError,
        now: ElapsedMillis,
    ) -> Result<WaitStep, MintError> {
        let left_ms = self.deadline.since(now);
        if left_ms == 0 {
            return Err(error);
        }
        match error {
            MintError::TickFull { next, .. } => {
                Ok(WaitStep::Until { wall: next, at_most_ms: left_ms.min(READ_CLOCK_EVERY_MS) })
            }
            MintError::ClockBehind { by_ms, .. } => {
                self.wait_for_clock(by_ms, left_ms).ok_or(error)
            }
            MintError::WindowSpent { .. } => Ok(WaitStep::For { ms: 1 }),
            _ => Err(error),
        }
    }

    fn wait_for_clock(&mut self, by_ms: u64, left_ms: u64) -> Option<WaitStep> {
        // The borrowed lead shrinks as time passes.
        if matches!(self.rollback, Rollback::Borrow { .. }) {
            return Some(WaitStep::For { ms: left_ms.min(READ_CLOCK_EVERY_MS) });
        }
        let ms = self.rollback.wait_for()?.wait_ms(by_ms)?;
        if self.waited_back || ms > left_ms {
            return None;
        }
        self.waited_back = true;
        Some(WaitStep::For { ms })
    }
}

impl WaitStep {
    /// Waits on the calling thread.
    pub fn wait<C: Pause>(self, clock: &C) {
        match self {
            Self::Until { wall, at_most_ms } => clock.pause_until(wall, at_most_ms),
            Self::For { ms } => {
                let until = clock.read().elapsed().saturating_add(ms);
                loop {
                    let left_ms = until.since(clock.read().elapsed());
                    if left_ms == 0 {
                        return;
                    }
                    clock.pause_until(UnixMillis::MAX, left_ms);
                }
            }
        }
    }
}
