//! Stripes by which embedded clients mint.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::stripe::Stripe;

/// Stripes that embedded clients mint by: for each source the one requested last, with its
/// definition's version.
#[derive(Debug, Default)]
pub(super) struct ClientStripes(Mutex<BTreeMap<String, (u64, Stripe)>>);

impl ClientStripes {
    pub(super) fn known(&self) -> MutexGuard<'_, BTreeMap<String, (u64, Stripe)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all stripes: version numbers may stand for other definitions from now on.
    pub(super) fn forget(&self) {
        self.known().clear();
    }
}
