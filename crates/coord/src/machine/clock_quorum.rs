//! Quorum of other members' clocks, for stores without a clock of their own.

use std::collections::BTreeMap;

use snowmint_core::{ElapsedMillis, UnixMillis};

use crate::ids::Incarnation;
use crate::model::member::MemberInfo;

/// Smallest number of other clocks: when two clocks disagree, it is unknown which one is wrong.
const OTHERS_MIN: usize = 2;
/// Interval at which an idle node reads other clocks, even if they are reported more often.
pub(crate) const IDLE_POLL_MS: u64 = 10_000;

/// Other members' clocks, as their renewals show them. Embedded clients that join through servers
/// do not count: any holder of a token for joining could outvote the servers.
///
/// A member counts as present by elapsed time: its count of renewals rises between two looks. Our
/// wall clock is the one in question: if it is wrong, all members that it could be compared with
/// would seem gone.
#[derive(Debug, Default)]
pub(crate) struct ClockQuorum {
    /// Start of the last look.
    requested_at: Option<ElapsedMillis>,
    known: BTreeMap<Incarnation, KnownMember>,
}

/// State of one member at the last look.
#[derive(Clone, Copy, Debug)]
struct KnownMember {
    renewals: u64,
    ttl_ms: u64,
    sample: UnixMillis,
    /// Time at which this count was first seen.
    since: ElapsedMillis,
    /// Largest age of the sample at that time; none if it is unknown.
    age_ms_max: Option<u64>,
    /// Whether the member is live by our own wall clock.
    looks_live: bool,
}

impl KnownMember {
    /// Returns the member's clock at `now`, and by how much it may be wrong; none if the last
    /// renewal is too old.
    fn reading(&self, now: ElapsedMillis) -> Option<(UnixMillis, u64)> {
        let passed_ms = now.since(self.since);
        // After a gap between looks as long as a suspend, and longer than an idle node's, too
        // little is known about the sample.
        let age_ms_most = self.ttl_ms.max(IDLE_POLL_MS).saturating_mul(2);
        let age_ms_max = self.age_ms_max.filter(|age_ms| *age_ms <= age_ms_most)?;
        (passed_ms < self.ttl_ms).then(|| (self.sample.saturating_add(passed_ms), age_ms_max))
    }

    /// Returns the same, but trusts our own clock about which members are live.
    fn seems_live(&self, now: ElapsedMillis) -> Option<(UnixMillis, u64)> {
        let lives = self.looks_live && now.since(self.since) < self.ttl_ms;
        self.reading(now).or_else(|| lives.then_some((self.sample, self.ttl_ms)))
    }

    /// Returns the time until which the next renewal is expected: a member renews three times in a
    /// time to live.
    const fn may_renew_until(&self) -> ElapsedMillis {
        self.since.saturating_add(self.ttl_ms / 2)
    }
}

/// Result of the clocks, ours among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuorumResult {
    /// The median time, and by how much looks may have made it wrong.
    Most { time: UnixMillis, slack_ms: u64 },
    /// Too few members to decide. Members that seem gone by our clock may still renew before
    /// `until`.
    TooFew { until: Option<ElapsedMillis> },
}

