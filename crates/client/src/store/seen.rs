//! Fingerprints of the store that servers have reported.
//!
//! A server may have seen less than this program: one that opened a restored store has no sign of
//! the loss. So a fingerprint that does not surely follow the newest one counts only after the
//! store was compared with that one. Otherwise the program would forget what it alone knows, and
//! issue its prefetched numbers again.

use std::sync::Mutex;

use snowmint_coord::history::History;
use snowmint_coord::{StoreIdentity, lock};

/// Newest identity of the store, and the write count reported with it.
#[derive(Debug, Default)]
pub(super) struct NewestIdentity(Mutex<Option<StoreIdentity>>);

impl NewestIdentity {
    pub(super) fn get(&self) -> Option<StoreIdentity> {
        lock(&self.0).clone()
    }

    /// Records the fingerprint that an earlier process has seen, before any is reported.
    pub(super) fn remember(&self, seen: &StoreIdentity) {
        if !seen.id.is_empty() {
            lock(&self.0).get_or_insert_with(|| seen.clone());
        }
    }

    /// Records a reported fingerprint that surely follows the newest one in its history. For any
    /// other, returns the newest one, with which the store must be compared: a higher number of
    /// recoveries may come from raised values, or from another namespace, which excuse no loss.
    pub(super) fn record(&self, reported: &StoreIdentity) -> Option<StoreIdentity> {
        let mut newest = lock(&self.0);
        let Some(known) = newest.clone() else {
            *newest = Some(reported.clone());
            return None;
        };
        // The rest of a store in doubt is not the state that was seen.
        if History::says_doubt(&reported.id) {
            return None;
        }
        if known.id != reported.id || known.writes > reported.writes {
            return Some(known);
        }
        *newest = Some(reported.clone());
        None
    }

    /// Records a reported fingerprint after the store was found to have everything of `known`,
    /// unless it is an older one that was overtaken. Returns whether `known` is still the newest
    /// one: with another the store was not compared.
    pub(super) fn confirm(&self, known: &StoreIdentity, reported: &StoreIdentity) -> bool {
        let mut newest = lock(&self.0);
        if newest.as_ref() != Some(known) {
            return false;
        }
        let recoveries = |identity: &StoreIdentity| History::of(&identity.id).recoveries;
        if (recoveries(known), known.writes) <= (recoveries(reported), reported.writes) {
            *newest = Some(reported.clone());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(id: &str, writes: u64) -> StoreIdentity {
        StoreIdentity { id: id.into(), writes }
    }

    #[test]
    fn newest_fingerprint_ends_by_its_successors_only() {
        let known = reported("s.1.a", 10);
        for (new, follows) in [
            (reported("s.1.a", 10), true),
            (reported("s.1.a", 11), true),
            // The number of recoveries shows no recovery of this namespace.
            (reported("s.2.b", 3), false),
            (reported("s.2.b", 99), false),
            // From a server that has seen less, an overtaken response, or a store rollback.
            (reported("s.1.a", 9), false),
            // Another process has begun to write: after this state, or after an older one.
            (reported("s.1.b", 99), false),
            (reported("s.0.b", 99), false),
            (reported("t.9.b", 99), false),
        ] {
            let seen = NewestIdentity::default();
            assert_eq!(seen.record(&known), None, "the first one");
            let unsure = seen.record(&new);
            assert_eq!(unsure, (!follows).then(|| known.clone()), "{new:?}");
            let newest = if follows { &new } else { &known };
            assert_eq!(seen.get().as_ref(), Some(newest), "{new:?}");
        }
    }

    #[test]
    fn rest_of_a_store_in_doubt_is_not_recorded() {
        let seen = NewestIdentity::default();
        seen.record(&reported("s.0.a", 10));
        assert_eq!(seen.record(&reported("s.0.b!", 20)), None);
        assert_eq!(seen.get(), Some(reported("s.0.a", 10)));
    }

    #[test]
    fn compared_fingerprint_counts_if_it_is_newer() {
        let seen = NewestIdentity::default();
        seen.record(&reported("s.0.a", 10));
        assert!(seen.confirm(&reported("s.0.a", 10), &reported("s.0.b", 20)));
        assert_eq!(seen.get(), Some(reported("s.0.b", 20)));
        // It was overtaken.
        assert!(seen.confirm(&reported("s.0.b", 20), &reported("s.0.a", 15)));
        assert_eq!(seen.get(), Some(reported("s.0.b", 20)));
        // The store was compared with another one.
        assert!(!seen.confirm(&reported("s.0.a", 10), &reported("s.0.c", 30)));
        assert_eq!(seen.get(), Some(reported("s.0.b", 20)));
    }

    #[test]
    fn earlier_process_is_remembered_before_any_report() {
        let seen = NewestIdentity::default();
        seen.remember(&reported("", 0));
        assert_eq!(seen.get(), None);
        for id in ["s.0.a", "s.0.b"] {
            seen.remember(&reported(id, 10));
            assert_eq!(seen.get(), Some(reported("s.0.a", 10)), "{id}");
        }
    }
}
