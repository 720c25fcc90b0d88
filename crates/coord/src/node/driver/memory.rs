//! Knowledge of a node about its store, and its reset after a recovery.

use super::super::seen::Memory;
use super::Driver;
use crate::catalog::Catalog;
use crate::error::Error;
use crate::history::{History, Known};
use crate::lease::Mark;
use crate::machine::WindowMachine;
use crate::store::StoreIdentity;

impl Driver {
    /// Returns what this process, its journal, and the journal's earlier processes know of the
    /// store.
    pub(super) fn memory(&self) -> Memory {
        let mut known = self.keeper.known();
        let held = self.leases.values().flat_map(|held| held.windows());
        let marks = held.map(WindowMachine::mark).chain(self.past.iter().map(|past| past.mark));
        let marks = marks.chain([self.past_mark]);
        let writes = self.witness.writes.max(self.core.around.writes_seen());
        let recoveries = History::of(&self.witness.store).recoveries;
        let mark = marks.max().unwrap_or(Mark::ZERO).get();
        let (ends, ids) = (self.core.ends_seen(), self.core.ids_seen());
        known.merge(&Known {
            mark,
            ends: ends.clone(),
            ids,
            writes,
            recoveries,
            catalog: self.core.around.catalog_seen(),
            ..Known::default()
        });
        let (witness, journal) = (self.witness.clone(), self.keeper.id().map(Into::into));
        // While the store is in doubt, nothing more is taken from it.
        let is_whole = self.core.around.doubts.check().is_err();
        Memory { witness, known, ends, journal, is_whole }
    }

    /// Returns whether the store was recovered since the join. Any response may have shown this,
    /// also one to another caller, or one that no caller waited for. The node must then join again,
    /// since its numbers may belong to the lost history. It may also be another namespace's
    /// recovery, where namespaces share a history: if that is the only evidence, the slot defaults
    /// need not have leapt before the next join.
    pub(super) fn was_recovered(&mut self, seen: &StoreIdentity) -> bool {
        if seen.id == self.witness.store {
            return false;
        }
        let (known, found) = (History::of(&self.witness.store), History::of(&seen.id));
        if known.store != found.store || found.recoveries <= known.recoveries {
            return false;
        }
        let evidence = format!("write count seen by {}", self.witness.who);
        let error = Error::store_rolled_back(evidence, self.witness.writes, seen.writes);
        if self.core.around.doubts.went_back().is_none() {
            self.witness.ground = None;
        }
        self.core.around.doubt(&error);
        true
    }

    /// Resets this node after a recovery of its store: prefetched or kept numbers may be another
    /// process's by now, and sources are those that the store has.
    pub(super) fn forget_lost_history(&mut self, catalog: &Catalog, writes: u64) {
        self.keeper.forget_tails();
        self.core.forget_tails();
        self.core.drop_stocks();
        self.core.around.begins_anew(catalog.version, writes);
        self.core.take_as_stored(catalog);
    }
}
