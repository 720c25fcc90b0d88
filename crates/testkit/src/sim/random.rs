//! The only source of chance in a simulation: everything follows from its seed.

use std::sync::{Arc, Mutex, PoisonError};

use snowmint_core::{MIX_STEP, mixed};

/// SplitMix64 generator. Clones share the state, so that the order of calls is part of the run.
#[derive(Clone, Debug)]
pub(super) struct SimRng {
    state: Arc<Mutex<u64>>,
}

impl SimRng {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(seed)) }
    }

    pub(super) fn number(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(MIX_STEP);
        mixed(*state)
    }

    /// Returns a number below `end`, which is at least 1.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// Returns a number from `from` to `to`, both included.
    pub(super) fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// Returns true in `percent` of a hundred cases.
    pub(super) fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(items.len() as u64)).ok()?;
        items.get(index)
    }
}
