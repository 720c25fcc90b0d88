//! What a member says of itself and of others, beside that it is there.

use std::fmt;
use std::str::FromStr;

use super::Incarnation;
use crate::error::{Error, ErrorKind};

/// How many others a status names at most: so it fits a short text column of every store.
pub const UNREACHABLE_MAX: usize = 6;

/// What a member answers for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Serves {
    /// Sections of counters, and sources of global order.
    #[default]
    All,
    /// Sections of counters. Its clock does not let it mint in order.
    Counters,
    /// Nothing: most others cannot reach it.
    Nothing,
}

/// What a member says of itself and of others. Text form: `REVISION all|counters|nothing INCARNATION…`; empty for a
/// member that has said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberStatus {
    /// Rises with each change. A store keeps the highest: one that comes late changes nothing.
    pub revision: u64,
    /// What it answers for, as far as it can tell itself.
    pub serves: Serves,
    /// Others that it cannot reach at their addresses: at most [`UNREACHABLE_MAX`].
    pub unreachable: Vec<Incarnation>,
}

impl MemberStatus {
    /// Checks that every store can keep it.
    ///
    /// # Errors
    /// `Invalid` for too many others.
    pub fn check(&self) -> Result<(), ErrorKind> {
        let count = self.unreachable.len();
        if count > UNREACHABLE_MAX {
            let what =
                format!("a status names {count} members, where {UNREACHABLE_MAX} are allowed");
            return Err(ErrorKind::Invalid { what });
        }
        Ok(())
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        let serves = match self.serves {
            Serves::All => "all",
            Serves::Counters => "counters",
            Serves::Nothing => "nothing",
        };
        write!(f, "{} {serves}", self.revision)?;
        self.unreachable.iter().try_for_each(|member| write!(f, " {member}"))
    }
}

impl FromStr for MemberStatus {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let invalid =
            || Error::invalid("parse status", format!("{text:?} is not a member's status"));
        let mut words = text.split(' ');
        let revision = words.next().and_then(|word| word.parse().ok()).ok_or_else(invalid)?;
        let serves = match words.next() {
            Some("all") => Serves::All,
            Some("counters") => Serves::Counters,
            Some("nothing") => Serves::Nothing,
            _ => return Err(invalid()),
        };
        let unreachable = words.map(str::parse).collect::<Result<Vec<_>, _>>()?;
        let status = Self { revision, serves, unreachable };
        status.check().map_err(|_| invalid())?;
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_back_and_fits_a_short_column() {
        let members = |count| (0..count).map(|n| Incarnation::new(u128::MAX - n)).collect();
        for serves in [Serves::All, Serves::Counters, Serves::Nothing] {
            for (revision, count) in [(0, 0), (1, 0), (7, 1), (u64::MAX, 6)] {
                let status = MemberStatus { revision, serves, unreachable: members(count) };
                let text = status.to_string();
                assert_eq!(text.parse::<MemberStatus>().unwrap(), status, "{text}");
                assert!(text.len() <= 255, "{text}");
            }
        }
        assert_eq!(MemberStatus::default().to_string(), "");
    }

    #[test]
    fn what_is_no_status_is_refused() {
        let seven = format!("1 all{}", " 00000000000000000000000000000abc".repeat(7));
        for bad in ["1", "all", "x all", "1 some", "1 all abc", "1 all ", seven.as_str()] {
            assert!(bad.parse::<MemberStatus>().is_err(), "{bad}");
        }
        let unreachable = vec![Incarnation::new(1); UNREACHABLE_MAX + 1];
        assert!(MemberStatus { unreachable, ..MemberStatus::default() }.check().is_err());
    }
}
