//! Whether the store is still the one that was joined: what was said against it, and until when that counts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// What there is against a node's store.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: Option<Doubt>,
    /// How many were raised.
    raised: u64,
    /// How often the store was joined without a doubt left.
    joins: u64,
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

    /// The store was joined anew, by steps that began when so many doubts had been raised. Answers whether there is none
    /// any more.
    pub(crate) fn end(&self, raised: u64) -> bool {
        let mut state = self.state();
        if state.raised == raised {
            state.open = None;
        } else if let Some(doubt) = &mut state.open {
            // Since then there was another one.
            doubt.is_news = true;
        }
        let is_ended = state.open.is_none();
        state.joins = state.joins.wrapping_add(u64::from(is_ended));
        is_ended
    }

    /// How often the store was joined without a doubt left: what was asked before the last time says nothing of it now.
    pub(crate) fn joins(&self) -> u64 {
        self.state().joins
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
        assert!(!doubts.end(before));
        assert!(doubts.check().is_err() && doubts.take_news().is_some());
        assert!(doubts.end(doubts.raised()));
        assert!(doubts.check().is_ok() && doubts.take_news().is_none());
    }
}
