//! The decision whether, and how long, to wait after an error, for every way of waiting.

use crate::clock::Pause;
use crate::time::{ElapsedMillis, UnixMillis};

use super::refusal::Refusal;
use super::settings::{Rollback, Settings, WaitFor};

/// Longest wait without reading the clock again, in milliseconds: the clock may be set meanwhile.
const LOOK_EVERY_MS: u64 = 10;

/// The state that a waiting caller keeps between two attempts.
///
/// The blocking calls of the generators use it, and so can a caller with a timer of its own. After
/// each error the caller calls [`Patience::rest`], waits as it returns, and tries again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    rollback: Rollback,
    deadline: ElapsedMillis,
    /// The one wait that [`Rollback::Wait`] allows is over.
    waited_back: bool,
}

/// The wait before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
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

impl Patience {
    /// Returns a policy that waits as the settings allow, until `deadline` of the generator's
    /// elapsed clock.
    #[must_use]
    pub const fn until(deadline: ElapsedMillis, settings: &Settings) -> Self {
        Self { rollback: settings.rollback, deadline, waited_back: false }
    }

    /// Returns how long to wait after the error `why`, at elapsed time `now`.
    ///
    /// # Errors
    /// The error `why` itself: no wait helps, or the time is up.
    pub fn rest(&mut self, why: Refusal, now: ElapsedMillis) -> Result<Rest, Refusal> {
        let left_ms = self.deadline.since(now);
        if left_ms == 0 {
            return Err(why);
        }
        match why {
            Refusal::TickFull { next, .. } => {
                Ok(Rest::Until { wall: next, at_most_ms: left_ms.min(LOOK_EVERY_MS) })
            }
            Refusal::ClockBehind { by_ms, .. } => self.rest_back(by_ms, left_ms).ok_or(why),
            Refusal::WindowSpent { .. } => Ok(Rest::For { ms: 1 }),
            _ => Err(why),
        }
    }

    fn rest_back(&mut self, by_ms: u64, left_ms: u64) -> Option<Rest> {
        let ms = match self.rollback {
            Rollback::Wait(WaitFor::TwiceTheOffset { offset_max_ms }) if by_ms <= offset_max_ms => {
                by_ms.saturating_mul(2)
            }
            Rollback::Wait(WaitFor::Fixed { wait_ms }) => wait_ms,
            // The borrowed lead shrinks as time passes.
            Rollback::Borrow { .. } => {
                return Some(Rest::For { ms: left_ms.min(LOOK_EVERY_MS) });
            }
            _ => return None,
        };
        if self.waited_back || ms > left_ms {
            return None;
        }
        self.waited_back = true;
        Some(Rest::For { ms })
    }
}

impl Rest {
    /// Waits on the calling thread.
    pub fn take<C: Pause>(self, clock: &C) {
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
