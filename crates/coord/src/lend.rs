//! Numbers lent to processes that mint by themselves and are no members of the store.
//!
//! Such a process says who it is and, now and then, that it is still there. It knows neither marks nor
//! terms, so the mark alone is its lease: up to there the number is the borrower's, whoever has answered
//! for it, and no claim takes a slot whose mark lies ahead. The slot's row says whose it is. So any
//! process of the namespace can answer the borrower next time, and none has to live on for it.
//!
//! When a borrower falls silent, its mark passes by itself. What it does with its clock is its own: a
//! number says nothing about the ticks that are minted with it.

use snowmint_core::UnixMillis;

use crate::catalog::check_name;
use crate::error::ErrorKind;
use crate::label::check_label;
use crate::lease::Mark;
use crate::member::LABEL_BYTES_MAX;
use crate::pool::{Pool, Reuse};
use crate::slot::SlotInfo;

/// Longest that a number is kept for a borrower that is silent: 100 years.
pub const KEEP_MS_MAX: u64 = 100 * 365 * 86_400_000;
/// Most bits of a number that is lent.
pub const WIDTH_MAX: u32 = 31;

/// The longest name of a space: with the rest it is the name of a pool, of at most 63 bytes.
const SPACE_BYTES_MAX: usize = 50;

/// What names of pools begin with whose numbers are lent; their width and their space follow.
const PREFIX: &str = "lent-";

/// A process that borrows a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Borrower {
    /// Among whom no number is lent twice, for each width.
    pub space: String,
    /// What it calls itself. Two processes of one name are taken for one.
    pub label: String,
}

/// A number that is a borrower's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The number.
    pub number: u64,
    /// Earlier holders, an earlier process of this borrower included, may have minted up to here.
    pub after: UnixMillis,
}

/// What has become of a borrower's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loan {
    /// It is the borrower's, for another while.
    Held,
    /// It was the borrower's, who was silent for too long, and another has it now.
    Lost,
    /// Nothing is known to be the borrower's.
    Unknown,
}

impl Borrower {
    /// Checks that a store can keep what it says.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self) -> Result<(), ErrorKind> {
        let length = self.label.len();
        if length == 0 || length > LABEL_BYTES_MAX {
            let what =
                format!("a borrower is called by 1 to {LABEL_BYTES_MAX} bytes, not {length}");
            return Err(ErrorKind::Invalid { what });
        }
        check_label("borrower", &self.label, LABEL_BYTES_MAX)
    }

    /// Whether a slot is this borrower's, or nobody's since.
    pub(crate) fn had_last(&self, slot: &SlotInfo) -> bool {
        is_lent_in(&slot.pool, &self.space) && slot.owner == self.label && slot.mark < Mark::MAX
    }
}

/// The pool of the numbers of `width` bits that are lent in a space.
///
/// # Errors
/// `Invalid` for a width or a space that cannot be.
pub fn lent_pool(space: &str, width: u32) -> Result<Pool, ErrorKind> {
    if width == 0 || width > WIDTH_MAX {
        let what = format!("a number that is lent has 1 to {WIDTH_MAX} bits, not {width}");
        return Err(ErrorKind::Invalid { what });
    }
    if space.len() > SPACE_BYTES_MAX || check_name("space", space).is_err() {
        let what = format!(
            "{space:?} is no name of those who borrow numbers: 1 to {SPACE_BYTES_MAX} of A-Z a-z 0-9 _ . - are"
        );
        return Err(ErrorKind::Invalid { what });
    }
    let name = format!("{PREFIX}{width}-{space}");
    Ok(Pool { name, slots: 1 << width, group: 1, reuse: Reuse::Recycle })
}

/// Checks that a pool whose numbers are lent is as its name says.
///
/// # Errors
/// `Invalid`.
pub fn check_lent(pool: &Pool) -> Result<(), ErrorKind> {
    let parts = pool.name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    let (width, space) = parts.unwrap_or_default();
    let right = lent_pool(space, width.parse().unwrap_or(0))?;
    if right == *pool {
        return Ok(());
    }
    let what = format!(
        "pool {} has {} numbers, one by one, each lent again, whatever is asked for",
        pool.name, right.slots
    );
    Err(ErrorKind::Invalid { what })
}

