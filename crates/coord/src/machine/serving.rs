//! Decision which sections and global-order sources this member serves: it gives up those that it
//! cannot use, and those that peers cannot reach here.

use std::collections::BTreeSet;

use snowmint_core::ElapsedMillis;

use crate::ids::Incarnation;
use crate::model::member::{MemberStatus, Serves, UNREACHABLE_MAX};

/// Shortest time for which something is given up, in milliseconds.
const WITHDRAWAL_MS_MIN: u64 = 10_000;
/// Longest time, when it has to be given up again soon after each return.
const WITHDRAWAL_MS_MAX: u64 = 600_000;
/// Shortest time between two polls.
const POLL_MS_MIN: u64 = 100;
/// Wait before a status that did not arrive is announced again.
const ANNOUNCE_RETRY_MS: u64 = 500;

/// Withdrawal of a service while there is a reason, and for a while after.
#[derive(Clone, Copy, Debug)]
struct Withdrawal {
    until: Option<ElapsedMillis>,
    length_ms: u64,
    /// Time at which it was last resumed.
    back_at: Option<ElapsedMillis>,
}

impl Default for Withdrawal {
    fn default() -> Self {
        Self { until: None, length_ms: WITHDRAWAL_MS_MIN, back_at: None }
    }
}

impl Withdrawal {
    /// Returns whether it is given up at `now`.
    fn poll(&mut self, now: ElapsedMillis, reason: bool) -> bool {
        match self.until {
            None if reason => {
                let is_soon = self.back_at.is_some_and(|at| now.since(at) < self.length_ms);
                let longer_ms = self.length_ms.saturating_mul(2).min(WITHDRAWAL_MS_MAX);
                self.length_ms = if is_soon { longer_ms } else { WITHDRAWAL_MS_MIN };
                self.until = Some(now.saturating_add(self.length_ms));
            }
            Some(until) if reason => {
                self.until = Some(until.max(now.saturating_add(WITHDRAWAL_MS_MIN)))
            }
            Some(until) if now >= until => {
                (self.until, self.back_at) = (None, Some(now));
            }
            _ => {}
        }
        self.until.is_some()
    }
}

/// State known at a poll.
#[derive(Clone, Debug, Default)]
pub(crate) struct WithdrawalReasons {
    /// Our clock is wrong, or too far behind or ahead of the IDs after which this member has to
    /// mint.
    pub(crate) clock: bool,
    /// The journal cannot be written, so no window opens here.
    pub(crate) journal: bool,
    /// Most peers report that they cannot reach this member.
    pub(crate) unreached: bool,
    /// Peers that this member cannot reach.
    pub(crate) unreachable: BTreeSet<Incarnation>,
}

/// Status that a member announces.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    order: Withdrawal,
    all: Withdrawal,
    status: MemberStatus,
    /// Revision that the store is known to have.
    announced: u64,
    /// An announcement is in flight.
    busy: bool,
    again_at: ElapsedMillis,
    looked_at: Option<ElapsedMillis>,
    /// This process stops: it serves nothing from now on.
    is_stopping: bool,
}

impl Serving {
    /// Returns what this member serves.
    pub(crate) const fn serves(&self) -> Serves {
        self.status.serves
    }

