//! Cache of external leases.

use std::collections::HashMap;
use std::sync::Mutex;

use snowmint_core::UnixMillis;

use crate::ids::{Mark, Term};
use crate::model::external::ExternalClient;
use crate::model::lease::Lease;
use crate::model::slot::SlotInfo;
use crate::platform::lock::lock;

/// Slot of an external lease, as it was last seen.
#[derive(Clone, Debug)]
pub(super) struct CachedSlot {
    pub(super) pool: String,
    pub(super) slot: u64,
    pub(super) term: Term,
    pub(super) mark: Mark,
}

impl From<SlotInfo> for CachedSlot {
    fn from(info: SlotInfo) -> Self {
        Self { pool: info.pool, slot: info.slot, term: info.term, mark: info.mark }
    }
}

impl From<Lease> for CachedSlot {
    fn from(lease: Lease) -> Self {
        Self { pool: lease.pool, slot: lease.slot, term: lease.term, mark: lease.mark }
    }
}

/// Cache of the external leases granted through this node, so that keeping one takes one write and
/// no search. It may be stale: the store knows.
#[derive(Debug, Default)]
pub(super) struct ExternalLeaseCache {
    known: Mutex<HashMap<ExternalClient, Vec<CachedSlot>>>,
    /// Lock that the one reader of all slots holds.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl ExternalLeaseCache {
    pub(super) fn of(&self, client: &ExternalClient) -> Option<Vec<CachedSlot>> {
        lock(&self.known).get(client).cloned()
    }

    pub(super) fn know(&self, client: &ExternalClient, held: Vec<CachedSlot>, now: UnixMillis) {
        let mut known = lock(&self.known);
        if !known.contains_key(client) {
            // Clients that do not return must not fill the memory.
            known.retain(|_, held| held.iter().any(|held| held.mark.unix_millis() > now));
        }
        known.insert(client.clone(), held);
    }

    /// Returns a client's known slots, if all marks must move to reach `until`. An unmoved mark
    /// would be trusted without asking the store.
    pub(super) fn moving(&self, client: &ExternalClient, until: Mark) -> Option<Vec<CachedSlot>> {
        self.of(client).filter(|held| held.iter().all(|held| held.mark < until))
    }

    pub(super) fn forget(&self, client: &ExternalClient) {
        lock(&self.known).remove(client);
    }
}
