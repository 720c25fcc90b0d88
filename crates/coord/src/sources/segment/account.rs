//! What became of the numbers of a source, over all the stocks that it has in the life of a process.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Totals of one source. A stock that takes the place of another goes on with them: a monitor takes a total that falls for
/// a process that has begun anew, and counts all of it once more.
#[derive(Debug, Default)]
pub(super) struct Account(Mutex<Totals>);

#[derive(Debug, Default)]
struct Totals {
    /// Numbers taken from the store, those of answers that never came included.
    fetched: u64,
    /// Those of them that nobody gets.
    lost: u64,
}

impl Account {
    /// So many came.
    pub(super) fn fetch(&self, count: u64) {
        let mut totals = self.lock();
        totals.fetched = totals.fetched.saturating_add(count);
    }

    /// So many of those that came are lost.
    pub(super) fn lose(&self, count: u64) {
        let mut totals = self.lock();
        totals.lost = totals.lost.saturating_add(count);
    }

    /// So many were taken, and did not come.
    pub(super) fn burn(&self, count: u64) {
        self.fetch(count);
        self.lose(count);
    }

    /// So many that were counted as lost at the end went back.
    pub(super) fn gave_back(&self, count: u64) {
        let mut totals = self.lock();
        totals.fetched = totals.fetched.saturating_sub(count);
        totals.lost = totals.lost.saturating_sub(count);
    }

    /// How many were fetched, and how many of them are lost.
    pub(super) fn totals(&self) -> (u64, u64) {
        let totals = self.lock();
        (totals.fetched, totals.lost)
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
