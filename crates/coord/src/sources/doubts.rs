//! Whether the store is still the one that was joined: what was said against it, and until when that counts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::history::Recalled;

/// What there is against a node's store.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: Option<Doubt>,
    /// How many were raised.
    raised: u64,
    /// How often the store was joined after a doubt, or a recovery.
    recoveries: u64,
}

/// A refusal that says that the store is not the one that was joined.
#[derive(Debug)]
struct Doubt {
    why: Error,
    /// The driver has not looked yet.
    is_news: bool,
}

impl Doubts {
    /// Takes in what an error says. Answers whether that is a doubt.
    pub(crate) fn raise(&self, error: &Error) -> bool {
        if !error.kind().doubts_store() {
            return false;
        }
        let mut state = self.state();
        state.raised = state.raised.wrapping_add(1);
        match &mut state.open {
            None => state.open = Some(Doubt { why: error.clone(), is_news: true }),
            // It lasts longer than the others: the address may lead back, and a setting be set right.
            Some(doubt) if went_back(error) && !went_back(&doubt.why) => doubt.why = error.clone(),
            Some(_) => {}
        }
        true
    }

    /// How many were raised, to be told [`end`](Self::end).
    pub(crate) fn raised(&self) -> u64 {
        self.state().raised
    }

    /// The doubt there is, the first time that it is asked for.
    pub(crate) fn take_news(&self) -> Option<Error> {
        let mut state = self.state();
        let doubt = state.open.as_mut().filter(|doubt| doubt.is_news)?;
        doubt.is_news = false;
        Some(doubt.why.clone())
    }

    /// Why the store is taken for an older state of itself. It is no other once it has counted further: until an operator
    /// has moved it forward, what it hands out may have been handed out before.
    pub(crate) fn went_back(&self) -> Option<Error> {
        let state = self.state();
        let why = &state.open.as_ref()?.why;
        went_back(why).then(|| why.clone())
    }

    /// The store was joined, by steps that began when so many doubts had been raised, and which found it like this.
    /// Answers whether there is no doubt any more.
    pub(crate) fn end(&self, raised: u64, recalled: Recalled) -> bool {
        let mut state = self.state();
        let was_open = state.open.is_some();
        if state.raised == raised {
            state.open = None;
        } else if let Some(doubt) = &mut state.open {
            // Since then there was another one.
            doubt.is_news = true;
        }
        let is_ended = state.open.is_none();
        let may_be_anew = was_open || recalled == Recalled::Recovered;
        state.recoveries = state.recoveries.wrapping_add(u64::from(is_ended && may_be_anew));
        is_ended
    }

    /// How often the store was joined after a doubt, or a recovery: what was asked before the last time says nothing of
    /// it now.
    pub(crate) fn recoveries(&self) -> u64 {
        self.state().recoveries
    }

    /// A step that takes numbers, and has whatever reports them know of them. One that lasts over a recovery counts for
    /// nothing: its numbers may have been reported without them, and be another's by now.
    ///
    /// # Errors
    /// As the step; the doubt there is, before it or after; `Unavailable` when the store was joined anew meanwhile.
    pub(super) async fn in_one_history<T>(
        &self,
        op: &'static str,
        step: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.check()?;
        let recoveries = self.recoveries();
        let answer = step.await?;
        self.check()?;
        if self.recoveries() != recoveries {
            let what =
                "an answer of the store as it is now, which was joined anew meanwhile".into();
            return Err(Error::new(op, ErrorKind::Unavailable { what }));
        }
        Ok(answer)
    }

    /// Refuses to take anything from a store in doubt.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.state().open {
            Some(Doubt { why, .. }) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn went_back(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StoreWentBack { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back() -> Error {
        let (witness, seen, found) = ("this process".into(), 2, 1);
        Error::new("renew", ErrorKind::StoreWentBack { witness, seen, found })
    }

    fn other() -> Error {
        let (witness, expected, found) = ("this process".into(), "one".into(), "two".into());
        Error::new("renew", ErrorKind::OtherStore { witness, expected, found })
    }

    #[test]
    fn errors_of_other_kinds_are_no_doubts() {
        let doubts = Doubts::default();
        assert!(!doubts.raise(&Error::new("renew", ErrorKind::Closed { what: "it".into() })));
        assert!(doubts.check().is_ok() && doubts.take_news().is_none());
    }

    #[test]
    fn one_that_lasts_takes_the_place_of_one_that_may_pass_and_never_the_other_way() {
        for order in [[back(), other()], [other(), back()]] {
            let doubts = Doubts::default();
            assert!(order.iter().all(|why| doubts.raise(why)));
            assert!(doubts.went_back().is_some());
            assert_eq!(doubts.check().unwrap_err().kind().code(), "store_went_back");
        }
    }

    #[test]
    fn a_doubt_that_came_while_the_store_was_joined_outlives_the_join() {
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
    async fn a_step_counts_only_if_the_store_was_the_same_from_its_begin_to_its_end() {
        let doubts = Doubts::default();
        let step = async |doubt: Option<Error>, join: Option<Recalled>| {
            let step = async {
                doubt.iter().for_each(|why| assert!(doubts.raise(why)));
                Ok(join.is_none_or(|recalled| doubts.end(doubts.raised(), recalled)))
            };
            let answer = doubts.in_one_history("reserve", step).await;
            answer.map_err(|error| error.kind().code().to_owned())
        };
        // The first time, and after a lease that was lost: nothing has become of the store.
        assert_eq!(step(None, Some(Recalled::Same)).await, Ok(true));
        assert_eq!(step(None, Some(Recalled::Recovered)).await, Err("unavailable".into()));
        assert_eq!(step(Some(other()), Some(Recalled::Same)).await, Err("unavailable".into()));
        assert_eq!(step(None, None).await, Ok(true));
        assert_eq!(step(Some(back()), None).await, Err("store_went_back".into()));
        assert_eq!(step(None, Some(Recalled::Recovered)).await, Err("store_went_back".into()));
    }
}
