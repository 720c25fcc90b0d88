//! Which refusals of a source are worth a wait, and how long: by the source's own policy.

use super::{SourceInner, WINDOW_WAIT_MS};
use crate::error::{Error, ErrorKind, Retry};
use crate::spec::{Clockwork, Plan};

/// What one caller who waits remembers between two tries.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    clockwork: Option<Clockwork>,
    /// The one wait that the policy `wait` allows is over.
    waited_back: bool,
}

impl Patience {
    pub(super) fn of(source: &SourceInner) -> Self {
        let clockwork = match &source.defined.load().plan {
            Plan::Snowflake(plan) => Some(plan.clockwork),
            _ => None,
        };
        Self { clockwork, waited_back: false }
    }

    /// How long to wait before the next try, in milliseconds; none when no wait helps, or the policy
    /// allows none within `left_ms`.
    pub fn rest_ms(&mut self, why: &Error, left_ms: u64) -> Option<u64> {
        let wait_ms = match (why.kind(), why.retry()) {
            // The driver was woken: the window may be there any moment.
            (ErrorKind::WindowSpent { .. } | ErrorKind::Unavailable { .. }, _) => WINDOW_WAIT_MS,
            (_, Retry::Never) => return None,
            (ErrorKind::ClockBehind { behind_ms, .. }, Retry::AfterMs(hint_ms)) => {
                self.rest_back_ms(*behind_ms, hint_ms)?
            }
            (_, Retry::Now) => 0,
            (_, Retry::AfterMs(ms)) => ms,
        };
        (left_ms > 0 && wait_ms <= left_ms).then_some(wait_ms)
    }

    /// While the clock is behind: as core's blocking generators wait.
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

    fn behind(ms: u64) -> Error {
        let kind =
            ErrorKind::ClockBehind { behind_ms: ms, limit_ms: 0, compared_with: "orders".into() };
        Error::new("mint", kind).with_retry(Retry::AfterMs(ms))
    }

    fn rests(clockwork: Clockwork, behind_ms: u64) -> [Option<u64>; 2] {
        let mut patience = Patience { clockwork: Some(clockwork), waited_back: false };
        [(); 2].map(|()| patience.rest_ms(&behind(behind_ms), 1_000))
    }

    #[test]
    fn each_policy_waits_as_it_says() {
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
        let mut patience = Patience { clockwork: None, waited_back: false };
        assert_eq!(patience.rest_ms(&behind(9), 8), None);
        assert_eq!(patience.rest_ms(&behind(8), 8), Some(8));
        assert_eq!(patience.rest_ms(&behind(0), 0), None);
    }
}
