//! Reports of all processes in a run, checked against the promise.

use std::collections::BTreeMap;
use std::time::Instant;

use snowmint_coord::spec::Plan;
use snowmint_coord::{SlotInfo, SourceSpec};
use snowmint_core::Layout;
use snowmint_testkit::history::{
    Check, Checked, History, Ledger, Mint, ProcessLife, Resource, Violation,
};

use super::holder::{NUMBERS, ORDERS};

/// All grants and all IDs on one store.
#[derive(Debug)]
pub(crate) struct Checker {
    history: History,
    ledger: Ledger,
    layout: Layout,
    begun: Instant,
    violation: Option<Violation>,
}

/// Sender of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice {
    pub(crate) machine: usize,
    pub(crate) life: u32,
    pub(crate) journalled: bool,
}

impl Voice {
    fn party(self) -> ProcessLife {
        ProcessLife { machine: self.machine, life: if self.journalled { 0 } else { self.life } }
    }
}

/// Returns the pool of a layout; pools are named by the width of their numbers.
fn pool(layout: &Layout) -> String {
    format!("workers-{}", layout.bits(snowmint_core::layout::Field::Worker))
}

impl Checker {
    pub(crate) fn new(orders: &SourceSpec) -> Self {
        let Ok(Plan::Snowflake(plan)) = orders.check() else { panic!("no snowflake") };
        Self {
            history: History::default(),
            ledger: Ledger::default(),
            layout: plan.layout,
            begun: Instant::now(),
            violation: None,
        }
    }

    fn check(&mut self, checked: Checked) {
        if let Err(violation) = checked {
            self.violation.get_or_insert(violation);
        }
    }

    pub(crate) fn fail(&mut self, what: String) {
        self.violation.get_or_insert(Check::Trial.broken(what));
    }

    pub(crate) fn granted(&mut self, voice: Voice, right: &Resource, from: u64, to: u64) {
        // Reports of different processes do not arrive in the order of events, so overlapping
        // grants are checked at the end.
        let _ = self.ledger.granted(right, from, to, voice.party());
    }

    pub(crate) fn requested(&mut self, voice: Voice, right: &Resource, from: u64, to: u64) {
        self.ledger.requested(right, from, to, voice.party(), voice.life);
    }

    pub(crate) fn given_up(&mut self, voice: Voice, right: &Resource, mark: u64) {
        self.ledger.given_up(right, mark, voice.party());
    }

    /// Records IDs that have left a process. Returns the worker of the last ID, if it has one.
    pub(crate) fn minted(&mut self, voice: Voice, source: &str, ids: &[u64]) -> Option<u64> {
        let at_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        let by = Mint { node: voice.machine, life: voice.life, at_ms };
        let mut used: BTreeMap<(Resource, u64), u64> = BTreeMap::new();
        let mut last = None;
        for id in ids.iter().copied() {
            let (index, worker) = if source == ORDERS {
                let parts = self.layout.unpack(id).unwrap();
                let start_ms = self.layout.start_of(parts.tick).get();
                let right = Resource::Slot(pool(&self.layout), parts.worker);
                used.insert((right, start_ms), start_ms + u64::from(self.layout.unit_ms()));
                (0, Some(parts.worker))
            } else {
                assert_eq!(source, NUMBERS);
                used.insert((Resource::Numbers(source.into()), id), id + 1);
                (1, None)
            };
            last = worker;
            let added = self.history.add(index, id, by, worker);
            self.check(added);
        }
        for ((right, from), to) in used {
            let minted = self.ledger.minted(&right, from, to, voice.party(), voice.life);
            self.check(minted);
        }
        last
    }

    pub(crate) fn ids(&self) -> usize {
        self.history.len()
    }

    /// Returns the highest mark of all slots, and the next number.
    pub(crate) fn marks_max(&self) -> (u64, u64) {
        let (mut slots, mut numbers) = (0, 0);
        for (right, _, mark_max) in self.ledger.ends() {
            match right {
                Resource::Slot(..) => slots = mark_max.max(slots),
                Resource::Numbers(_) => numbers = mark_max.max(numbers),
            }
        }
        (slots, numbers)
    }

    /// Returns the first violation found so far.
    pub(crate) fn so_far(&self) -> Checked {
        self.violation.clone().map_or(Ok(()), Err)
    }

    /// Runs the final checks, when no process mints any more: no two processes had overlapping
    /// grants, and the store's marks cover all IDs.
    pub(crate) fn end(&self, slots: &[SlotInfo], next_number: u64) -> Checked {
        self.so_far()?;
        self.ledger.disjoint()?;
        for (right, minted_end, _) in self.ledger.ends() {
            let mark = match right {
                Resource::Slot(pool, slot) => slots
                    .iter()
                    .find(|info| info.pool == *pool && info.slot == *slot)
                    .map_or(0, |info| info.mark.get()),
                Resource::Numbers(_) => next_number,
            };
            if mark < minted_end {
                return Err(Check::Mark.broken(format!(
                    "{right} was minted from up to {minted_end}, and the store has its mark at {mark}"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::{Mark, Term};
    use snowmint_core::{Tick, UnixMillis};

    use super::*;

    const LAYOUT: &str = "time=41,worker=4,sequence=4,epoch=2026-01-01T00:00:00Z";
    const A: Voice = Voice { machine: 0, life: 1, journalled: false };
    const B: Voice = Voice { machine: 1, life: 1, journalled: false };

    /// Returns a checker with one ID, the slot that it is minted from, and the time of its tick.
    fn one() -> (Checker, u64, Resource, u64) {
        let spec = SourceSpec::from_json(&format!(r#"{{"layout":"{LAYOUT}"}}"#)).unwrap();
        let mut checker = Checker::new(&spec);
        let id = (1_000 << 8) | (3 << 4);
        let start_ms = checker.layout.start_of(Tick::new(1_000)).get();
        let right = Resource::Slot("workers-4".into(), 3);
        checker.granted(A, &right, start_ms, start_ms + 10);
        assert_eq!(checker.minted(A, ORDERS, &[id]), Some(3));
        checker.so_far().unwrap();
        (checker, id, right, start_ms)
    }

    #[test]
    fn a_duplicate_is_found() {
        let (mut checker, id, right, start_ms) = one();
        checker.granted(B, &right, start_ms, start_ms + 10);
        checker.so_far().unwrap();
        checker.minted(B, ORDERS, &[id]);
        assert!(checker.so_far().is_err());
    }

    #[test]
    fn an_id_outside_its_window_is_found() {
        for outside in [9, 11, 10 + 10] {
            let (mut checker, id, right, start_ms) = one();
            checker.given_up(A, &right, start_ms + 1);
            checker.minted(A, ORDERS, &[id - (10 << 8) + (outside << 8)]);
            assert!(checker.so_far().is_err(), "{outside}");
        }
    }

    #[test]
    fn a_window_granted_twice_and_a_mark_too_low_are_found() {
        let (mut checker, _, right, start_ms) = one();
        let slot = |mark| SlotInfo {
            pool: "workers-4".into(),
            slot: 3,
            term: Term::new(1),
            mark: Mark::new(mark),
            owner: String::new(),
            holder: None,
            host: None,
            process: None,
            held_since: UnixMillis::ZERO,
            joined_at: None,
            renewed_at: None,
            live: false,
            kept_away: false,
        };
        checker.end(&[slot(start_ms + 1)], 0).unwrap();
        assert!(checker.end(&[slot(start_ms)], 0).is_err());
        checker.granted(B, &right, start_ms + 9, start_ms + 20);
        assert!(checker.end(&[slot(start_ms + 20)], 0).is_err());
    }
}
