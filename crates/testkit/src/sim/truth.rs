//! What is true of the store, watched at its door: which windows were durable, for whom, and where
//! the marks are. Nothing here is told to the nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::{MemoryStore, Store};
use snowmint_core::UnixMillis;

/// A promise that was broken. Says how to replay the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who has a window: a machine, and which life of it. With a journal, one life goes on from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Party {
    pub(super) machine: usize,
    pub(super) life: u32,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {} (life {})", self.machine, self.life)
    }
}

/// A right to mint: a slot of a pool, or the numbers of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    Slot(String, u64),
    Numbers(String),
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slot(pool, slot) => write!(f, "slot {slot} of pool {pool}"),
            Self::Numbers(source) => write!(f, "the numbers of {source}"),
        }
    }
}

/// Shared by everything that watches. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    store: Arc<MemoryStore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rights: BTreeMap<Right, Known>,
    violation: Option<Violation>,
    /// The store has lost something, and nobody has put it right yet.
    went_back: bool,
}

#[derive(Debug, Default)]
struct Known {
    /// Disjoint, as long as nobody is promised what another has.
    windows: Vec<(u64, u64, Party)>,
    /// The end of everything minted.
    minted_end: u64,
    /// The highest mark there ever was.
    mark_max: u64,
    /// For each machine, its newest life that minted, and the end of what those before it minted.
    lives: BTreeMap<usize, (u32, u64)>,
    /// The end of what each machine minted.
    minted_by: BTreeMap<usize, u64>,
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
    async fn mark(&self, right: &Right) -> Option<u64> {
        match right {
            Right::Slot(pool, slot) => {
                let slots = self.store.workers(UnixMillis::ZERO).await.unwrap();
                let found = slots.into_iter().find(|info| info.pool == *pool && info.slot == *slot);
                found.map(|info| info.mark.get())
            }
            Right::Numbers(source) => {
                self.store.get(source).await.ok().map(|found| found.segment.mark.get())
            }
        }
    }

    /// The store acknowledged `[from, to)` to `party`.
    pub(super) async fn granted(&self, right: Right, from: u64, to: u64, party: Party) {
        // What counts is what it wrote, not what it said.
        let to = to.min(self.mark(&right).await.unwrap_or(0));
        if from >= to {
            return;
        }
        let mut state = self.state();
        let known = state.rights.entry(right.clone()).or_default();
        let other = known
            .windows
            .iter()
            .copied()
            .find(|(begin, end, whose)| *whose != party && from.max(*begin) < to.min(*end));
        known.mark_max = known.mark_max.max(to);
        let touches = |(begin, end, whose): &&mut (u64, u64, Party)| {
            *whose == party && *begin <= to && *end >= from
        };
        match known.windows.iter_mut().find(touches) {
            Some((begin, end, _)) => {
                (*begin, *end) = ((*begin).min(from), (*end).max(to));
            }
            None => known.windows.push((from, to, party)),
        }
        drop(state);
        if let Some((begin, end, whose)) = other {
            self.fail(format!(
                "{right}: {from} to {to} was promised to {party}, and {begin} to {end} to {whose}"
            ));
        }
    }

    /// The store moved a mark in some other way: what lies above it is nobody's.
    pub(super) async fn moved(&self, right: &Right) {
        let mark = self.mark(right).await.unwrap_or(0);
        let mut state = self.state();
        if state.went_back {
            return;
        }
        let known = state.rights.entry(right.clone()).or_default();
        for window in &mut known.windows {
            window.1 = window.1.min(mark);
        }
        known.windows.retain(|(begin, end, _)| begin < end);
        known.mark_max = known.mark_max.max(mark);
        let minted_end = known.minted_end;
        drop(state);
        if minted_end > mark {
            self.fail(format!(
                "the mark of {right} fell to {mark}, below what was minted up to {minted_end}"
            ));
        }
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
        let mut state = self.state();
        let went_back = state.went_back;
        let known = state.rights.entry(right.clone()).or_default();
        let (newest, floor) = known.lives.entry(party.machine).or_insert((life, 0));
        if *newest < life && matches!(right, Right::Slot(..)) {
            let earlier = known.minted_by.get(&party.machine).copied().unwrap_or(0);
            (*newest, *floor) = (life, earlier);
        }
        let floor = *floor;
        let mut what = None;
        for (from, to) in parts.iter().copied() {
            known.minted_end = known.minted_end.max(to);
            let own_end = known.minted_by.entry(party.machine).or_default();
            *own_end = to.max(*own_end);
            let inside = known
                .windows
                .iter()
                .any(|(begin, end, whose)| *whose == party && *begin <= from && to <= *end);
            if went_back {
                what = Some(format!("{party} minted from {right} on a store that went back"));
            } else if !inside {
                what = Some(format!(
                    "{party} minted {from} to {to} from {right}, outside every window that it had"
                ));
            } else if from < floor {
                what = Some(format!(
                    "{party} minted {from} from {right} in its life {life}, and up to {floor} before"
                ));
            } else if to > mark {
                what = Some(format!(
                    "{party} minted up to {to} from {right}, beyond the mark in the store, {mark}"
                ));
            }
        }
        drop(state);
        if let Some(what) = what {
            self.fail(what);
        }
    }

    /// The highest mark that any slot ever had, and the highest of each source's numbers.
    pub(super) fn marks_max(&self) -> (u64, BTreeMap<String, u64>) {
        let state = self.state();
        let (mut slots, mut numbers) = (0, BTreeMap::new());
        for (right, known) in &state.rights {
            match right {
                Right::Slot(..) => slots = slots.max(known.mark_max),
                Right::Numbers(source) => drop(numbers.insert(source.clone(), known.mark_max)),
            }
        }
        (slots, numbers)
    }

    /// The store lost something, or an operator has put that right.
    pub(super) fn set_went_back(&self, went_back: bool) {
        self.state().went_back = went_back;
    }
}
