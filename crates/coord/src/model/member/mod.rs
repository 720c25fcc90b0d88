//! Members: open handles on a store, identified by a random incarnation and detected by their
//! presence.

use std::str::FromStr;

use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::Incarnation;
pub use crate::model::name::LABEL_BYTES_MAX;
use crate::model::name::check_label;

mod status;

pub use status::{MemberStatus, Serves, UNREACHABLE_MAX};

impl FromStr for Incarnation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits => Ok(Self::new(number)),
            _ => Err(Error::invalid(format!(
                "incarnation {text:?} is not 32 hexadecimal digits; correct it"
            ))),
        }
    }
}

/// Time in milliseconds, beyond its time to live, after which a member that holds nothing and has
/// not renewed may be forgotten: one day.
pub const FORGOTTEN_AFTER_MS: u64 = 24 * 60 * 60 * 1000;
/// The same time for an embedded client with a token: five minutes. A token's holder can join under
/// any number of names, and most calls read all members.
pub const PROGRAM_FORGOTTEN_AFTER_MS: u64 = 5 * 60 * 1000;

/// A member of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Identity of the member.
    pub incarnation: Incarnation,
    /// Label and slot preference (the slot that this owner had last), never an identity. May be
    /// empty.
    pub owner: String,
    /// Name of the host, for people.
    pub host: String,
    /// Process number, for people.
    pub process: u32,
    /// Address for peers, in the format of the server there; empty for a member that serves no
    /// requests.
    pub address: String,
}

/// Data that a member sends with each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The member's wall clock when it sent the renewal.
    pub sample: UnixMillis,
    /// Number of renewals. A claimer that sees this number unchanged for long enough on its own
    /// elapsed clock knows that the member is gone, whatever any wall clock shows.
    pub renewals: u64,
    /// Time without a renewal after which the presence expires, in milliseconds.
    pub ttl_ms: u64,
}

impl Presence {
    /// Returns whether a presence renewed at `renewed_at` is live at `now`, both by the clock that
    /// the store uses.
    ///
    /// A renewal that lies further in the future than one time to live is not live either. A member
    /// with a clock that was once years fast must not hold its slot for years after its end.
    #[must_use]
    pub const fn live(ttl_ms: u64, renewed_at: UnixMillis, now: UnixMillis) -> bool {
        now.since(renewed_at) < ttl_ms && renewed_at.since(now) <= ttl_ms
    }

    /// Returns whether the record of a presence that this member renewed at `renewed_at` is
    /// obsolete, if it holds no slot. Stores drop such records when a member joins, so that they
    /// stay few.
    #[must_use]
    pub fn forgettable(
        member: Incarnation,
        ttl_ms: u64,
        renewed_at: UnixMillis,
        now: UnixMillis,
    ) -> bool {
        let after_ms = match member.token() {
            Some(_) => PROGRAM_FORGOTTEN_AFTER_MS,
            None => FORGOTTEN_AFTER_MS,
        };
        !Self::live(ttl_ms.saturating_add(after_ms), renewed_at, now)
    }

    /// Returns when a presence renewed at `renewed_at` expires.
    #[must_use]
    pub const fn expires_at(ttl_ms: u64, renewed_at: UnixMillis) -> UnixMillis {
        renewed_at.saturating_add(ttl_ms)
    }
}

/// Checks the data that a member sends about itself.
///
/// # Errors
/// `Invalid` for a label that is over-long or has control characters, and for a time to live of
/// zero.
pub fn check(member: &Member, presence: Presence) -> Result<()> {
    for (what, label) in
        [("owner", &member.owner), ("host", &member.host), ("address", &member.address)]
    {
        check_label(what, label, LABEL_BYTES_MAX)?;
    }
    check_presence(presence)
}

/// Checks the data that a member sends when it renews.
///
/// # Errors
/// `Invalid` for a time to live of zero.
pub fn check_presence(presence: Presence) -> Result<()> {
    if presence.ttl_ms == 0 {
        return Err(Error::invalid("presence TTL 0 ms is below the minimum of 1 ms; raise it"));
    }
    Ok(())
}

/// Returns the error for a member that the store does not know.
#[must_use]
pub fn not_joined(incarnation: Incarnation) -> Error {
    Error::not_found(format!(
        "member {incarnation} is not joined: never joined, left or forgotten; join again"
    ))
}

/// A member as seen by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// The member.
    pub member: Member,
    /// Its last renewal.
    pub presence: Presence,
    /// Time of its join, by the clock that the store uses.
    pub joined_at: UnixMillis,
    /// Time of its last renewal, by the clock that the store uses.
    pub renewed_at: UnixMillis,
    /// Whether its presence is live.
    pub live: bool,
    /// Last status that it announced.
    pub status: MemberStatus,
}

