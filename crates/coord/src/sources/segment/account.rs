//! Totals of a source's numbers, over all prefetched blocks in the life of a process.

use std::sync::Mutex;

use crate::platform::lock::lock;

/// Totals of one source. A replaced source shares them with its successor: a monitor would take a
/// falling total for a restarted process, and count all of it once more.
#[derive(Debug, Default)]
pub(super) struct Account(Mutex<Totals>);

#[derive(Debug, Default)]
struct Totals {
    /// Numbers taken from the store, including those of lost results.
    fetched: u64,
    /// Fetched numbers that are never issued.
    lost: u64,
}

impl Account {
    /// Adds numbers that were fetched.
    pub(super) fn fetch(&self, count: u64) {
        let mut totals = lock(&self.0);
        totals.fetched = totals.fetched.saturating_add(count);
    }

    /// Adds fetched numbers that are lost.
    pub(super) fn lose(&self, count: u64) {
        let mut totals = lock(&self.0);
        totals.lost = totals.lost.saturating_add(count);
    }

    /// Adds numbers that the store reserved, but that never arrived.
    pub(super) fn burn(&self, count: u64) {
        self.fetch(count);
        self.lose(count);
    }

    /// Subtracts numbers that counted as lost at the end, but were given back to the store.
    pub(super) fn gave_back(&self, count: u64) {
        let mut totals = lock(&self.0);
        totals.fetched = totals.fetched.saturating_sub(count);
        totals.lost = totals.lost.saturating_sub(count);
    }

    /// Returns how many numbers were fetched, and how many of them are lost.
    pub(super) fn totals(&self) -> (u64, u64) {
        let totals = lock(&self.0);
        (totals.fetched, totals.lost)
    }
}
