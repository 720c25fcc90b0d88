//! Locks of plain data.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. Those here guard plain data that is whole after every statement, so a poisoned
/// one is still usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
