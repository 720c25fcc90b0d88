//! Doubts that the store is still the one that was joined: the evidence, and how long it counts.

use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::model::history::Recalled;
use crate::platform::lock::lock;

/// Doubts about a node's store.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<DoubtState>);

#[derive(Debug, Default)]
struct DoubtState {
    open: Option<StoreDoubt>,
    /// First reply that contradicts an earlier one, while a doubt is open.
    contradiction: Option<Error>,
    /// Number of doubts raised so far.
    raised: u64,
    /// Number of joins after a doubt or a recovery.
    recoveries: u64,
}

/// An error showing that the store is not the one that was joined.
#[derive(Debug)]
struct StoreDoubt {
    error: Error,
    /// Whether the driver has yet to see it.
    is_news: bool,
}

impl Doubts {
    /// Records the doubt that an error raises; returns whether it raises one.
    pub(crate) fn raise(&self, error: &Error) -> bool {
        if !error.kind().doubts_store() {
            return false;
        }
        let mut state = lock(&self.0);
        state.raised = state.raised.wrapping_add(1);
        if error.is_contradiction() {
            state.contradiction.get_or_insert_with(|| error.clone());
        }
        match &mut state.open {
            None => state.open = Some(StoreDoubt { error: error.clone(), is_news: true }),
            // A rollback outlasts the other kinds: the address may lead back to the store, and a
            // setting may be corrected.
            Some(doubt)
                if error.kind().is_rolled_back() && !doubt.error.kind().is_rolled_back() =>
            {
                doubt.error = error.clone()
            }
            Some(_) => {}
        }
        true
    }

    /// Returns the reply that contradicts an earlier one, while a doubt is open.
    pub(crate) fn contradiction(&self) -> Option<Error> {
        lock(&self.0).contradiction.clone()
    }

    /// Returns how many doubts were raised, to be passed to [`end`](Self::end).
    pub(crate) fn raised(&self) -> u64 {
        lock(&self.0).raised
    }

    /// Returns the open doubt, once: only to the first call after it was raised.
    pub(crate) fn take_news(&self) -> Option<Error> {
        let mut state = lock(&self.0);
        let doubt = state.open.as_mut().filter(|doubt| doubt.is_news)?;
        doubt.is_news = false;
        Some(doubt.error.clone())
    }

    /// Returns the error that shows a store rollback. The doubt stays even when the store has
    /// counted further: until an operator has moved it forward, it may issue numbers that it issued
    /// before.
    pub(crate) fn rolled_back(&self) -> Option<Error> {
        let state = lock(&self.0);
        let error = &state.open.as_ref()?.error;
        error.kind().is_rolled_back().then(|| error.clone())
    }

    /// Records that the store was joined and found as `recalled`, by steps that began when `raised`
    /// doubts had been raised. Returns whether no doubt is open any more.
    pub(crate) fn end(&self, raised: u64, recalled: Recalled) -> bool {
        let mut state = lock(&self.0);
        let was_open = state.open.is_some();
        if state.raised == raised {
            (state.open, state.contradiction) = (None, None);
        } else if let Some(doubt) = &mut state.open {
            // Another doubt was raised since then.
            doubt.is_news = true;
        }
        let is_ended = state.open.is_none();
        let may_be_new = was_open || recalled == Recalled::Recovered;
        state.recoveries = state.recoveries.wrapping_add(u64::from(is_ended && may_be_new));
        is_ended
    }

    /// Returns how often the store was joined after a doubt or a recovery. A request sent before
    /// the last of these joins proves nothing now.
    pub(crate) fn recoveries(&self) -> u64 {
        lock(&self.0).recoveries
    }

    /// Runs a step that takes numbers and records them for reports. A step that spans a recovery
    /// counts for nothing: a report may have left out its numbers, and another node may have them
    /// by now.
    ///
    /// # Errors
    /// Those of the step; a doubt that is open before or after it; `Unavailable` when the node
    /// rejoined the store meanwhile.
    pub(super) async fn in_one_history<T>(
        &self,
        step: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.check()?;
        let recoveries = self.recoveries();
        let result = step.await?;
        self.check()?;
        if self.recoveries() != recoveries {
            return Err(Error::unavailable("store was rejoined during the call; retry"));
        }
        Ok(result)
    }

    /// Returns the open doubt as an error: a store in doubt gives no numbers.
    pub(crate) fn check(&self) -> Result<()> {
        match &lock(&self.0).open {
            Some(StoreDoubt { error, .. }) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back() -> Error {
        Error::store_rolled_back("write count seen by this process", 2, 1)
    }

    fn other() -> Error {
        Error::store_mismatch("store is two, but this process belongs to one")
    }

    #[test]
    fn other_errors_raise_no_doubt() {
        let doubts = Doubts::default();
        assert!(!doubts.raise(&Error::closed("store is closed")));
        assert!(doubts.check().is_ok() && doubts.take_news().is_none());
    }

    #[test]
    fn contradiction_is_kept_until_the_doubt_ends() {
        let doubts = Doubts::default();
        let again = Error::contradiction("mark of slot 1", 2, 1);
        for error in [back(), other()] {
            doubts.raise(&error);
            assert!(doubts.contradiction().is_none(), "{error}");
        }
        doubts.raise(&again);
        doubts.raise(&back());
        assert_eq!(doubts.contradiction().unwrap().message(), again.message());
        assert!(doubts.end(doubts.raised(), Recalled::Same));
        assert!(doubts.contradiction().is_none());
    }

    #[test]
    fn lasting_doubt_replaces_a_passing_one_only() {
        for order in [[back(), other()], [other(), back()]] {
            let doubts = Doubts::default();
            assert!(order.iter().all(|error| doubts.raise(error)));
            assert!(doubts.rolled_back().is_some());
            assert_eq!(doubts.check().unwrap_err().kind().code(), "store_rolled_back");
        }
    }

    #[test]
    fn doubt_raised_during_a_join_outlives_it() {
        let doubts = Doubts::default();
        doubts.raise(&other());
        assert!(doubts.take_news().is_some() && doubts.take_news().is_none());
        let before = doubts.raised();
        doubts.raise(&other());
        assert!(!doubts.end(before, Recalled::Same));
        assert!(doubts.check().is_err() && doubts.take_news().is_some());
        assert!(doubts.end(doubts.raised(), Recalled::Same));
        assert!(doubts.check().is_ok() && doubts.take_news().is_none());
    }

    #[tokio::test]
    async fn step_counts_only_within_one_store_history() {
        let doubts = Doubts::default();
        let step = async |doubt: Option<Error>, join: Option<Recalled>| {
            let step = async {
                doubt.iter().for_each(|error| assert!(doubts.raise(error)));
                Ok(join.is_none_or(|recalled| doubts.end(doubts.raised(), recalled)))
            };
            let result = doubts.in_one_history(step).await;
            result.map_err(|error| error.kind().code().to_owned())
        };
        // The first join, and a rejoin after a lost lease: the store is unchanged.
        assert_eq!(step(None, Some(Recalled::Same)).await, Ok(true));
        assert_eq!(step(None, Some(Recalled::Recovered)).await, Err("unavailable".into()));
        assert_eq!(step(Some(other()), Some(Recalled::Same)).await, Err("unavailable".into()));
        assert_eq!(step(None, None).await, Ok(true));
        assert_eq!(step(Some(back()), None).await, Err("store_rolled_back".into()));
        assert_eq!(step(None, Some(Recalled::Recovered)).await, Err("store_rolled_back".into()));
    }
}
