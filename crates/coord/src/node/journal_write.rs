//! Writes of the journal, which block on the disk and run outside the driver loop.

use snowmint_core::UnixMillis;

use crate::error::Result;
use crate::journal::{Journal, Record};
use crate::lease::Term;
use crate::waiters::Waiters;

/// Mark of a lease in the journal.
#[derive(Clone, Debug)]
pub(super) struct JournalMark {
    pub(super) pool: String,
    pub(super) slot: u64,
    pub(super) term: Term,
    pub(super) mark: UnixMillis,
}

/// Write to run outside the driver loop: it blocks on the disk.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) number: u64,
    pub(super) journal: Journal,
    pub(super) record: Record,
    pub(super) marks: Vec<JournalMark>,
    pub(super) waiters: Waiters<()>,
}

/// Write that was done.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) number: u64,
    pub(super) journal: Journal,
    pub(super) marks: Vec<JournalMark>,
    pub(super) waiters: Waiters<()>,
    pub(super) outcome: Result<()>,
}

impl Write {
    pub(super) fn run(mut self) -> Written {
        let outcome = self.journal.write(&self.record);
        let Self { number, journal, marks, waiters, .. } = self;
        Written { number, journal, marks, waiters, outcome }
    }
}
