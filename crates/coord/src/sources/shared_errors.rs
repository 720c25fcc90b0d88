//! Errors that sources of several kinds report.

use crate::error::Error;
use crate::spec::Kind;

/// Returns the error for a call that a source of another kind serves; `need` says which.
#[cold]
pub(super) fn has_other_kind(name: &str, kind: Kind, need: &str) -> Error {
    Error::invalid(format!("source {name:?} has kind {}; {need}", kind.name()))
}

/// Returns the error for a key given to a source that does not count by key.
#[cold]
pub(super) fn takes_no_key(name: &str) -> Error {
    Error::invalid(format!("source {name:?} takes no key; leave it out"))
}

/// Returns the error for a counter called without a key.
#[cold]
pub(super) fn needs_key(name: &str) -> Error {
    Error::invalid(format!("source {name:?} counts by key; give a key"))
}

/// Returns the error for a call that cannot wait: nothing is prefetched.
#[cold]
pub(super) fn requires_wait(name: &str) -> Error {
    Error::unsupported(format!("source {name:?} prefetches nothing; use a call that waits"))
}

/// Returns the error for a source that has ended.
#[cold]
pub(super) fn closed(name: &str) -> Error {
    Error::closed(format!("source {name:?} is closed; open it again"))
}
