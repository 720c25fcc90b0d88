//! Locks of plain data.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex that guards plain data. Such data is whole after every statement, so it is still
/// usable when a thread panicked in between.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
