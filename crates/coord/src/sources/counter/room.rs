//! Memory limit for the keys of all counter sources of a node together. Callers decide how many
//! keys there are, and authors of definitions how many tables.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Divisor for the part of the limit that is freed at a time. Each time, all keys of the sources
/// that have forgotten any continue at higher numbers.
const FREED_DIVISOR: usize = 16;

/// Most bytes in all tables of a node, and the bytes used now. These counts guard no other memory.
#[derive(Debug)]
pub(in crate::sources) struct KeyRoom {
    bytes_max: AtomicUsize,
    used: AtomicUsize,
}

impl KeyRoom {
    pub(in crate::sources) const fn new(bytes_max: usize) -> Self {
        Self { bytes_max: AtomicUsize::new(bytes_max), used: AtomicUsize::new(0) }
    }

    pub(in crate::sources) fn set_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Returns whether the tables use more than the limit.
    #[inline]
    pub(in crate::sources) fn is_over(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.bytes_max.load(Ordering::Relaxed)
    }

    /// Returns how many bytes to free when the limit is exceeded.
    pub(in crate::sources) fn bytes_to_free(&self) -> usize {
        (self.bytes_max.load(Ordering::Relaxed) / FREED_DIVISOR).max(1)
    }

    pub(super) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
