//! Facts about the store that reservations in one step remember.

use super::batch::Entry;
use super::record::StoreRecord;

/// The store's record as last read and checked.
#[derive(Debug)]
pub(super) struct KnownStore {
    pub(super) store: Entry,
    pub(super) record: StoreRecord,
    /// The server that had it.
    pub(super) server: Option<String>,
}
