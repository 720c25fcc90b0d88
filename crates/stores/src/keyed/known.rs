//! Rows as a handle wrote them last: a step that rests on nothing else needs one round trip, because it ends
//! only if all of them still stand. So a member moves its own mark, which nobody else writes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Batch, Entry, Head, name};

/// Rows of steps that wrote more than this are not kept: they take memory, and one trip among many is little.
const ROWS_OF_A_STEP_MAX: usize = 8;
/// The rows that are kept at most, before all are forgotten.
const ROWS_MAX: usize = 256;

/// What the rows were after the last steps of a handle that wrote some. Clones are of a moment.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) head: Head,
    pub(super) entries: HashMap<String, Entry>,
}

/// Keeps them for a handle.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<Rows>>);

impl Known {
    /// The head, and of the rows the one under this key.
    pub(super) fn with(&self, key: &str) -> Option<Rows> {
        let known = self.lock();
        let known = known.as_ref()?;
        let entry = known.entries.get(key)?.clone();
        let entries = HashMap::from([(key.to_owned(), entry)]);
        Some(Rows { head: known.head.clone(), entries })
    }

    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    /// What stands after a batch that was carried out: `version_after` says the version of a key that had
    /// the given one before.
    pub(super) fn keep(&self, head: &Head, batch: Batch, version_after: impl Fn(u64) -> u64) {
        let mut known = self.lock();
        if batch.expected.len() > ROWS_OF_A_STEP_MAX {
            return;
        }
        let entries = known.take().map(|rows| rows.entries).unwrap_or_default();
        let mut rows = Rows { head: head.clone(), entries };
        if rows.entries.len() > ROWS_MAX {
            rows.entries.clear();
        }
        for (key, value) in batch.changes {
            let version = version_after(batch.expected.get(&key).copied().unwrap_or(0));
            let entry = value.map(|value| Entry {
                key: key.clone(),
                value,
                version,
                // Nobody asks it of a row.
                written: version,
            });
            match (key.as_str(), entry) {
                (name::STORE, entry) => rows.head.store = entry,
                (name::NAMESPACE, entry) => rows.head.namespace = entry,
                (_, Some(entry)) => drop(rows.entries.insert(key, entry)),
                (_, None) => drop(rows.entries.remove(&key)),
            }
        }
        *known = Some(rows);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Rows>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
