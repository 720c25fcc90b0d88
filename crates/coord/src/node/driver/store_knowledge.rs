//! Knowledge of a node about its store, and its reset after a recovery.

use super::super::store_knowledge::StoreKnowledge;
use super::state::Driver;
use crate::error::{Error, ErrorKind};
use crate::ids::Mark;
use crate::machine::WindowMachine;
use crate::model::catalog::Catalog;
use crate::model::history::{History, Known, StoreIdentity};

impl Driver {
    /// Returns what this process, its journal, and the journal's earlier processes know of the
    /// store.
    pub(super) fn knowledge(&self) -> StoreKnowledge {
        let mut known = self.journal_writer.known();
        let held = self.leases.values().flat_map(|held| held.windows());
        let marks = held.map(WindowMachine::mark).chain(self.past.iter().map(|past| past.mark));
        let marks = marks.chain([self.past_mark]);
        let (writes_seen, recoveries_seen) = self.seen_by_handle();
        let writes = self.fingerprint.writes.max(self.core.ctx.writes_seen()).max(writes_seen);
        let recoveries = History::of(&self.fingerprint.store).recoveries.max(recoveries_seen);
        let mark = marks.max().unwrap_or(Mark::ZERO).get();
        let (ends, ids) = (self.core.ends_seen(), self.core.ids_seen());
        known.merge(&Known {
            mark,
            ends: ends.clone(),
            ids,
            writes,
            recoveries,
            catalog: self.core.ctx.catalog_seen(),
            ..Known::default()
        });
        let (fingerprint, journal) =
            (self.fingerprint.clone(), self.journal_writer.id().map(Into::into));
        // While the store is in doubt, nothing more is taken from it.
        let is_whole = self.core.ctx.doubts.check().is_err();
        StoreKnowledge { fingerprint, known, ends, journal, is_whole }
    }

    /// Returns how far the handle has seen this store; zero for another store. It may have seen more
    /// than the last join, and before the first join of a process without a journal it alone has
    /// seen anything. The handle compares with all that it has seen, so a recovery must exceed it.
    fn seen_by_handle(&self) -> (u64, u64) {
        let joined = History::of(&self.fingerprint.store);
        let Some(seen) = self.core.ctx.store.seen() else { return (0, 0) };
        let history = History::of(&seen.id);
        let is_own = joined.store.is_empty() || history.store == joined.store;
        if is_own { (seen.writes, history.recoveries) } else { (0, 0) }
    }

    /// Returns whether the store was recovered since the join. Any response may have shown this,
    /// also one to another caller, or one that no caller waited for. The node must then join again,
    /// since its numbers may belong to the lost history. It may also be another namespace's
    /// recovery, where namespaces share a history: if that is the only evidence, the slot defaults
    /// need not have leapt before the next join. Values that were raised show in the same way.
    pub(super) fn was_recovered(&mut self, seen: &StoreIdentity) -> bool {
        if seen.id == self.fingerprint.store {
            return false;
        }
        let (known, found) = (History::of(&self.fingerprint.store), History::of(&seen.id));
        if known.store != found.store || found.recoveries <= known.recoveries {
            return false;
        }
        let error = moved_forward(&self.fingerprint.who, self.fingerprint.writes, seen.writes);
        if self.core.ctx.doubts.rolled_back().is_none() {
            self.fingerprint.ground = None;
        }
        self.core.ctx.doubt(&error);
        true
    }

    /// Resets this node after a recovery of its store: prefetched or kept numbers may be another
    /// process's by now, and sources are those that the store has.
    pub(super) fn forget_lost_history(&mut self, catalog: &Catalog, writes: u64) {
        self.journal_writer.forget_tails();
        self.core.forget_tails();
        self.core.drop_prefetched_numbers();
        self.core.ctx.reset_counts(catalog.version, writes);
        self.core.adopt_catalog(catalog);
    }
}

/// Returns the error for a store that an operator has moved forward. Until the node has joined again,
/// it cannot know whether the store had lost anything.
fn moved_forward(who: &str, seen: u64, found: u64) -> Error {
    let evidence =
        format!("write count seen by {who}, before an operator moved the store forward,");
    let message = "an operator has moved the store forward (a recovery, or values that were \
                   raised, of this namespace or of another); joining it again";
    Error::of(ErrorKind::StoreRolledBack { evidence, seen, found }, message)
}
