//! A store clock for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snowmint_core::UnixMillis;

/// The store's own clock, set by tests. Clones share the time.
#[derive(Clone, Debug)]
pub struct MemoryClock(Arc<AtomicU64>);

impl MemoryClock {
    /// Creates a clock that shows `now` until it is set.
    #[must_use]
    pub fn new(now: UnixMillis) -> Self {
        Self(Arc::new(AtomicU64::new(now.get())))
    }

    /// Sets the time, forward or back.
    pub fn set(&self, now: UnixMillis) {
        self.0.store(now.get(), Ordering::SeqCst);
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        UnixMillis::new(self.0.load(Ordering::SeqCst))
    }
}
