//! What segment sources report to their node's journal: how far the store has reserved for each.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

/// Numbers that the store has reserved, for the journal to remember.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) source: String,
    /// Everything below is reserved.
    pub(crate) end: u64,
    /// Told once the journal is on disk.
    pub(crate) told: oneshot::Sender<()>,
}

/// What was reported since the driver last looked.
#[derive(Debug)]
pub(crate) struct Reports(Mutex<State>);

#[derive(Debug)]
enum State {
    /// The node keeps no journal.
    None,
    Open(Open),
    /// The driver has ended: nobody would ever answer.
    Ended,
}

#[derive(Debug, Default)]
struct Open {
    reserved: Vec<Reserved>,
    /// Why the journal could not be written when it was last tried.
    trouble: Option<Error>,
}

impl Reports {
    /// `journalled`: whether the node keeps a journal.
    pub(super) fn new(journalled: bool) -> Self {
        let state = if journalled { State::Open(Open::default()) } else { State::None };
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The journal could not be written, or could be again.
    pub(crate) fn trouble(&self, trouble: Option<Error>) {
        if let State::Open(open) = &mut *self.state() {
            open.trouble = trouble;
        }
    }

    /// Whether what is reserved now would be remembered. Else it would be used by nobody: it is not asked for.
    ///
    /// # Errors
    /// `Unavailable` while the journal cannot be written; `Closed`.
    pub(super) fn check(&self) -> Result<()> {
        match &*self.state() {
            State::None | State::Open(Open { trouble: None, .. }) => Ok(()),
            State::Open(Open { trouble: Some(error), .. }) => {
                let what = "the journal, which must remember what is reserved,".into();
                let kind = ErrorKind::Unavailable { what };
                Err(Error::new("reserve", kind).with_source(error.clone()))
            }
            State::Ended => Err(ended()),
        }
    }

    /// Reports that everything below `end` is reserved. Answers what tells that the journal has it; none where
    /// there is no journal.
    pub(super) fn report(&self, source: &str, end: u64) -> Result<Option<oneshot::Receiver<()>>> {
        match &mut *self.state() {
            State::None => Ok(None),
            State::Open(Open { reserved, .. }) => {
                let (told, written) = oneshot::channel();
                reserved.push(Reserved { source: source.into(), end, told });
                Ok(Some(written))
            }
            State::Ended => Err(ended()),
        }
    }

    /// What was reported since.
    pub(crate) fn take(&self) -> Vec<Reserved> {
        match &mut *self.state() {
            State::Open(Open { reserved, .. }) => std::mem::take(reserved),
            State::None | State::Ended => Vec::new(),
        }
    }

    /// The driver ends: whoever waits, or comes later, is told. Without, a fetch that the store answers late
    /// would wait for ever, and keep the store with it.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        if matches!(*state, State::Open(_)) {
            *state = State::Ended;
        }
    }
}

pub(super) fn ended() -> Error {
    Error::new("reserve", ErrorKind::Closed { what: "the node".into() })
}
