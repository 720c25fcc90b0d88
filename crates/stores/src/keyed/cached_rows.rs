//! Rows as this handle last wrote them. A step that depends on no other rows needs one round trip,
//! because it succeeds only if all of them are unchanged, and the store has everything that this
//! handle has seen. A member moves its own mark this way, since no other process writes that mark.

use std::collections::HashMap;
use std::sync::Mutex;

use snowmint_coord::lock;

use super::batch::{Batch, Entry, Head};
use super::name;

/// Most rows of a step that are remembered: larger steps take memory, and one saved trip among many
/// is little.
const ROWS_OF_A_STEP_MAX: usize = 8;
/// Most rows that are remembered before all are forgotten.
const ROWS_MAX: usize = 256;

/// Rows as the handle's last writing steps left them. A clone is a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) head: Head,
    pub(super) entries: HashMap<String, Entry>,
}

/// Keeper of the rows of a handle.
#[derive(Debug, Default)]
pub(super) struct RowCache(Mutex<Option<Rows>>);

impl RowCache {
    /// Returns the head, and the row under this key only.
    pub(super) fn with(&self, key: &str) -> Option<Rows> {
        let cached_rows = lock(&self.0);
        let cached_rows = cached_rows.as_ref()?;
        let entry = cached_rows.entries.get(key)?.clone();
        let entries = HashMap::from([(key.to_owned(), entry)]);
        Some(Rows { head: cached_rows.head.clone(), entries })
    }

    pub(super) fn forget(&self) {
        *lock(&self.0) = None;
    }

    /// Remembers the rows after an applied batch, which set the write count to `writes`.
    /// `version_after` is [`Keys::version_after`](super::keys::Keys::version_after).
    pub(super) fn keep(
        &self,
        head: &Head,
        batch: Batch,
        writes: u64,
        version_after: fn(u64, u64) -> u64,
    ) {
        let mut cached_rows = lock(&self.0);
        if batch.expected.len() > ROWS_OF_A_STEP_MAX {
            return;
        }
        let entries = cached_rows.take().map(|rows| rows.entries).unwrap_or_default();
        let mut rows = Rows { head: head.clone(), entries };
        if rows.entries.len() > ROWS_MAX {
            rows.entries.clear();
        }
        for (key, value) in batch.changes {
            let before = batch.expected.get(&key).copied().unwrap_or(0);
            let version = version_after(before, writes);
            let entry =
                value.map(|value| Entry { key: key.clone(), value, version, written: writes });
            match (key.as_str(), entry) {
                (name::STORE, entry) => rows.head.store = entry,
                (name::NAMESPACE, entry) => rows.head.namespace = entry,
                (_, Some(entry)) => drop(rows.entries.insert(key, entry)),
                (_, None) => drop(rows.entries.remove(&key)),
            }
        }
        *cached_rows = Some(rows);
    }
}
