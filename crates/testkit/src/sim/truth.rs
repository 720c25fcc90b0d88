//! What is true of the store, watched at its door: which windows were durable, for whom, and where
//! the marks are. Nothing here is told to the nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::{MemoryStore, Store};

use crate::history::{Checked, Ledger, Party, Right, Violation};

/// Shared by everything that watches. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    store: Arc<MemoryStore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    violation: Option<Violation>,
    /// The store has lost something, and nobody has put it right yet.
    went_back: bool,
}

impl Truth {
    pub(super) fn new(store: Arc<MemoryStore>) -> Self {
        Self { store, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self, what: impl Into<String>) {
        self.state().violation.get_or_insert(Violation(what.into()));
    }

    pub(super) fn violation(&self) -> Option<Violation> {
        self.state().violation.clone()
    }

    /// Where the store has the mark now; none when it knows nothing of it.
    pub(super) async fn mark(&self, right: &Right) -> Option<u64> {
        match right {
            Right::Slot(pool, slot) => self.store.row(pool, *slot).map(|row| row.mark.get()),
            Right::Numbers(source) => {
                self.store.get(source).await.ok().map(|found| found.segment.mark.get())
            }
        }
    }

    fn check(&self, checked: Checked) {
        if let Err(Violation(what)) = checked {
            self.fail(what);
        }
    }

    /// The store acknowledged `[from, to)` to `party`.
    pub(super) async fn granted(&self, right: Right, from: u64, to: u64, party: Party) {
        // What counts is what it wrote, not what it said.
        let to = to.min(self.mark(&right).await.unwrap_or(0));
        let granted = self.state().ledger.granted(&right, from, to, party);
        self.check(granted);
    }

    /// The store moved a mark in some other way: what lies above it is nobody's.
    pub(super) async fn moved(&self, right: &Right) {
        let mark = self.mark(right).await.unwrap_or(0);
        let mut state = self.state();
        if state.went_back {
            return;
        }
        let moved = state.ledger.mark_is(right, mark);
        drop(state);
        self.check(moved);
    }

    /// These parts were minted by `party`.
    pub(super) async fn minted(
        &self,
        right: &Right,
        parts: &[(u64, u64)],
        party: Party,
        life: u32,
    ) {
        // A slot that a restored store does not know has no mark of its own.
        let mark = self.mark(right).await.unwrap_or(u64::MAX);
        let went_back = self.state().went_back;
        for (from, to) in parts.iter().copied() {
            let minted = self.state().ledger.minted(right, from, to, party, life);
            if went_back {
                self.fail(format!("{party} minted from {right} on a store that went back"));
            }
            self.check(minted);
            if to > mark {
                self.fail(format!(
                    "{party} minted up to {to} from {right}, beyond the mark in the store, {mark}"
                ));
            }
        }
    }

    /// The first number below the mark that the party has and has not minted.
    pub(super) fn unused(&self, right: &Right, mark: u64, party: Party) -> Option<u64> {
        self.state().ledger.unused(right, mark, party)
    }

    /// The first of these numbers that was promised to nobody.
    pub(super) fn gap(&self, right: &Right, from: u64, to: u64) -> Option<u64> {
        self.state().ledger.gap(right, from, to)
    }

    /// The highest mark that any slot ever had, and the highest of each source's numbers.
    pub(super) fn marks_max(&self) -> (u64, BTreeMap<String, u64>) {
        let state = self.state();
        let (mut slots, mut numbers) = (0, BTreeMap::new());
        for (right, _, mark_max) in state.ledger.ends() {
            match right {
                Right::Slot(..) => slots = slots.max(mark_max),
                Right::Numbers(source) => drop(numbers.insert(source.clone(), mark_max)),
            }
        }
        (slots, numbers)
    }

    /// The store lost something, or an operator has put that right.
    pub(super) fn set_went_back(&self, went_back: bool) {
        self.state().went_back = went_back;
    }
}
