//! Results about sections that wait for the journal. Before a number from a window leaves this
//! process, the journal counts the store's write that opened the window. Otherwise a store that is
//! restored to before this write, and a process that starts then, would hand it out once more.

use super::state::{Driver, SectionsDone, UnwrittenSections};
use crate::ids::Incarnation;
use crate::machine::Now;

impl SectionsDone {
    /// Returns whether windows may open by this result.
    fn opens_windows(&self) -> bool {
        match self {
            Self::Acquired(_, result) => {
                result.as_ref().is_ok_and(|acquired| !acquired.leases.is_empty())
            }
            Self::Extended(_, results) => results.iter().any(Result::is_ok),
            Self::Relinquished(..) | Self::Listed(_) | Self::Announced(..) => false,
        }
    }
}

impl Driver {
    /// Handles a result about sections. If windows may open by it, it counts as returned only when
    /// the journal has the store's present count of writes.
    pub(super) fn sections_returned(&mut self, now: Now, member: Incarnation, done: SectionsDone) {
        if let SectionsDone::Extended(_, results) = &done {
            for extended in results.iter().flatten() {
                self.core.ctx.saw(extended.catalog_version, extended.writes);
            }
        }
        if !self.journal_writer.is_kept() || !done.opens_windows() {
            return self.sections_done(now, member, done);
        }
        let write = self.journal_writer.next_write();
        self.core.ctx.journal_budget.waits(now.elapsed);
        self.unwritten.push(UnwrittenSections { write, member, done });
    }

    /// Handles the results that the journal has now.
    pub(super) fn sections_written(&mut self, now: Now) {
        for unwritten in std::mem::take(&mut self.unwritten) {
            let UnwrittenSections { write, member, done } = unwritten;
            if !self.journal_writer.is_on_disk(write) {
                self.unwritten.push(UnwrittenSections { write, member, done });
            } else if self.core.ctx.doubts.check().is_ok() {
                // Under a doubt the journal counts no writes, and this membership is about to end.
                self.sections_done(now, member, done);
            }
        }
    }
}
