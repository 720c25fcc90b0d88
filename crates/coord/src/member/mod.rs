//! Members: open handles on a store, told apart by a random incarnation and seen by their presence.

use std::fmt;
use std::str::FromStr;

use snowmint_core::UnixMillis;

use crate::error::{Error, ErrorKind};
use crate::label::check_label;

mod status;

pub use status::{MemberStatus, Serves, UNREACHABLE_MAX};

/// One open handle on a store. Random, so that a restarted, forked or copied process is another
/// member, whatever it calls itself. Text form: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// From its number. New ones come from [`random::incarnation`](crate::random::incarnation).
    #[must_use]
    pub const fn new(number: u128) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// The name by which servers make a program known that shows them a token: `token` and `member` are hashes. So every
    /// process of the namespace can tell that it is a program, and of which token. Nobody else's name begins so.
    #[must_use]
    pub fn of_program(token: u32, member: u64) -> Self {
        let (kind, token) = (u128::from(PROGRAM) << 96, u128::from(token) << 64);
        Self(kind | token | u128::from(member))
    }

    /// The hash of the token of a program; none for a process that has the store itself.
    #[must_use]
    pub fn token(self) -> Option<u32> {
        let words = [96, 64].map(|shift| u32::try_from((self.0 >> shift) & u128::from(u32::MAX)));
        let [Ok(kind), Ok(token)] = words else { return None };
        (kind == PROGRAM).then_some(token)
    }
}

/// What the names of programs begin with. The highest bit is set, which no name has that a process draws.
const PROGRAM: u32 = 0xf706_9a11;

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({self})")
    }
}

impl FromStr for Incarnation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits => Ok(Self(number)),
            _ => Err(Error::invalid(
                "parse incarnation",
                format!("{text:?} is not an incarnation: 32 hexadecimal digits are needed"),
            )),
        }
    }
}

/// Longest owner or host label, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;
/// A member that holds nothing and has not renewed for this long beyond its time to live may be
/// forgotten: one day.
pub const FORGOTTEN_AFTER_MS: u64 = 24 * 60 * 60 * 1000;

/// Who opened the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its identity.
    pub incarnation: Incarnation,
    /// A label and a wish (the slot that this owner had last), never an identity. May be empty.
    pub owner: String,
    /// The host's name, for people.
    pub host: String,
    /// The process number, for people.
    pub process: u32,
    /// Where others reach it, in the words of whoever serves there; empty for one that serves nobody.
    pub address: String,
}

/// What a member says each time it renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The member's wall clock when it sent this.
    pub sample: UnixMillis,
    /// How many times it has renewed. A claimer that watches this stand still on its own elapsed
    /// clock knows that the member is gone, whatever any wall clock says.
    pub renewals: u64,
    /// After this many milliseconds without a renewal the presence has lapsed.
    pub ttl_ms: u64,
}

impl Presence {
    /// Whether a presence renewed at `renewed_at` is live at `now`, both by the clock that the
    /// store goes by.
    ///
    /// A renewal from further in the future than one time to live is not live either: a member
    /// whose clock once was years fast must not hold its slot for years after its end.
    #[must_use]
    pub const fn live(ttl_ms: u64, renewed_at: UnixMillis, now: UnixMillis) -> bool {
        now.since(renewed_at) < ttl_ms && renewed_at.since(now) <= ttl_ms
    }

    /// Whether the record of a presence renewed at `renewed_at` serves nobody any more, if the
    /// member holds no slot. Stores drop such records when somebody joins, so that they stay few.
    #[must_use]
    pub const fn forgettable(ttl_ms: u64, renewed_at: UnixMillis, now: UnixMillis) -> bool {
        !Self::live(ttl_ms.saturating_add(FORGOTTEN_AFTER_MS), renewed_at, now)
    }

    /// When a presence renewed at `renewed_at` lapses.
    #[must_use]
    pub const fn lapses_at(ttl_ms: u64, renewed_at: UnixMillis) -> UnixMillis {
        renewed_at.saturating_add(ttl_ms)
    }
}

