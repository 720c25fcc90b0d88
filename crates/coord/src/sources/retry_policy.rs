//! Retry policy of a source: which of its errors are worth a wait, and for how long.

use super::deadline::Deadline;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::platform::backoff::backoff_ms;
use crate::spec::{Plan, RollbackPlan};

/// Milliseconds that a wait for a window may last before the next check.
pub(super) const WINDOW_WAIT_MS: u64 = 5;
/// Divisor of the wait: a caller that waits for something imminent tries again after this part of
/// the time waited so far.
const WAITED_SHARE: u64 = 8;
/// Longest wait for something imminent, in milliseconds. Each try may call the store.
const SOON_MS_MAX: u64 = 50;

/// State that one waiting caller keeps between two tries.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    rollback_plan: Option<RollbackPlan>,
    /// Whether the one wait that the policy allows is over.
    waited_back: bool,
    /// Milliseconds waited so far for something imminent.
    waited_ms: u64,
    /// Failed calls of stores since the last one that succeeded.
    pub(super) failures: u32,
}

impl RetryPolicy {
    pub(super) fn of(plan: &Plan) -> Self {
        let rollback_plan = match plan {
            Plan::Snowflake(plan) => Some(plan.rollback_plan),
            _ => None,
        };
        Self { rollback_plan, waited_back: false, waited_ms: 0, failures: 0 }
    }

    /// Returns the milliseconds to wait before the next try. `None` when no wait helps, or the
    /// policy allows none within `left_ms`.
    pub fn wait_ms_after(&mut self, error: &Error, left_ms: u64) -> Option<u64> {
        let wait_ms = match (error.kind(), error.retry()) {
            // The driver was woken: the window may arrive any moment.
            (ErrorKind::WindowSpent { .. } | ErrorKind::Unavailable, _) => {
                self.wait_soon_ms(left_ms)
            }
            (_, Retry::Never) => return None,
            // The present owner may relinquish it any moment.
            (ErrorKind::NotOwner { .. }, Retry::AfterMs(_)) => self.wait_soon_ms(left_ms),
            (ErrorKind::ClockBehind { behind_ms, .. }, Retry::AfterMs(hint_ms)) => {
                self.wait_behind_ms(*behind_ms, hint_ms)?
            }
            (_, Retry::Now) => 0,
            (_, Retry::AfterMs(ms)) => ms,
        };
        (left_ms > 0 && wait_ms <= left_ms).then_some(wait_ms)
    }

    /// Waits after a failed call of a store, before the next one. Fails with its error when no wait
    /// helps.
    pub(super) async fn wait_after(&mut self, error: Error, deadline: &Deadline<'_>) -> Result<()> {
        let left_ms = deadline.left_ms();
        let Some(mut wait_ms) = self.wait_ms_after(&error, left_ms) else { return Err(error) };
        // An unreachable store is called less and less often.
        if matches!(error.kind(), ErrorKind::Unavailable) {
            self.failures = self.failures.saturating_add(1);
            wait_ms = backoff_ms(self.failures).min(left_ms);
        }
        deadline.timer.sleep_ms(wait_ms.max(1)).await;
        Ok(())
    }

    /// Returns the wait before the next try for something imminent.
    fn wait_soon_ms(&mut self, left_ms: u64) -> u64 {
        let wait_ms = (self.waited_ms / WAITED_SHARE).clamp(WINDOW_WAIT_MS, SOON_MS_MAX);
        // The last try is at the end.
        let wait_ms = wait_ms.min(left_ms.max(WINDOW_WAIT_MS));
        self.waited_ms = self.waited_ms.saturating_add(wait_ms);
        wait_ms
    }

    /// Returns the wait while the clock is behind, by the rules of core's blocking generators.
    fn wait_behind_ms(&mut self, behind_ms: u64, hint_ms: u64) -> Option<u64> {
        if self.rollback_plan == Some(RollbackPlan::Fail) {
            return None;
        }
        let Some(wait_for) = self.rollback_plan.and_then(|plan| plan.of_generator().wait_for())
        else {
            // A lead that shrinks as time passes.
            return Some(hint_ms);
        };
        let wait_ms = wait_for.wait_ms(behind_ms)?;
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

    fn retry_policy(rollback_plan: Option<RollbackPlan>) -> RetryPolicy {
        RetryPolicy { rollback_plan, waited_back: false, waited_ms: 0, failures: 0 }
    }

    fn behind(ms: u64) -> Error {
        let message = format!("clock is {ms} ms behind the last ID of orders");
        Error::clock_behind(ms, 0, message).with_retry(Retry::AfterMs(ms))
    }

    fn two_waits(rollback_plan: RollbackPlan, behind_ms: u64) -> [Option<u64>; 2] {
        let mut retry_policy = retry_policy(Some(rollback_plan));
        [(); 2].map(|()| retry_policy.wait_ms_after(&behind(behind_ms), 1_000))
    }

    #[test]
    fn each_policy_waits_as_defined() {
        let twice = RollbackPlan::Wait { wait_max_ms: 5, fixed_ms: None };
        assert_eq!(two_waits(twice, 5), [Some(10), None], "once");
        assert_eq!(two_waits(twice, 6), [None, None]);
        let fixed = RollbackPlan::Wait { wait_max_ms: 5, fixed_ms: Some(3) };
        assert_eq!(two_waits(fixed, 500), [Some(3), None]);
        assert_eq!(two_waits(RollbackPlan::Fail, 1), [None, None]);
        assert_eq!(two_waits(RollbackPlan::Hold { lead_max_ms: 5 }, 7), [Some(7), Some(7)]);
        assert_eq!(two_waits(twice, 0), [Some(0), None]);
    }

    #[test]
    fn no_wait_is_longer_than_the_time_that_is_left() {
        let mut retry_policy = retry_policy(None);
        assert_eq!(retry_policy.wait_ms_after(&behind(9), 8), None);
        assert_eq!(retry_policy.wait_ms_after(&behind(8), 8), Some(8));
        assert_eq!(retry_policy.wait_ms_after(&behind(0), 0), None);
    }

    #[test]
    fn long_waits_retry_less_often_and_at_the_end() {
        let error = Error::unavailable("store is unavailable");
        let (mut retry_policy, mut at_ms, mut waits) = (retry_policy(None), 0, Vec::new());
        while let Some(wait_ms) = retry_policy.wait_ms_after(&error, 10_003 - at_ms) {
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
