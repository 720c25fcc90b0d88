//! True state of the store, observed at each call: which windows were durable, for which party, and
//! where the marks are. The nodes learn nothing of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::spec::{Plan, Stripe};
use snowmint_coord::{Extend, Mark, SourceSpec};

use super::store::SimStore;
use crate::history::{Check, Checked, Ledger, Party, Right, Violation};

/// True state that all observers share. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    store: Arc<dyn SimStore>,
    /// With a planted bug, the check that must find it: no other ends the run.
    only: Option<Check>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    violation: Option<Violation>,
    /// End of the IDs that each machine was promised, of each source of numbers.
    ids: BTreeMap<(String, usize), u64>,
    /// Whether the address leads to another store, or to one that lacks something: it may grant
    /// nothing, and its marks say nothing.
    astray: bool,
}

impl Truth {
    pub(super) fn new(store: Arc<dyn SimStore>, only: Option<Check>) -> Self {
        Self { store, only, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fail(&self, violation: Violation) {
        if self.only.is_none_or(|only| only == violation.check) {
            self.state().violation.get_or_insert(violation);
        }
    }

    /// Records the result of a check, and returns the first failure.
    pub(super) fn judge(&self, checked: Checked) -> Checked {
        self.check(checked);
        self.violation().map_or(Ok(()), Err)
    }

    pub(super) fn violation(&self) -> Option<Violation> {
        self.state().violation.clone()
    }

    /// Returns the store's present mark; `None` when the store does not know the right.
    pub(super) async fn mark(&self, right: &Right) -> Option<u64> {
        match right {
            Right::Slot(pool, slot) => self.store.row(pool, *slot).map(|row| row.mark.get()),
            Right::Numbers(source) => {
                self.store.get(source).await.ok().map(|found| found.segment.mark.get())
            }
        }
    }

    pub(super) fn check(&self, checked: Checked) {
        if let Err(violation) = checked {
            self.fail(violation);
        }
    }

    /// Records that the store acknowledged `[from, to)` to `party`.
    pub(super) async fn granted(&self, right: Right, from: u64, to: u64, party: Party) {
        if self.state().astray {
            let what = format!(
                "{party} was granted {from} to {to} of {right} by a store that is not what it was"
            );
            self.fail(Check::Refusal.broken(what));
        }
        // The written mark counts, not the reply.
        let to = to.min(self.mark(&right).await.unwrap_or(0));
        if let Right::Numbers(source) = &right {
            // A source that was restriped since begins above.
            let free = self.stripe(source).await.free_from(to);
            let mut state = self.state();
            let known = state.ids.entry((source.clone(), party.machine)).or_default();
            *known = free.max(*known);
        }
        let granted = self.state().ledger.granted(&right, from, to, party);
        self.check(granted);
    }

    /// Records extends that a store of keys may have written although its reply got lost. The party
    /// continues there once it has claimed the slot again. A store that has changed may have the
    /// same rows, and grants nothing.
    pub(super) fn may_have_extended(&self, items: &[Extend], party: Party) {
        for item in items {
            let row = self.store.row(&item.pool, item.slot);
            let has = row.is_some_and(|row| (row.term, row.mark) == (item.term, item.to));
            let mut state = self.state();
            if has && !state.astray {
                let right = Right::Slot(item.pool.clone(), item.slot);
                let (from, to) = (item.from.get(), item.to.get());
                let granted = state.ledger.granted(&right, from, to, party);
                drop(state);
                self.check(granted);
            }
        }
    }

    /// Records that the store moved a mark in some other way: no party owns anything above it.
    pub(super) async fn moved(&self, right: &Right) {
        // A store that was restored and recovered does not know each slot: it has its ground
        // instead of a mark.
        let Some(mark) = self.mark(right).await else { return };
        let mut state = self.state();
        if state.astray {
            return;
        }
        let moved = state.ledger.mark_is(right, mark);
        drop(state);
        self.check(moved);
    }

    /// Records that `party` minted these parts.
    pub(super) async fn minted(
        &self,
        right: &Right,
        parts: &[(u64, u64)],
        party: Party,
        life: u32,
    ) {
        // A slot that a restored store does not know has no mark of its own.
        let mark = self.mark(right).await.unwrap_or(u64::MAX);
        let astray = self.state().astray;
        for (from, to) in parts.iter().copied() {
            let minted = self.state().ledger.minted(right, from, to, party, life);
            self.check(minted);
            if to > mark && !astray {
                let what = format!(
                    "{party} minted up to {to} from {right}, beyond the mark in the store, {mark}"
                );
                self.fail(Check::Mark.broken(what));
            }
        }
    }

    /// Returns whether nothing at or above `mark` was minted, and no machine except `but` was
    /// promised any of it.
    pub(super) fn is_nobodys_from(&self, right: &Right, mark: u64, but: usize) -> bool {
        self.state().ledger.is_nobodys_from(right, mark, but)
    }

    /// Returns the first number below the mark that the party has and has not minted.
    pub(super) fn unused(&self, right: &Right, mark: u64, party: Party) -> Option<u64> {
        self.state().ledger.unused(right, mark, party)
    }

    /// Returns the first of these numbers that no party was promised.
    pub(super) fn gap(&self, right: &Right, from: u64, to: u64) -> Option<u64> {
        self.state().ledger.gap(right, from, to)
    }

    /// Returns the highest mark that any slot ever had, and the highest of each source's numbers.
    pub(super) fn marks_max(&self) -> (u64, BTreeMap<String, u64>) {
        let state = self.state();
        let ends = state.ledger.ends();
        highest(ends.map(|(right, _, mark_max)| (right, mark_max)))
    }

    /// Returns the same for the promises to these machines.
    pub(super) fn promised(&self, is_one: impl Fn(usize) -> bool) -> (u64, BTreeMap<String, u64>) {
        let state = self.state();
        let promised = state.ledger.promised().filter(|(.., party)| is_one(party.machine));
        highest(promised.map(|(right, end, _)| (right, end)))
    }

    /// Returns the stripe by which the store makes IDs of a source's numbers now.
    async fn stripe(&self, source: &str) -> Stripe {
        let stored = self.store.get(source).await.ok();
        let spec = stored.and_then(|stored| SourceSpec::from_stored(&stored.spec).ok());
        match spec.map(|spec| spec.check()) {
            Some(Ok(Plan::Segment(plan))) => plan.stripe,
            _ => Stripe::ALL,
        }
    }

    /// Returns the marks at which sources continue, by the store's present stripes, past these
    /// numbers and past the IDs that were promised to these machines.
    pub(super) async fn past(
        &self,
        numbers: BTreeMap<String, u64>,
        is_one: impl Fn(usize) -> bool,
    ) -> Vec<(String, Mark)> {
        let mut all = Vec::new();
        for (name, end) in numbers {
            let of = |((source, machine), free): (&(String, usize), &u64)| {
                (*source == name && is_one(*machine)).then_some(*free)
            };
            let free = self.state().ids.iter().filter_map(of).max().unwrap_or(0);
            let next = self.stripe(&name).await.number_from(free).max(end);
            all.push((name, Mark::new(next)));
        }
        all
    }

    /// Sets whether the address leads to another store.
    pub(super) fn set_astray(&self, astray: bool) {
        self.state().astray = astray;
    }

    /// Records that an operator has moved the store forward: anything above its marks was promised
    /// to no party.
    pub(super) async fn recovered(&self) {
        let ground = self.store.ground().await.unwrap().mark.get();
        let rights: Vec<_> = self.state().ledger.ends().map(|(right, ..)| right.clone()).collect();
        for right in rights {
            let mark = self.mark(&right).await.unwrap_or(ground);
            let checked = self.state().ledger.mark_is(&right, mark);
            self.check(checked);
        }
    }
}

/// Returns the highest end of any slot, and the highest of each source's numbers.
fn highest<'a>(ends: impl Iterator<Item = (&'a Right, u64)>) -> (u64, BTreeMap<String, u64>) {
    let (mut slots, mut numbers) = (0, BTreeMap::new());
    for (right, end) in ends {
        match right {
            Right::Slot(..) => slots = end.max(slots),
            Right::Numbers(source) => {
                let known: &mut u64 = numbers.entry(source.clone()).or_default();
                *known = end.max(*known);
            }
        }
    }
    (slots, numbers)
}
