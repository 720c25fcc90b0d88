//! True state of the store, observed at each call: which windows were durable, for which process
//! life, and where the marks are. The nodes learn nothing of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::spec::{Plan, Stripe};
use snowmint_coord::{Extend, Mark, SourceSpec, is_worker_pool};

use super::store::SimStore;
use crate::history::{Check, Checked, Ledger, ProcessLife, Resource, Violation};

/// True state that all observers share. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Oracle {
    store: Arc<dyn SimStore>,
    /// With a planted bug, the check that must find it: no other ends the run.
    only: Option<Check>,
    state: Arc<Mutex<OracleState>>,
}

#[derive(Debug, Default)]
struct OracleState {
    ledger: Ledger,
    violation: Option<Violation>,
    /// End of the IDs that each machine was promised, of each source of numbers.
    ids: BTreeMap<(String, usize), u64>,
    /// Whether the address leads to another store, or to one that lacks something: it may grant
    /// nothing, and its marks say nothing.
    astray: bool,
}

impl Oracle {
    pub(super) fn new(store: Arc<dyn SimStore>, only: Option<Check>) -> Self {
        Self { store, only, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, OracleState> {
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

    /// Returns the store's present mark; `None` when the store does not know the resource.
    pub(super) async fn mark(&self, resource: &Resource) -> Option<u64> {
        match resource {
            Resource::Slot(pool, slot) => self.store.row(pool, *slot).map(|row| row.mark.get()),
            Resource::Numbers(source) => {
                self.store.get(source).await.ok().map(|found| found.segment.mark.get())
            }
        }
    }

    pub(super) fn check(&self, checked: Checked) {
        if let Err(violation) = checked {
            self.fail(violation);
        }
    }

    /// Records that the store acknowledged `[from, to)` to `process_life`.
    pub(super) async fn granted(
        &self,
        resource: Resource,
        from: u64,
        to: u64,
        process_life: ProcessLife,
    ) {
        if self.state().astray {
            let what = format!(
                "{process_life} was granted {from} to {to} of {resource} by a store that is not what it was"
            );
            self.fail(Check::Rejection.broken(what));
        }
        // The written mark counts, not the reply.
        let to = to.min(self.mark(&resource).await.unwrap_or(0));
        if let Resource::Numbers(source) = &resource {
            // A source that was restriped since begins above.
            let free = self.stripe(source).await.free_from(to);
            let mut state = self.state();
            let known = state.ids.entry((source.clone(), process_life.machine)).or_default();
            *known = free.max(*known);
        }
        let granted = self.state().ledger.granted(&resource, from, to, process_life);
        self.check(granted);
    }

    /// Records extends that a store of keys may have written although its reply got lost. The
    /// process life continues there once it has claimed the slot again. A store that has changed
    /// may have the same rows, and grants nothing.
    pub(super) fn may_have_extended(&self, items: &[Extend], process_life: ProcessLife) {
        for item in items {
            let row = self.store.row(&item.pool, item.slot);
            let has = row.is_some_and(|row| (row.term, row.mark) == (item.term, item.to));
            let mut state = self.state();
            if has && !state.astray {
                let resource = Resource::Slot(item.pool.clone(), item.slot);
                let (from, to) = (item.from.get(), item.to.get());
                let granted = state.ledger.granted(&resource, from, to, process_life);
                drop(state);
                self.check(granted);
            }
        }
    }

    /// Records that the store moved a mark in some other way: no process life owns anything above
    /// it.
    pub(super) async fn moved(&self, resource: &Resource) {
        // A store that was restored and recovered does not know each slot: it has its ground
        // instead of a mark.
        let Some(mark) = self.mark(resource).await else { return };
        let mut state = self.state();
        if state.astray {
            return;
        }
        let moved = state.ledger.mark_is(resource, mark);
        drop(state);
        self.check(moved);
    }

    /// Records that `process_life` minted these parts.
    pub(super) async fn minted(
        &self,
        resource: &Resource,
        parts: &[(u64, u64)],
        process_life: ProcessLife,
        life: u32,
    ) {
        // A slot that a restored store does not know has no mark of its own.
        let mark = self.mark(resource).await.unwrap_or(u64::MAX);
        let astray = self.state().astray;
        for (from, to) in parts.iter().copied() {
            let minted = self.state().ledger.minted(resource, from, to, process_life, life);
            self.check(minted);
            if to > mark && !astray {
                let what = format!(
                    "{process_life} minted up to {to} from {resource}, beyond the mark in the store, {mark}"
                );
                self.fail(Check::Mark.broken(what));
            }
        }
    }

    /// Returns whether nothing at or above `mark` was minted, and no machine except `but` was
    /// promised any of it.
    pub(super) fn is_unused_from(&self, resource: &Resource, mark: u64, but: usize) -> bool {
        self.state().ledger.is_unused_from(resource, mark, but)
    }

    /// Returns the first number below the mark that the process life has and has not minted.
    pub(super) fn unused(
        &self,
        resource: &Resource,
        mark: u64,
        process_life: ProcessLife,
    ) -> Option<u64> {
        self.state().ledger.unused(resource, mark, process_life)
    }

    /// Returns the first of these numbers that no process life was promised.
    pub(super) fn gap(&self, resource: &Resource, from: u64, to: u64) -> Option<u64> {
        self.state().ledger.gap(resource, from, to)
    }

    /// Returns the highest mark that any worker number ever had, and the highest of each source's numbers.
    pub(super) fn marks_max(&self) -> (u64, BTreeMap<String, u64>) {
        let state = self.state();
        let ends = state.ledger.ends();
        highest(ends.map(|(resource, _, mark_max)| (resource, mark_max)))
    }

    /// Returns the same for the promises to these machines.
    pub(super) fn promised(&self, is_one: impl Fn(usize) -> bool) -> (u64, BTreeMap<String, u64>) {
        let state = self.state();
        let promised =
            state.ledger.promised().filter(|(.., process_life)| is_one(process_life.machine));
        highest(promised.map(|(resource, end, _)| (resource, end)))
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
    /// to no process life.
    pub(super) async fn recovered(&self) {
        let ground = self.store.ground().await.unwrap().mark.get();
        let resources: Vec<_> =
            self.state().ledger.ends().map(|(resource, ..)| resource.clone()).collect();
        for resource in resources {
            let mark = self.mark(&resource).await.unwrap_or(ground);
            let checked = self.state().ledger.mark_is(&resource, mark);
            self.check(checked);
        }
    }
}

/// Returns the highest end of any worker number, and the highest of each source's numbers.
fn highest<'a>(ends: impl Iterator<Item = (&'a Resource, u64)>) -> (u64, BTreeMap<String, u64>) {
    let (mut slots, mut numbers) = (0, BTreeMap::new());
    for (resource, end) in ends {
        match resource {
            Resource::Slot(pool, _) if is_worker_pool(pool) => slots = end.max(slots),
            // Bounds of counters, of global order and of external leases are no times.
            Resource::Slot(..) => {}
            Resource::Numbers(source) => {
                let known: &mut u64 = numbers.entry(source.clone()).or_default();
                *known = end.max(*known);
            }
        }
    }
    (slots, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_of_a_counter_is_no_mark_of_a_worker() {
        let slot = |pool: &str| Resource::Slot(pool.to_owned(), 7);
        let ends = [
            (slot("sections"), 5 << 40),
            (slot("workers-10"), 1_790_000_000_000),
            (slot("an external pool"), 3 << 40),
            (Resource::Numbers("orders".to_owned()), 6 << 40),
        ];
        let (worker, numbers) = highest(ends.iter().map(|(resource, end)| (resource, *end)));
        assert_eq!(worker, 1_790_000_000_000);
        assert_eq!(numbers, BTreeMap::from([("orders".to_owned(), 6 << 40)]));
    }
}
