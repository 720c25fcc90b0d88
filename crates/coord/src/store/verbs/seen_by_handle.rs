//! State of one moment of the store: what a handle compares with the store at a step.

use std::sync::Arc;

use super::rows::THIS_PROCESS;
use crate::error::{Error, Result};
use crate::model::history::{History, Recalled, StoreIdentity, StoredHistory, recall};

/// State of a store that a handle has seen.
#[derive(Clone, Debug)]
pub(super) struct SeenByHandle {
    pub(super) identity: Arc<StoreIdentity>,
    /// Count that the store had at least when it lacked a write of this handle's state. Since then
    /// the handle's own write may have raised the count past the lost one.
    pub(super) short: Option<u64>,
}

impl SeenByHandle {
    pub(super) fn new(identity: StoreIdentity) -> Self {
        Self { identity: Arc::new(identity), short: None }
    }

    /// Compares the store with this state, as [`recall`] does.
    pub(super) fn recall(&self, found: &StoreIdentity, past: &StoredHistory) -> Result<Recalled> {
        let recalled = recall(THIS_PROCESS, &self.identity, found, past)?;
        let Some(short) = self.short.filter(|_| recalled == Recalled::Same) else {
            return Ok(recalled);
        };
        if past.recovered > History::of(&self.identity.id).recoveries {
            return Ok(Recalled::Recovered);
        }
        let evidence = format!("write count seen by {THIS_PROCESS}");
        Err(Error::store_rolled_back(evidence, self.identity.writes, short))
    }

    /// Returns the count from which on nothing was kept of what this handle has seen; `None` if
    /// the store's count shows it.
    pub(super) fn lost_from(&self) -> Option<u64> {
        Some(self.short?.saturating_add(1))
    }

    /// Returns whether the store is in this state or in a later one of the same history.
    pub(super) fn is_kept_by(&self, found: &StoreIdentity) -> bool {
        let seen = &self.identity;
        self.short.is_none() && seen.id == found.id && seen.writes <= found.writes
    }
}