/// Whether the numbers of a pool are lent.
#[must_use]
pub fn is_lent(pool: &str) -> bool {
    space_of(pool).is_some()
}

/// Whether they are lent in this space.
pub(crate) fn is_lent_in(pool: &str, space: &str) -> bool {
    space_of(pool) == Some(space)
}

/// The space of a pool whose numbers are lent; none where they are not.
#[must_use]
pub fn space_of(pool: &str) -> Option<&str> {
    let (width, space) = pool.strip_prefix(PREFIX)?.split_once('-')?;
    width.parse::<u32>().is_ok().then_some(space)
}

/// How many slots are lent in a space, and in those that count with it.
pub(crate) fn lent_with(
    space: &str,
    all: &[SlotInfo],
    with: &(dyn Fn(&str) -> bool + Sync),
) -> u64 {
    let counts = |other: &str| other == space || with(other);
    let lent = all.iter().filter(|slot| space_of(&slot.pool).is_some_and(counts)).count();
    u64::try_from(lent).unwrap_or(u64::MAX)
}

/// What there are too many of where one more is wanted in a space.
#[must_use]
pub fn too_many_lent(space: &str) -> String {
    format!(
        "numbers lent in {space}, those in other namespaces of the same token included (compat.cosid.machines_max: \
         raise it, or grant reserve over fewer namespaces)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_says_its_space_and_its_width() {
        let pool = lent_pool("shop-1.eu", 10).unwrap();
        assert_eq!((pool.name.as_str(), pool.slots), ("lent-10-shop-1.eu", 1024));
        assert_eq!(space_of(&pool.name), Some("shop-1.eu"));
        assert_eq!(lent_pool("a", 31).unwrap().slots, 1 << 31);
        for (space, width) in [("a", 0), ("a", 32), ("", 70), ("a b", 10), (&"a".repeat(51), 10)] {
            assert_eq!(lent_pool(space, width).unwrap_err().code(), "invalid", "{space} {width}");
        }
        let longest = lent_pool(&"a".repeat(SPACE_BYTES_MAX), WIDTH_MAX).unwrap();
        check_name("pool", &longest.name).unwrap();
        let said = lent_pool(&"a".repeat(60), 10).unwrap_err().to_string();
        assert!(said.contains("1 to 50"), "{said}");
        for other in ["workers-10", "sections", "lent-x-a", "lent-10", "lent"] {
            assert!(!is_lent(other), "{other}");
        }
    }

    #[test]
    fn a_pool_of_lent_numbers_is_as_its_name_says() {
        let right = lent_pool("shop", 10).unwrap();
        assert_eq!(check_lent(&right), Ok(()));
        for wrong in [
            Pool { slots: 512, ..right.clone() },
            Pool { group: 2, ..right.clone() },
            Pool { reuse: Reuse::Never, ..right.clone() },
            Pool { name: "lent-010-shop".into(), ..right.clone() },
            Pool { name: "lent-99-shop".into(), ..right.clone() },
            Pool { name: "workers-10".into(), ..right },
        ] {
            assert_eq!(check_lent(&wrong).unwrap_err().code(), "invalid", "{wrong:?}");
        }
    }

    #[test]
    fn a_borrower_has_a_name_that_stores_can_keep() {
        let called = |label: String| Borrower { space: "a".into(), label }.check();
        assert!(called("x".into()).is_ok() && called("x".repeat(255)).is_ok());
        assert!(called(String::new()).is_err() && called("x".repeat(256)).is_err());
        let refused = called("a\u{1b}".into()).unwrap_err().to_string();
        assert!(refused.contains("borrower label") && !refused.contains('\u{1b}'), "{refused}");
    }
}
