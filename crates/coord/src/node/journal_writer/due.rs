//! Times at which the journal is due.

use snowmint_core::ElapsedMillis;

use super::JournalWriter;
use crate::machine::Now;

/// Shortest time between two writes for the count of the store's writes alone.
const COUNT_EVERY_MS: u64 = 1_000;

impl JournalWriter {
    /// Requests a write of everything that is known now. Returns its number.
    pub(in crate::node) fn next_write(&mut self) -> u64 {
        self.want();
        self.kept.as_ref().map_or(0, |kept| kept.begun.saturating_add(1))
    }

    /// Returns whether that write, or a later one, is on disk. Without a journal nothing waits for
    /// it.
    pub(in crate::node) fn is_on_disk(&self, write: u64) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.on_disk >= write)
    }

    /// Marks the journal as due.
    pub(in crate::node) fn want(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.wanted = true;
        }
    }

    /// Marks the journal as due within [`COUNT_EVERY_MS`]: a caller has something that the store
    /// handed out, by a write that the journal may not count yet.
    pub(in crate::node) fn want_soon(&mut self, now: Now) {
        if let Some(kept) = &mut self.kept {
            let due_at = kept.begun_at.map(|at| at.saturating_add(COUNT_EVERY_MS));
            kept.due_at.get_or_insert(due_at.unwrap_or(now.elapsed));
        }
    }

    /// Returns the milliseconds until the next write; none while none is wanted, or one is in flight.
    pub(in crate::node) fn next_poll_ms(&self, now: Now) -> Option<u64> {
        let kept = self.kept.as_ref()?;
        let due_at = if kept.wanted { ElapsedMillis::default() } else { kept.due_at? };
        let due_at = due_at.max(kept.retry_at);
        kept.journal.is_some().then(|| due_at.since(now.elapsed))
    }
}