/// Checks what a member says of itself.
///
/// # Errors
/// `Invalid` for a label that is over-long or has control characters, and for a time to live of zero.
pub fn check(member: &Member, presence: Presence) -> Result<(), ErrorKind> {
    for (what, label) in
        [("owner", &member.owner), ("host", &member.host), ("address", &member.address)]
    {
        check_label(what, label, LABEL_BYTES_MAX)?;
    }
    check_presence(presence)
}

/// Checks what a member says when it renews.
///
/// # Errors
/// `Invalid` for a time to live of zero.
pub fn check_presence(presence: Presence) -> Result<(), ErrorKind> {
    if presence.ttl_ms == 0 {
        let what = "a presence lives for at least 1 ms, not 0".into();
        return Err(ErrorKind::Invalid { what });
    }
    Ok(())
}

/// The refusal of a member that the store does not know.
#[must_use]
pub fn not_joined(incarnation: Incarnation) -> ErrorKind {
    ErrorKind::NotFound {
        what: format!("member {incarnation}: never joined, left or forgotten; join (again)"),
    }
}

/// A member as the store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Who.
    pub member: Member,
    /// What it said last.
    pub presence: Presence,
    /// When it joined, by the clock that the store goes by.
    pub joined_at: UnixMillis,
    /// When it said so, by the clock that the store goes by.
    pub renewed_at: UnixMillis,
    /// Whether its presence is live.
    pub live: bool,
    /// What it says of itself and of others.
    pub status: MemberStatus,
}

/// All that a store keeps about one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// Who.
    pub member: Member,
    /// What it said last.
    pub presence: Presence,
    /// When it joined, by the clock that the store goes by.
    pub joined_at: UnixMillis,
    /// When it last renewed, by the clock that the store goes by.
    pub renewed_at: UnixMillis,
    /// What it says of itself and of others.
    pub status: MemberStatus,
}

impl MemberRow {
    /// The row of a member that joins at `now`.
    #[must_use]
    pub fn new(member: Member, presence: Presence, now: UnixMillis) -> Self {
        let status = MemberStatus::default();
        Self { member, presence, joined_at: now, renewed_at: now, status }
    }

    /// The row once the member has announced this. None when it comes late: a later one is known.
    #[must_use]
    pub fn announced(&self, status: &MemberStatus) -> Option<Self> {
        let is_late = status.revision <= self.status.revision;
        (!is_late).then(|| Self { status: status.clone(), ..self.clone() })
    }

    /// The row as others see it at `now`.
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

    /// The row once the member has said this at `now`. None when it comes late: the member has renewed since, and
    /// a process that watches its count of renewals must not see an earlier one again.
    #[must_use]
    pub fn renewed(&self, presence: Presence, now: UnixMillis) -> Option<Self> {
        let is_late = presence.renewals < self.presence.renewals;
        (!is_late).then(|| Self { presence, renewed_at: now, ..self.clone() })
    }

    /// Whether the row serves nobody any more, if the member holds no slot.
    #[must_use]
    pub const fn forgettable(&self, now: UnixMillis) -> bool {
        Presence::forgettable(self.presence.ttl_ms, self.renewed_at, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_program_is_told_from_a_process_that_has_the_store() {
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
            assert!(crate::random::incarnation().unwrap().get() >> 127 == 0);
        }
    }

    #[test]
    fn presence_lapses_at_its_limit_on_both_sides() {
        let at = UnixMillis::new(10_000);
        let live = |now| Presence::live(1000, at, UnixMillis::new(now));
        assert!(live(10_000) && live(10_999));
        assert!(!live(11_000) && !live(11_001));
        assert!(live(9_000));
        assert!(!live(8_999), "a renewal from the far future is not live");
        assert!(!Presence::live(0, at, at));
        let day_later = 11_000 + FORGOTTEN_AFTER_MS;
        assert!(!Presence::forgettable(1000, at, UnixMillis::new(day_later - 1)));
        assert!(Presence::forgettable(1000, at, UnixMillis::new(day_later)));
    }
}
