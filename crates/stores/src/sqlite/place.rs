//! Name of the file in messages.

use std::path::Path;

use crate::failure::at;

/// Longest wait of one statement for the writers of other processes, in milliseconds.
pub(super) const BUSY_TIMEOUT_MS: u64 = 10_000;

/// Name of the store in messages.
pub(super) const LABEL: &str = "SQLite file";

/// Returns the place of the file, as the detail of an error.
pub(super) fn place(path: &Path) -> String {
    at(&format!("{path:?}"))
}
