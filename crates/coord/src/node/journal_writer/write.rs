//! Writes of the journal, which block on the disk and run outside the driver loop.

use snowmint_core::UnixMillis;

use crate::error::Result;
use crate::ids::Term;
use crate::journal::{Journal, Record};
use crate::platform::waiters::Waiters;

/// Mark of a lease in the journal.
#[derive(Clone, Debug)]
pub(in crate::node) struct JournalMark {
    pub(in crate::node) pool: String,
    pub(in crate::node) slot: u64,
    pub(in crate::node) term: Term,
    pub(in crate::node) mark: UnixMillis,
}

/// Write to run outside the driver loop: it blocks on the disk.
#[derive(Debug)]
pub(in crate::node) struct Write {
    pub(super) number: u64,
    pub(super) journal: Journal,
    pub(super) record: Record,
    pub(super) marks: Vec<JournalMark>,
    pub(super) waiters: Waiters<()>,
}

/// Write that was done.
#[derive(Debug)]
pub(in crate::node) struct Written {
    pub(super) number: u64,
    pub(super) journal: Journal,
    pub(super) marks: Vec<JournalMark>,
    pub(super) waiters: Waiters<()>,
    pub(super) outcome: Result<()>,
}

impl Write {
    pub(in crate::node) fn run(mut self) -> Written {
        let outcome = self.journal.write(&self.record);
        let Self { number, journal, marks, waiters, .. } = self;
        Written { number, journal, marks, waiters, outcome }
    }
}