impl MemberInfo {
    /// Returns whether the presence is live at `now` for clocks that differ by up to `skew_ms`.
    #[must_use]
    pub fn is_live_within(&self, skew_ms: u64, now: UnixMillis) -> bool {
        Presence::live(self.presence.ttl_ms.saturating_add(skew_ms), self.renewed_at, now)
    }

    /// Returns whether the store may forget the member at `now`, if it holds no slot.
    #[must_use]
    pub fn forgettable(&self, now: UnixMillis) -> bool {
        let Presence { ttl_ms, .. } = self.presence;
        Presence::forgettable(self.member.incarnation, ttl_ms, self.renewed_at, now)
    }
}

/// All data that a store keeps about one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// The member.
    pub member: Member,
    /// Its last renewal.
    pub presence: Presence,
    /// Time of its join, by the clock that the store uses.
    pub joined_at: UnixMillis,
    /// Time of its last renewal, by the clock that the store uses.
    pub renewed_at: UnixMillis,
    /// Last status that it announced.
    pub status: MemberStatus,
}

impl MemberRow {
    /// Creates the row of a member that joins at `now`.
    #[must_use]
    pub fn new(member: Member, presence: Presence, now: UnixMillis) -> Self {
        let status = MemberStatus::default();
        Self { member, presence, joined_at: now, renewed_at: now, status }
    }

    /// Returns the row after the member announced a status, or `None` when a later status is known.
    #[must_use]
    pub fn announced(&self, status: &MemberStatus) -> Option<Self> {
        let is_late = status.revision <= self.status.revision;
        (!is_late).then(|| Self { status: status.clone(), ..self.clone() })
    }

    /// Returns the public data of the row at `now`.
    #[must_use]
    pub fn info(&self, now: UnixMillis) -> MemberInfo {
        MemberInfo {
            member: self.member.clone(),
            presence: self.presence,
            joined_at: self.joined_at,
            renewed_at: self.renewed_at,
            live: Presence::live(self.presence.ttl_ms, self.renewed_at, now),
            status: self.status.clone(),
        }
    }

    /// Returns the row after a renewal at `now`, or `None` for a late one. The member has renewed
    /// since, and a process that watches its count of renewals must not see an earlier count again.
    #[must_use]
    pub fn renewed(&self, presence: Presence, now: UnixMillis) -> Option<Self> {
        let is_late = presence.renewals < self.presence.renewals;
        (!is_late).then(|| Self { presence, renewed_at: now, ..self.clone() })
    }

    /// Returns whether the row is obsolete, if the member holds no slot.
    #[must_use]
    pub fn forgettable(&self, now: UnixMillis) -> bool {
        let Presence { ttl_ms, .. } = self.presence;
        Presence::forgettable(self.member.incarnation, ttl_ms, self.renewed_at, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PROGRAM;

    #[test]
    fn incarnations_read_back() {
        let incarnation = Incarnation::new(0xabc);
        assert_eq!(incarnation.to_string(), "00000000000000000000000000000abc");
        assert_eq!(incarnation.to_string().parse::<Incarnation>().unwrap(), incarnation);
        for bad in ["", "abc", "+0000000000000000000000000000abc", &"g".repeat(32)] {
            assert!(bad.parse::<Incarnation>().is_err(), "{bad}");
        }
    }

    #[test]
    fn incarnation_shows_an_embedded_client() {
        for (token, member) in [(0, 0), (7, 9), (u32::MAX, u64::MAX)] {
            let program = Incarnation::of_program(token, member);
            assert_eq!(program.token(), Some(token));
            assert_eq!(program.to_string().parse::<Incarnation>().unwrap(), program);
        }
        assert_ne!(Incarnation::of_program(1, 2), Incarnation::of_program(2, 2));
        for other in [0, 1, u128::MAX, u128::from(PROGRAM)] {
            assert_eq!(Incarnation::new(other).token(), None);
        }
        for _ in 0..100 {
            assert!(crate::platform::random::incarnation().unwrap().get() >> 127 == 0);
        }
    }

    #[test]
    fn presence_expires_at_its_limit_on_both_sides() {
        let at = UnixMillis::new(10_000);
        let live = |now| Presence::live(1000, at, UnixMillis::new(now));
        assert!(live(10_000) && live(10_999));
        assert!(!live(11_000) && !live(11_001));
        assert!(live(9_000));
        assert!(!live(8_999), "a renewal from the far future is not live");
        assert!(!Presence::live(0, at, at));
        let (process, program) = (Incarnation::new(1), Incarnation::of_program(1, 1));
        for (member, after_ms) in
            [(process, FORGOTTEN_AFTER_MS), (program, PROGRAM_FORGOTTEN_AFTER_MS)]
        {
            let forgettable = |now| Presence::forgettable(member, 1000, at, UnixMillis::new(now));
            assert!(!forgettable(11_000 + after_ms - 1));
            assert!(forgettable(11_000 + after_ms));
        }
        assert_eq!(PROGRAM_FORGOTTEN_AFTER_MS, 300_000, "what docs/reference/access.md says");
    }
}
