//! What segment sources report to their node's journal: how far the store has reserved for each.

use std::collections::BTreeSet;
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
    /// The sources that have a place in the journal.
    places: BTreeSet<String>,
    /// How many bytes of it are left for others'.
    room: usize,
    bytes_max: usize,
}

/// What the end of a source takes of a journal: a quoted name, a number, and what parts them.
const fn place_bytes(name: &str) -> usize {
    name.len() + 24
}

impl Open {
    fn place(&mut self, source: &str) -> Result<()> {
        if self.places.contains(source) {
            return Ok(());
        }
        let Some(room) = self.room.checked_sub(place_bytes(source)) else {
            let what = format!(
                "the journal's room for the ends of segment sources (there is none for {source}: delete some \
                 that are not used)"
            );
            let limit = u64::try_from(self.bytes_max).unwrap_or(u64::MAX);
            return Err(Error::new("reserve", ErrorKind::Exhausted { what, limit }));
        };
        self.room = room;
        self.places.insert(source.into());
        Ok(())
    }

    fn count(&mut self) {
        let taken = self.places.iter().map(|name| place_bytes(name)).sum();
        self.room = self.bytes_max.saturating_sub(taken);
    }
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

    /// The journal has places for so many bytes, and these sources have theirs.
    pub(crate) fn begin(&self, places: BTreeSet<String>, bytes_max: usize) {
        if let State::Open(open) = &mut *self.state() {
            (open.places, open.bytes_max) = (places, bytes_max);
            open.count();
        }
    }

    /// These sources are deleted: their places are others'.
    pub(crate) fn forget(&self, deleted: &BTreeSet<String>) {
        if let State::Open(open) = &mut *self.state() {
            open.places.retain(|name| !deleted.contains(name));
            open.count();
        }
    }

    /// Whether what is reserved now for a source would be remembered. Else it would be used by nobody, so it is not
    /// asked for.
    ///
    /// # Errors
    /// `Unavailable` while the journal cannot be written; `Exhausted` where it has no place for one more; `Closed`.
    pub(super) fn check(&self, source: &str) -> Result<()> {
        match &mut *self.state() {
            State::None => Ok(()),
            State::Open(Open { trouble: Some(error), .. }) => {
                let what = "the journal, which must remember what is reserved,".into();
                let kind = ErrorKind::Unavailable { what };
                Err(Error::new("reserve", kind).with_source(error.clone()))
            }
            State::Open(open) => open.place(source),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_without_a_place_is_refused_by_itself_until_another_is_deleted() {
        let reports = Reports::new(true);
        let name = |number: u32| format!("bills-{number:04}");
        reports.begin([name(0)].into(), 10 * place_bytes(&name(0)));
        (0..10).chain(0..10).for_each(|number| reports.check(&name(number)).unwrap());
        for _ in 0..3 {
            let refused = reports.check(&name(10)).unwrap_err();
            assert!(matches!(refused.kind(), ErrorKind::Exhausted { .. }), "{refused}");
            reports.check(&name(3)).unwrap();
        }
        reports.forget(&[name(3), name(77)].into());
        reports.check(&name(10)).unwrap();
        assert!(reports.check(&name(3)).is_err());
    }
}