    /// Withdraws everything for good, because this process stops.
    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        self.looked_at = None;
    }

    /// Returns whether this process stops.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Returns whether the store knows that this member serves nothing.
    pub(crate) fn is_stop_announced(&self) -> bool {
        self.status.serves == Serves::Nothing && self.announced >= self.status.revision
    }

    /// Returns whether a poll is due. Collecting the reasons takes time, and a driver may wake
    /// thousands of times a second.
    pub(crate) fn is_due(&mut self, now: ElapsedMillis) -> bool {
        let is_due = self.looked_at.is_none_or(|at| now.since(at) >= POLL_MS_MIN);
        if is_due {
            self.looked_at = Some(now);
        }
        is_due
    }

    /// Handles the reasons. Returns whether the served set has changed.
    pub(crate) fn poll(&mut self, now: ElapsedMillis, reasons: WithdrawalReasons) -> bool {
        let order = self.order.poll(now, reasons.clock);
        let all = self.all.poll(now, reasons.unreached || reasons.journal);
        let all = all || self.is_stopping;
        let serves = match (order, all) {
            (_, true) => Serves::Nothing,
            (true, false) => Serves::Counters,
            (false, false) => Serves::All,
        };
        let unreachable: Vec<_> = reasons.unreachable.into_iter().take(UNREACHABLE_MAX).collect();
        let before = self.status.serves;
        if serves != before || unreachable != self.status.unreachable {
            let revision = self.status.revision.saturating_add(1);
            self.status = MemberStatus { revision, serves, unreachable };
        }
        serves != before
    }

    /// Returns the status to announce now, if any.
    pub(crate) fn announcement(&mut self, now: ElapsedMillis) -> Option<MemberStatus> {
        let is_due = !self.busy && self.announced < self.status.revision && now >= self.again_at;
        is_due.then(|| {
            self.busy = true;
            self.status.clone()
        })
    }

    /// Records whether the announcement of this revision arrived.
    pub(crate) fn announced(&mut self, now: ElapsedMillis, revision: u64, arrived: bool) {
        self.busy = false;
        if arrived {
            self.announced = self.announced.max(revision);
        } else {
            self.again_at = now.saturating_add(ANNOUNCE_RETRY_MS);
        }
    }

    /// Records the begin of a membership, of which the store knows nothing yet.
    pub(crate) fn joined(&mut self) {
        (self.announced, self.busy) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> ElapsedMillis {
        ElapsedMillis::new(ms)
    }

    fn clock(clock: bool) -> WithdrawalReasons {
        WithdrawalReasons { clock, ..WithdrawalReasons::default() }
    }

    #[test]
    fn unusable_service_is_withdrawn_at_once_for_a_while() {
        let mut serving = Serving::default();
        assert!(!serving.poll(at(0), clock(false)));
        assert_eq!(serving.announcement(at(0)), None, "nothing to say");
        assert!(serving.poll(at(5_000), clock(true)));
        assert_eq!(serving.serves(), Serves::Counters);
        // The reason ends with the ownership, so it is not resumed at once.
        assert!(!serving.poll(at(5_001), clock(false)));
        assert!(!serving.poll(at(14_999), clock(false)));
        assert!(serving.poll(at(15_000), clock(false)));
        assert_eq!(serving.serves(), Serves::All);
    }

    #[test]
    fn lasting_or_repeated_reasons_extend_the_withdrawal() {
        let mut serving = Serving::default();
        for ms in 0..60 {
            assert_eq!(serving.poll(at(ms * 1_000), clock(true)), ms == 0);
        }
        assert!(!serving.poll(at(68_999), clock(false)));
        let mut now = 69_000;
        assert!(serving.poll(at(now), clock(false)));
        let mut away = Vec::new();
        for _ in 0..8 {
            now += 1_000;
            assert!(serving.poll(at(now), clock(true)));
            let gone_at = now;
            while serving.serves() != Serves::All {
                now += 1_000;
                serving.poll(at(now), clock(false));
            }
            away.push((now - gone_at) / 1_000);
        }
        assert_eq!(away, [20, 40, 80, 160, 320, 600, 600, 600]);
        now += WITHDRAWAL_MS_MAX;
        serving.poll(at(now), clock(true));
        assert!(!serving.poll(at(now + 9_999), clock(false)));
        assert!(serving.poll(at(now + 10_000), clock(false)), "it held for long: starts again");
    }

    #[test]
    fn unreachable_member_serves_nothing() {
        let mut serving = Serving::default();
        let reasons = |clock, unreached| WithdrawalReasons {
            clock,
            unreached,
            ..WithdrawalReasons::default()
        };
        assert!(serving.poll(at(0), reasons(true, true)));
        assert_eq!(serving.serves(), Serves::Nothing);
        assert!(serving.poll(at(10_000), reasons(true, false)));
        assert_eq!(serving.serves(), Serves::Counters);
    }

    #[test]
    fn stopping_member_serves_nothing_from_the_next_poll_on() {
        let mut serving = Serving::default();
        assert!(serving.is_due(at(0)));
        assert!(!serving.is_due(at(1)));
        serving.stop();
        assert!(serving.is_due(at(1)), "a stop does not wait for the next poll");
        assert!(!serving.is_stop_announced(), "before the poll");
        assert!(serving.poll(at(1), clock(false)));
        assert_eq!(serving.serves(), Serves::Nothing);
        assert!(!serving.is_stop_announced());
        serving.announced(at(2), 1, true);
        assert!(serving.is_stop_announced());
        assert!(!serving.poll(at(WITHDRAWAL_MS_MAX), clock(false)), "it never resumes");
    }

    #[test]
    fn a_status_is_announced_until_it_has_arrived() {
        let mut serving = Serving::default();
        let unreachable = BTreeSet::from([Incarnation::new(9)]);
        let reasons = || WithdrawalReasons {
            unreachable: unreachable.clone(),
            ..WithdrawalReasons::default()
        };
        assert!(!serving.poll(at(0), reasons()), "that is about another");
        let status = serving.announcement(at(0)).unwrap();
        assert_eq!((status.revision, status.unreachable.len()), (1, 1));
        assert_eq!(serving.announcement(at(0)), None, "one at a time");
        serving.announced(at(10), 1, false);
        assert_eq!(serving.announcement(at(11)), None);
        assert_eq!(serving.announcement(at(510)), Some(status.clone()));
        // The status changes while the announcement is in flight.
        serving.poll(at(511), clock(true));
        serving.announced(at(512), 1, true);
        assert_eq!(serving.announcement(at(512)).unwrap().revision, 2);
        serving.announced(at(513), 2, true);
        assert_eq!(serving.announcement(at(9_000)), None);
        serving.joined();
        assert_eq!(serving.announcement(at(9_000)).unwrap().revision, 2);
    }

    #[test]
    fn of_many_others_as_many_are_named_as_fit() {
        let mut serving = Serving::default();
        let unreachable = (0..100).map(Incarnation::new).collect();
        serving.poll(at(0), WithdrawalReasons { unreachable, ..WithdrawalReasons::default() });
        let status = serving.announcement(at(0)).unwrap();
        assert_eq!(status.unreachable.len(), UNREACHABLE_MAX);
        status.check().unwrap();
    }
}
