//! Status that a member announces about itself and its peers, in addition to its presence.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::ids::Incarnation;

/// Maximum number of peers in a status, so that it fits a short text column of every store.
pub const UNREACHABLE_MAX: usize = 6;

/// Work that a member is available for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Serves {
    /// Counter sections, and global-order sources.
    #[default]
    All,
    /// Counter sections. The member's clock does not permit minting in global order.
    Counters,
    /// Nothing: most peers cannot reach the member.
    Nothing,
}

/// Status of a member and its view of peers. Text form: `REVISION all|counters|nothing
/// INCARNATION…`; empty for a member that has announced none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberStatus {
    /// Revision, raised by each change. A store keeps the highest: a late status changes nothing.
    pub revision: u64,
    /// Work that the member is available for, by its own judgement.
    pub serves: Serves,
    /// Peers that it cannot reach at their addresses: at most [`UNREACHABLE_MAX`].
    pub unreachable: Vec<Incarnation>,
}

impl MemberStatus {
    /// Checks that every store can keep the status.
    ///
    /// # Errors
    /// `Invalid` for too many peers.
    pub fn check(&self) -> Result<()> {
        let count = self.unreachable.len();
        if count > UNREACHABLE_MAX {
            return Err(Error::invalid(format!(
                "member status lists {count} members, maximum {UNREACHABLE_MAX}; shorten it"
            )));
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

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let invalid = || {
            Error::invalid(format!("member status {text:?} cannot be parsed; update this program"))
        };
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
    fn invalid_status_is_rejected() {
        let seven = format!("1 all{}", " 00000000000000000000000000000abc".repeat(7));
        for bad in ["1", "all", "x all", "1 some", "1 all abc", "1 all ", seven.as_str()] {
            assert!(bad.parse::<MemberStatus>().is_err(), "{bad}");
        }
        let unreachable = vec![Incarnation::new(1); UNREACHABLE_MAX + 1];
        assert!(MemberStatus { unreachable, ..MemberStatus::default() }.check().is_err());
    }
}