impl ClockQuorum {
    /// Handles the list of all other members, from a store call that was sent and returned at these
    /// times.
    pub(crate) fn record<'a>(
        &mut self,
        others: impl Iterator<Item = &'a MemberInfo>,
        requested_at: ElapsedMillis,
        responded_at: ElapsedMillis,
    ) {
        let before = self.requested_at;
        if before.is_some_and(|before| requested_at < before) {
            // A later look has overtaken this one.
            return;
        }
        self.requested_at = Some(requested_at);
        let known = others.filter(|info| info.member.incarnation.token().is_none()).map(|info| {
            let presence = info.presence;
            let new = KnownMember {
                renewals: presence.renewals,
                ttl_ms: presence.ttl_ms,
                sample: presence.sample,
                since: responded_at,
                age_ms_max: before.map(|before| responded_at.since(before)),
                looks_live: info.live,
            };
            let known = match self.known.get(&info.member.incarnation) {
                Some(old) if old.renewals >= new.renewals => {
                    KnownMember { looks_live: info.live, ..*old }
                }
                _ => new,
            };
            (info.member.incarnation, known)
        });
        self.known = known.collect();
    }

    /// Returns the result of the clocks at `now`, when our clock shows `ours`.
    pub(crate) fn quorum_result(&self, ours: UnixMillis, now: ElapsedMillis) -> QuorumResult {
        let renewed: Vec<_> = self.known.values().filter_map(|known| known.reading(now)).collect();
        let readings = if renewed.len() >= OTHERS_MIN {
            renewed
        } else {
            self.known.values().filter_map(|known| known.seems_live(now)).collect()
        };
        if readings.len() < OTHERS_MIN {
            return QuorumResult::TooFew { until: self.may_be_enough_until(now) };
        }
        let slack_ms = readings.iter().map(|(_, slack_ms)| *slack_ms).max().unwrap_or(0);
        let mut times: Vec<_> = readings.into_iter().map(|(time, _)| time).chain([ours]).collect();
        times.sort_unstable();
        let time = times.get(times.len() / 2).copied().unwrap_or(ours);
        QuorumResult::Most { time, slack_ms }
    }

    /// Returns the time until which enough other members may renew. Two members that are present
    /// have renewed at about the same time, by clocks that agree. Members that ended one after the
    /// other have not, and are not waited for.
    fn may_be_enough_until(&self, now: ElapsedMillis) -> Option<ElapsedMillis> {
        let may_speak =
            |known: &&KnownMember| known.seems_live(now).is_some() || now < known.may_renew_until();
        let mut who: Vec<_> = self.known.values().filter(may_speak).collect();
        who.sort_unstable_by_key(|known| known.sample);
        let together = |pair: &&[&KnownMember]| match pair {
            [one, other] => other.sample.since(one.sample) < one.ttl_ms.max(other.ttl_ms),
            _ => false,
        };
        let pairs = who.windows(OTHERS_MIN).filter(together).flatten();
        pairs.map(|known| known.may_renew_until()).filter(|until| now < *until).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::member::{Member, Presence};

    const TTL_MS: u64 = 10_000;
    const HOUR_MS: u64 = 3_600_000;

    /// Returns a member with this number of renewals, the last at `sample` by its own clock, as a
    /// reader with clock `ours` sees it.
    fn info(who: u128, renewals: u64, sample: u64, ours: u64) -> MemberInfo {
        let (sample, ours) = (UnixMillis::new(sample), UnixMillis::new(ours));
        let incarnation = Incarnation::new(who);
        let (owner, host, address) = (String::new(), String::new(), String::new());
        MemberInfo {
            member: Member { incarnation, owner, host, process: 1, address },
            presence: Presence { sample, renewals, ttl_ms: TTL_MS },
            joined_at: sample,
            renewed_at: sample,
            live: Presence::live(TTL_MS, sample, ours),
            status: crate::model::member::MemberStatus::default(),
        }
    }

    fn record(quorum: &mut ClockQuorum, others: &[MemberInfo], requested_at: u64) {
        let at = ElapsedMillis::new;
        quorum.record(others.iter(), at(requested_at), at(requested_at + 1));
    }

    fn quorum_result(quorum: &ClockQuorum, ours: u64, now: u64) -> QuorumResult {
        quorum.quorum_result(UnixMillis::new(ours), ElapsedMillis::new(now))
    }

    fn most(time: u64, slack_ms: u64) -> QuorumResult {
        QuorumResult::Most { time: UnixMillis::new(time), slack_ms }
    }

    fn too_few(until: Option<u64>) -> QuorumResult {
        QuorumResult::TooFew { until: until.map(ElapsedMillis::new) }
    }

    #[test]
    fn renewing_members_count_whatever_our_clock_shows() {
        for ours in [5, HOUR_MS, 3 * HOUR_MS] {
            let true_ms = HOUR_MS + HOUR_MS / 2;
            let mut quorum = ClockQuorum::default();
            record(&mut quorum, &[1, 2].map(|who| info(who, 7, true_ms, ours)), 100);
            assert_eq!(
                quorum_result(&quorum, ours, 101),
                too_few(Some(101 + TTL_MS / 2)),
                "{ours}"
            );
            record(&mut quorum, &[1, 2].map(|who| info(who, 8, true_ms + 3_000, ours)), 3_300);
            // The renewals came between the first look's start and the second look's result.
            assert_eq!(quorum_result(&quorum, ours, 3_301), most(true_ms + 3_000, 3_201), "{ours}");
            // Their clocks have advanced since; once they are silent for too long, they count as
            // gone.
            assert_eq!(quorum_result(&quorum, ours, 13_300), most(true_ms + 12_999, 3_201));
            assert_eq!(quorum_result(&quorum, ours, 13_301), too_few(None));
        }
    }

    #[test]
    fn of_two_others_and_ours_the_middle_one_counts() {
        let mut quorum = ClockQuorum::default();
        let others =
            |renewals| [info(1, renewals, 50_000, 50_000), info(2, renewals, HOUR_MS, 50_000)];
        record(&mut quorum, &others(1), 0);
        record(&mut quorum, &others(2), 500);
        assert_eq!(quorum_result(&quorum, 50_100, 501), most(50_100, 501), "ours");
        assert_eq!(quorum_result(&quorum, 2 * HOUR_MS, 501), most(HOUR_MS, 501), "the other");
    }

    #[test]
    fn embedded_clients_never_count_in_the_quorum() {
        let program = |who, renewals, ours| {
            let mut info = info(0, renewals, HOUR_MS, ours);
            info.member.incarnation = Incarnation::of_program(7, who);
            info
        };
        let mut quorum = ClockQuorum::default();
        for (renewals, requested_at) in [(1, 0), (2, 500)] {
            let programs = (0..9).map(|who| program(who, renewals, 50_000));
            record(&mut quorum, &programs.collect::<Vec<_>>(), requested_at);
            assert_eq!(quorum_result(&quorum, 50_000, requested_at + 1), too_few(None));
        }
        // They also do not hide the members that count, or add to them.
        for (renewals, requested_at) in [(3, 1_000), (4, 1_500)] {
            let mut others: Vec<_> = (0..9).map(|who| program(who, renewals, 50_000)).collect();
            others.extend([1, 2].map(|who| info(who, renewals, 50_000, 50_000)));
            record(&mut quorum, &others, requested_at);
        }
        assert_eq!(quorum_result(&quorum, 50_000, 1_501), most(50_000, 501));
    }

    #[test]
    fn first_observation_uses_our_clock_for_liveness() {
        let mut quorum = ClockQuorum::default();
        record(&mut quorum, &[info(1, 7, 90_000, 95_000), info(2, 9, 91_000, 95_000)], 0);
        assert_eq!(quorum_result(&quorum, 95_000, 1), most(91_000, TTL_MS));
        // They do not renew: they end with the time to live of the last renewal.
        record(&mut quorum, &[info(1, 7, 90_000, 105_000), info(2, 9, 91_000, 105_000)], 10_000);
        assert_eq!(quorum_result(&quorum, 105_000, 10_001), too_few(None));
    }

    #[test]
    fn those_that_ended_one_after_the_other_are_not_waited_for() {
        let ours = 24 * HOUR_MS;
        let gone = [info(1, 7, HOUR_MS, ours), info(2, 9, HOUR_MS + TTL_MS, ours)];
        let mut quorum = ClockQuorum::default();
        record(&mut quorum, &gone, 0);
        assert_eq!(quorum_result(&quorum, ours, 1), too_few(None));
        // Two of the three may still be present; once one was silent for too long, none is waited
        // for.
        let third = info(3, 1, HOUR_MS + 500, ours);
        record(&mut quorum, &[gone[0].clone(), gone[1].clone(), third.clone()], 4_000);
        assert_eq!(quorum_result(&quorum, ours, 4_001), too_few(Some(9_001)));
        record(&mut quorum, &[gone[0].clone(), gone[1].clone(), third], 5_000);
        assert_eq!(quorum_result(&quorum, ours, 5_001), too_few(None));
    }

    #[test]
    fn overtaken_observation_changes_nothing() {
        let mut quorum = ClockQuorum::default();
        record(&mut quorum, &[1, 2].map(|who| info(who, 7, 100, 100)), 100);
        record(&mut quorum, &[1, 2].map(|who| info(who, 8, 200, 200)), 200);
        let readings = quorum_result(&quorum, 200, 300);
        record(&mut quorum, &[info(1, 6, 0, 200)], 150);
        assert_eq!(quorum_result(&quorum, 200, 300), readings);
    }

    /// Such a look does not show the age of its samples.
    #[test]
    fn observation_after_a_long_pause_has_no_samples() {
        let mut quorum = ClockQuorum::default();
        record(&mut quorum, &[1, 2].map(|who| info(who, 7, 100, HOUR_MS)), 100);
        record(&mut quorum, &[1, 2].map(|who| info(who, 8, 200, HOUR_MS)), HOUR_MS);
        assert_eq!(
            quorum_result(&quorum, HOUR_MS, HOUR_MS + 1),
            too_few(Some(HOUR_MS + 1 + TTL_MS / 2))
        );
    }
}
