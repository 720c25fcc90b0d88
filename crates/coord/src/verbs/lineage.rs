//! State of the store that a handle has seen: the identity and the count of writes, kept together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::history::{check_server_of, is_in_doubt, put_start, read_starts, refuse_doubt};
use super::{Access, Answer, Failure, Rows, WITNESS};
use crate::error::ErrorKind;
use crate::history::{History, Recalled, recall};
use crate::store::StoreIdentity;

#[derive(Debug)]
pub(super) struct Lineage {
    /// `None` before the first step on rows.
    seen: Mutex<Option<Arc<StoreIdentity>>>,
    /// Whether this handle has left a start.
    has_begun: AtomicBool,
}

impl Lineage {
    pub(super) const fn new() -> Self {
        Self { seen: Mutex::new(None), has_begun: AtomicBool::new(false) }
    }

    /// Resets the state to that of a newly opened handle.
    pub(super) fn forget(&self) {
        *self.lock() = None;
        self.has_begun.store(false, Ordering::SeqCst);
    }

    /// Records the state that an earlier process has seen.
    pub(super) fn remember(&self, seen: &StoreIdentity) {
        let is_known = !seen.id.is_empty();
        let mut known = self.lock();
        if known.is_none() && is_known {
            *known = Some(Arc::new(seen.clone()));
        }
    }

    pub(super) fn seen(&self) -> Option<Arc<StoreIdentity>> {
        self.lock().clone()
    }

    /// Returns the base for steps of the back end's own: `None` before this handle has left a
    /// start, or in doubt.
    pub(super) fn begun(&self) -> Option<Arc<StoreIdentity>> {
        let seen = self.seen().filter(|_| self.has_begun.load(Ordering::SeqCst))?;
        (!History::says_doubt(&seen.id)).then_some(seen)
    }

    /// Records the identity after a step; `begins` if the step left a start.
    pub(super) fn saw(&self, identity: StoreIdentity, access: Access, begins: bool) {
        let mut seen = self.lock();
        // The rest of a store in doubt, which may have counted further, is not the state that was
        // seen.
        if access == Access::Read && seen.is_some() && History::says_doubt(&identity.id) {
            return;
        }
        let is_newest = seen.as_ref().is_none_or(|seen| seen.writes <= identity.writes);
        if access == Access::Forward || is_newest {
            *seen = Some(Arc::new(identity));
        }
        drop(seen);
        if begins {
            self.has_begun.store(true, Ordering::SeqCst);
        }
    }

    /// Records the count after a step of the back end's own, in the history that the step was
    /// given.
    pub(super) fn counted(&self, id: &str, writes: u64) {
        let mut seen = self.lock();
        if let Some(known) = seen.as_ref().filter(|known| known.id == id && known.writes < writes) {
            *seen = Some(Arc::new(StoreIdentity { id: known.id.clone(), writes }));
        }
    }

    /// Checks the store against the seen state: a handle that saw another store detects a
    /// replacement, and a handle that saw more of this store detects an older copy.
    pub(super) async fn check<R: Rows>(
        &self,
        rows: &mut R,
        access: Access,
        seen: Option<&StoreIdentity>,
        label: &str,
    ) -> Answer<R, ()> {
        let found = rows.identity().clone();
        if access == Access::Write {
            refuse_doubt(rows).await?;
        }
        let Some(seen) = seen else { return Ok(()) };
        if seen.id == found.id && seen.writes <= found.writes {
            return Ok(());
        }
        // An operator who recovers a store in doubt reads the rest of it.
        let is_same = History::of(&seen.id).store == History::of(&found.id).store;
        if is_same && access == Access::Read && is_in_doubt(rows).await? {
            return Ok(());
        }
        let starts = read_starts(rows).await?;
        let went_back = |seen, found| {
            let witness = format!("the number of changes in {label}");
            Failure::Refused(ErrorKind::StoreWentBack { witness, seen, found })
        };
        let recalled = recall(WITNESS, seen, &found, &starts);
        check_server_of(rows, &recalled)?;
        match recalled {
            Ok(Recalled::Same) => Ok(()),
            Ok(Recalled::Recovered) => {
                let writes = found.writes;
                // Users of this handle get one error, to learn that their leases and numbers are
                // void.
                self.saw(found, Access::Forward, false);
                Err(went_back(seen.writes, writes))
            }
            Err(ErrorKind::StoreWentBack { seen, found, .. }) => Err(went_back(seen, found)),
            Err(kind) => Err(Failure::Refused(kind)),
        }
    }

    /// Checks that the store is the one that was seen, in whatever state: doubts and reports
    /// concern that store.
    pub(super) fn check_store<R: Rows>(
        rows: &R,
        seen: Option<&StoreIdentity>,
    ) -> Result<(), ErrorKind> {
        let Some(seen) = seen else { return Ok(()) };
        let (expected, found) =
            (History::of(&seen.id).store, History::of(&rows.identity().id).store);
        if expected == found {
            return Ok(());
        }
        Err(ErrorKind::OtherStore { witness: WITNESS.to_owned(), expected, found })
    }

    /// Leaves a start with a step that writes, if this handle has left none. Returns whether it
    /// did.
    pub(super) async fn begin<R: Rows>(&self, rows: &mut R) -> Answer<R, bool> {
        if self.has_begun.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let history = put_start(rows).await?;
        rows.name(history.to_string())?;
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<StoreIdentity>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
