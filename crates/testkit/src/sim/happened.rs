//! Events of a run and their counts, recorded where they happen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts of events. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Happened(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Happened {
    pub(super) fn count(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    pub(super) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
