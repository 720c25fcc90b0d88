//! Newest write that a handle has seen, by the version of the node [`WRITES`](super::WRITES).
//!
//! The transaction number of a write does not show that the server lacks an earlier one: every
//! client's writes and sessions raise it. The version of that node rises by one with each batch.

use std::sync::{Mutex, PoisonError};

/// The newest version, and the store's record that was valid then. A store that was recovered has
/// another record, and may have counted less.
#[derive(Debug, Default)]
pub(super) struct Newest(Mutex<Option<(String, u64)>>);

impl Newest {
    pub(super) fn saw(&self, store: &str, version: u64) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known =
            newest.as_ref().is_some_and(|(of, known)| of == store && !is_later(version, *known));
        if !is_known {
            *newest = Some((store.to_owned(), version));
        }
    }

    /// Returns the newest version seen under this record.
    pub(super) fn of(&self, store: Option<&str>) -> Option<u64> {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().filter(|(of, _)| Some(of.as_str()) == store).map(|(_, version)| *version)
    }
}

/// Returns whether a version is later than another. Versions restart after 32 bits.
pub(super) const fn is_later(version: u64, than: u64) -> bool {
    let ahead = version.wrapping_sub(than) & 0xffff_ffff;
    ahead != 0 && ahead < 0x8000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_past_their_restart() {
        assert!(is_later(2, 1) && !is_later(1, 1) && !is_later(1, 2));
        // Versions of entries are 1 to 2^32.
        assert!(is_later(1, 1 << 32) && !is_later(1 << 32, 1));
    }

    #[test]
    fn another_record_begins_anew() {
        let newest = Newest::default();
        assert_eq!(newest.of(Some("a")), None);
        newest.saw("a", 7);
        newest.saw("a", 5);
        assert_eq!((newest.of(Some("a")), newest.of(Some("b"))), (Some(7), None));
        newest.saw("b", 3);
        assert_eq!((newest.of(Some("a")), newest.of(Some("b"))), (None, Some(3)));
    }
}
