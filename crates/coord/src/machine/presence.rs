//! Renewals of a member's presence.

use snowmint_core::{ElapsedMillis, UnixMillis};

use super::Now;
use crate::error::{Error, ErrorKind, Result};
use crate::model::member::Presence;
use crate::platform::backoff::backoff_ms;

/// Action due for a member's presence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresenceAction {
    /// Send this renewal, and report the result.
    Renew(Presence),
}

/// Member that has joined and renews three times in a time to live, so that one lost renewal costs
/// nothing.
#[derive(Clone, Debug)]
pub struct PresenceMachine {
    ttl_ms: u64,
    renewals: u64,
    /// Time at which the last renewal that arrived was sent.
    live_since: ElapsedMillis,
    next_at: ElapsedMillis,
    sent_at: Option<ElapsedMillis>,
    failures: u32,
    /// Error after which the store no longer knows the member.
    gone: Option<Error>,
}

impl PresenceMachine {
    /// Creates the presence of a member with a join that was sent at `joined_at`.
    #[must_use]
    pub const fn new(ttl_ms: u64, joined_at: ElapsedMillis) -> Self {
        Self {
            ttl_ms,
            renewals: 0,
            live_since: joined_at,
            next_at: joined_at.saturating_add(ttl_ms / 3),
            sent_at: None,
            failures: 0,
            gone: None,
        }
    }

    /// Returns the presence that a join sends.
    #[must_use]
    pub const fn joining(ttl_ms: u64, sample: UnixMillis) -> Presence {
        Presence { sample, renewals: 0, ttl_ms }
    }

    /// Returns the renewal that is due now, if any.
    pub fn poll(&mut self, now: Now) -> Option<PresenceAction> {
        if self.next_poll_ms(now) != Some(0) {
            return None;
        }
        self.sent_at = Some(now.elapsed);
        self.renewals = self.renewals.saturating_add(1);
        let presence = Presence { sample: now.wall, renewals: self.renewals, ttl_ms: self.ttl_ms };
        Some(PresenceAction::Renew(presence))
    }

    /// Handles the result of a renewal.
    pub fn renewed(&mut self, now: Now, result: &Result<()>) {
        let Some(sent_at) = self.sent_at.take() else { return };
        match result.as_ref().map_err(Error::kind) {
            Ok(()) => {
                self.failures = 0;
                // Counted from before it was sent: the store may have begun to count then.
                self.live_since = sent_at;
                self.next_at = sent_at.saturating_add(self.ttl_ms / 3);
            }
            Err(kind) if matches!(kind, ErrorKind::NotFound) || kind.doubts_store() => {
                self.gone = result.as_ref().err().cloned();
            }
            Err(_) => {
                self.failures = self.failures.saturating_add(1);
                self.next_at = now.elapsed.saturating_add(backoff_ms(self.failures));
            }
        }
    }

    /// Returns the reason why the process must join as a new member: the store has forgotten this
    /// one, or is not the store that it joined.
    #[must_use]
    pub const fn gone(&self) -> Option<&Error> {
        self.gone.as_ref()
    }

    /// Returns the time until which no other member may acquire an exclusive slot from this one. It
    /// is counted from before the last renewal that arrived was sent.
    #[must_use]
    pub const fn lease_until(&self) -> ElapsedMillis {
        if self.gone.is_some() {
            ElapsedMillis::new(0)
        } else {
            self.live_since.saturating_add(self.ttl_ms)
        }
    }

    /// Returns whether other members must still see this one as live.
    #[must_use]
    pub fn is_live(&self, now: Now) -> bool {
        self.gone.is_none() && now.elapsed.since(self.live_since) < self.ttl_ms
    }

    /// Returns the milliseconds until the next renewal.
    #[must_use]
    pub fn next_poll_ms(&self, now: Now) -> Option<u64> {
        (self.gone.is_none() && self.sent_at.is_none()).then(|| self.next_at.since(now.elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(elapsed: u64) -> Now {
        Now { wall: UnixMillis::new(5), elapsed: ElapsedMillis::new(elapsed), chance: || 0 }
    }

    #[test]
    fn a_renewal_is_sent_each_third_of_the_time_to_live() {
        let mut presence = PresenceMachine::new(9_000, ElapsedMillis::new(0));
        assert_eq!(presence.poll(at(2_999)), None);
        assert_eq!(presence.next_poll_ms(at(2_999)), Some(1));
        for round in 1..5 {
            let sent = at(3_000 * round);
            let Some(PresenceAction::Renew(renewal)) = presence.poll(sent) else {
                panic!("{round}")
            };
            assert_eq!((renewal.renewals, renewal.ttl_ms), (round, 9_000));
            assert_eq!(presence.poll(at(3_000 * round + 1)), None, "one at a time");
            presence.renewed(at(3_000 * round + 50), &Ok(()));
            assert_eq!(presence.next_poll_ms(sent), Some(3_000), "counted from before sending");
        }
    }

    #[test]
    fn presence_expires_by_our_clock_while_store_is_unreachable() {
        let mut presence = PresenceMachine::new(9_000, ElapsedMillis::new(0));
        let mut rounds = 0;
        for elapsed in 0..20_000 {
            if presence.poll(at(elapsed)).is_some() {
                rounds += 1;
                presence.renewed(at(elapsed), &Err(Error::unavailable("store is unavailable")));
            }
            assert_eq!(presence.is_live(at(elapsed)), elapsed < 9_000, "{elapsed}");
        }
        assert!((8..40).contains(&rounds), "{rounds}");
        presence.poll(at(30_000)).unwrap();
        presence.renewed(at(30_001), &Ok(()));
        assert!(presence.is_live(at(38_999)) && !presence.is_live(at(39_000)));
    }

    #[test]
    fn unknown_member_stops_renewing() {
        for error in [
            Error::not_found("member is not joined"),
            Error::store_rolled_back("term", 2, 1),
            Error::store_mismatch("store is another one"),
        ] {
            let mut presence = PresenceMachine::new(9_000, ElapsedMillis::new(0));
            presence.poll(at(3_000)).unwrap();
            presence.renewed(at(3_001), &Err(error.clone()));
            assert_eq!(presence.gone().map(Error::kind), Some(error.kind()));
            assert!(!presence.is_live(at(3_001)), "{error}");
            assert_eq!(presence.lease_until(), ElapsedMillis::new(0), "{error}");
            assert_eq!(
                (presence.poll(at(60_000)), presence.next_poll_ms(at(60_000))),
                (None, None)
            );
        }
    }
}
