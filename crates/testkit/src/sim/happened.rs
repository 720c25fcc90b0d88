//! What happened in a run, and how often: counted where it happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Clones share it.
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
