//! Fingerprints of the store that servers have reported.

use std::sync::{Mutex, MutexGuard, PoisonError};

use snowmint_coord::StoreIdentity;
use snowmint_coord::history::History;
use snowmint_wire::grpc::store::DoneResponse;

/// Newest identity of the store, and the write count reported with it.
#[derive(Debug, Default)]
pub(super) struct NewestIdentity(Mutex<Option<StoreIdentity>>);

impl NewestIdentity {
    pub(super) fn get(&self) -> Option<StoreIdentity> {
        self.newest().clone()
    }

    /// Observes the fingerprint in a response, if there is one.
    pub(super) fn observe(&self, response: &DoneResponse) {
        if let Some(reported) = &response.seen {
            self.record(StoreIdentity { id: reported.id.clone(), writes: reported.writes });
        }
    }

    /// Keeps the newer fingerprint: responses of several servers overtake each other, and some
    /// servers have seen less.
    pub(super) fn record(&self, reported: StoreIdentity) {
        let mut newest = self.newest();
        let is_newer = newest.as_ref().is_none_or(|known| {
            let (before, now) = (History::of(&known.id), History::of(&reported.id));
            // A server that has not seen a recovery counts in the history that was lost.
            before.store != now.store
                || (before.recoveries, known.writes) <= (now.recoveries, reported.writes)
        });
        if is_newer {
            *newest = Some(reported);
        }
    }

    fn newest(&self) -> MutexGuard<'_, Option<StoreIdentity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_with_its_history_and_rises_within_it() {
        let seen = NewestIdentity::default();
        let reported = |id: &str, writes| StoreIdentity { id: id.into(), writes };
        for (new, newest) in [
            (reported("s.0.a", 10), reported("s.0.a", 10)),
            (reported("s.0.b", 20), reported("s.0.b", 20)),
            // From a server that has seen less.
            (reported("s.0.a", 15), reported("s.0.b", 20)),
            (reported("s.1.c", 12), reported("s.1.c", 12)),
            // From a server that has not seen the recovery.
            (reported("s.0.b", 99), reported("s.1.c", 12)),
            (reported("t.0.d", 1), reported("t.0.d", 1)),
        ] {
            seen.record(new);
            assert_eq!(seen.get(), Some(newest));
        }
    }
}
