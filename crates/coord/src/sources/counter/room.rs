//! How much memory the keys of all counter sources of a node take together. Whoever counts decides how many keys there
//! are, and whoever defines sources how many tables.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Which part of the room is made free at once: all keys of all sources go on higher each time.
const FREED_AT_ONCE: usize = 16;

/// The most bytes in all tables of a node, and how many there are. The counts guard nothing else.
#[derive(Debug)]
pub(in crate::sources) struct KeyRoom {
    bytes_max: AtomicUsize,
    taken: AtomicUsize,
}

impl KeyRoom {
    pub(in crate::sources) const fn new(bytes_max: usize) -> Self {
        Self { bytes_max: AtomicUsize::new(bytes_max), taken: AtomicUsize::new(0) }
    }

    pub(in crate::sources) fn set_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Whether there is more than there may be.
    #[inline]
    pub(in crate::sources) fn is_over(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.bytes_max.load(Ordering::Relaxed)
    }

    /// How many bytes are made free when there are too many.
    pub(in crate::sources) fn freed_at_once(&self) -> usize {
        (self.bytes_max.load(Ordering::Relaxed) / FREED_AT_ONCE).max(1)
    }

    pub(super) fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}
