//! Retry policy of a source: which of its errors are worth a wait, and for how long.

use super::{SourceInner, WINDOW_WAIT_MS};
use crate::error::{Error, ErrorKind, Retry};
use crate::spec::{Clockwork, Plan};

/// Divisor of the wait: a caller that waits for something imminent tries again after this part of
/// the time waited so far.
const WAITED_SHARE: u64 = 8;
/// Longest wait for something imminent, in milliseconds. Each try may call the store.
const SOON_MS_MAX: u64 = 50;

/// State that one waiting caller keeps between two tries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    clockwork: Option<Clockwork>,
    /// Whether the one wait that the policy `wait` allows is over.
    waited_back: bool,
    /// Milliseconds waited so far for something imminent.
    waited_ms: u64,
}

impl Patience {
    pub(super) fn of(source: &SourceInner) -> Self {
        let clockwork = match &source.defined.load().plan {
            Plan::Snowflake(plan) => Some(plan.clockwork),
            _ => None,
        };
        Self { clockwork, waited_back: false, waited_ms: 0 }
    }

    /// Returns the milliseconds to wait before the next try. `None` when no wait helps, or the
    /// policy allows none within `left_ms`.
    pub fn rest_ms(&mut self, why: &Error, left_ms: u64) -> Option<u64> {
        let wait_ms = match (why.kind(), why.retry()) {
            // The driver was woken: the window may arrive any moment.
            (ErrorKind::WindowSpent { .. } | ErrorKind::Unavailable, _) => {
                self.rest_soon_ms(left_ms)
            }
            (_, Retry::Never) => return None,
            // The present owner may relinquish it any moment.
            (ErrorKind::NotOwner { .. }, Retry::AfterMs(_)) => self.rest_soon_ms(left_ms),
            (ErrorKind::ClockBehind { behind_ms, .. }, Retry::AfterMs(hint_ms)) => {
                self.rest_back_ms(*behind_ms, hint_ms)?
            }
            (_, Retry::Now) => 0,
            (_, Retry::AfterMs(ms)) => ms,
        };
        (left_ms > 0 && wait_ms <= left_ms).then_some(wait_ms)
    }

    /// Returns the wait before the next try for something imminent.
    fn rest_soon_ms(&mut self, left_ms: u64) -> u64 {
        let wait_ms = (self.waited_ms / WAITED_SHARE).clamp(WINDOW_WAIT_MS, SOON_MS_MAX);
        // The last try is at the end.
        let wait_ms = wait_ms.min(left_ms.max(WINDOW_WAIT_MS));
        self.waited_ms = self.waited_ms.saturating_add(wait_ms);
        wait_ms
    }

    /// Returns the wait while the clock is behind, by the rules of core's blocking generators.
    fn rest_back_ms(&mut self, behind_ms: u64, hint_ms: u64) -> Option<u64> {
        let wait_ms = match self.clockwork {
            Some(Clockwork::Fail) => return None,
            Some(Clockwork::Wait { fixed_ms: Some(ms), .. }) => ms,
            Some(Clockwork::Wait { wait_max_ms, fixed_ms: None }) if behind_ms <= wait_max_ms => {
                behind_ms.saturating_mul(2)
            }
            Some(Clockwork::Wait { .. }) => return None,
            // A lead that shrinks as time passes.
            _ => return Some(hint_ms),
        };
        if self.waited_back {
            return None;
        }
        self.waited_back = true;
        Some(wait_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(clockwork: Option<Clockwork>) -> Patience {
        Patience { clockwork, waited_back: false, waited_ms: 0 }
    }

    fn behind(ms: u64) -> Error {
        let message = format!("clock is {ms} ms behind the last ID of orders");
        Error::clock_behind(ms, 0, message).with_retry(Retry::AfterMs(ms))
    }

    fn rests(clockwork: Clockwork, behind_ms: u64) -> [Option<u64>; 2] {
        let mut patience = patience(Some(clockwork));
        [(); 2].map(|()| patience.rest_ms(&behind(behind_ms), 1_000))
    }

    #[test]
    fn each_policy_waits_as_defined() {
        let twice = Clockwork::Wait { wait_max_ms: 5, fixed_ms: None };
        assert_eq!(rests(twice, 5), [Some(10), None], "once");
        assert_eq!(rests(twice, 6), [None, None]);
        let fixed = Clockwork::Wait { wait_max_ms: 5, fixed_ms: Some(3) };
        assert_eq!(rests(fixed, 500), [Some(3), None]);
        assert_eq!(rests(Clockwork::Fail, 1), [None, None]);
        assert_eq!(rests(Clockwork::Hold { lead_max_ms: 5 }, 7), [Some(7), Some(7)]);
        assert_eq!(rests(twice, 0), [Some(0), None]);
    }

    #[test]
    fn no_wait_is_longer_than_the_time_that_is_left() {
        let mut patience = patience(None);
        assert_eq!(patience.rest_ms(&behind(9), 8), None);
        assert_eq!(patience.rest_ms(&behind(8), 8), Some(8));
        assert_eq!(patience.rest_ms(&behind(0), 0), None);
    }

    #[test]
    fn long_waits_retry_less_often_and_at_the_end() {
        let why = Error::unavailable("store is unavailable");
        let (mut patience, mut at_ms, mut waits) = (patience(None), 0, Vec::new());
        while let Some(wait_ms) = patience.rest_ms(&why, 10_003 - at_ms) {
            // Never later than an eighth of the whole wait, except for the shortest wait.
            assert!(wait_ms <= WINDOW_WAIT_MS || wait_ms * WAITED_SHARE <= at_ms, "{at_ms}");
            at_ms += wait_ms;
            waits.push(wait_ms);
        }
        assert_eq!(waits[..9], [5; 9]);
        assert!(at_ms > 10_003 - WINDOW_WAIT_MS && waits.iter().max() == Some(&SOON_MS_MAX));
        assert!((200..260).contains(&waits.len()), "{}", waits.len());
    }
}
