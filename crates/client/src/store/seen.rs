//! Fingerprints of the store that servers have reported.

use std::sync::{Mutex, MutexGuard, PoisonError};

use snowmint_coord::StoreIdentity;
use snowmint_coord::history::History;
use snowmint_wire::grpc::store::DoneResponse;

/// Newest identity of the store, and the write count reported with it.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<Option<StoreIdentity>>);

impl Seen {
    pub(super) fn get(&self) -> Option<StoreIdentity> {
        self.newest().clone()
    }

    /// Observes the fingerprint in a response, if there is one.
    pub(super) fn hear(&self, answer: &DoneResponse) {
        if let Some(said) = &answer.seen {
            self.saw(StoreIdentity { id: said.id.clone(), writes: said.writes });
        }
    }

    /// Keeps the newer fingerprint: responses of several servers overtake each other, and some
    /// servers have seen less.
    pub(super) fn saw(&self, said: StoreIdentity) {
        let mut newest = self.newest();
        let is_newer = newest.as_ref().is_none_or(|known| {
            let (before, now) = (History::of(&known.id), History::of(&said.id));
            // A server that has not seen a recovery counts in the history that was lost.
            before.store != now.store
                || (before.recoveries, known.writes) <= (now.recoveries, said.writes)
        });
        if is_newer {
            *newest = Some(said);
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
        let seen = Seen::default();
        let said = |id: &str, writes| StoreIdentity { id: id.into(), writes };
        for (new, newest) in [
            (said("s.0.a", 10), said("s.0.a", 10)),
            (said("s.0.b", 20), said("s.0.b", 20)),
            // From a server that has seen less.
            (said("s.0.a", 15), said("s.0.b", 20)),
            (said("s.1.c", 12), said("s.1.c", 12)),
            // From a server that has not seen the recovery.
            (said("s.0.b", 99), said("s.1.c", 12)),
            (said("t.0.d", 1), said("t.0.d", 1)),
        ] {
            seen.saw(new);
            assert_eq!(seen.get(), Some(newest));
        }
    }
}
