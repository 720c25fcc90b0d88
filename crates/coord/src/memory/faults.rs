//! What goes wrong between a handle on a store in memory and the store, as the tests of this crate say.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock_witness::ClockWitness;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::lease::Release;

/// What one handle does not do, or does besides. Tests keep a copy of the part that they turn.
#[derive(Default)]
pub(crate) struct Faults {
    /// A verb that this handle does not get through with, from when it is said on.
    pub(crate) lacks: Arc<Mutex<Option<&'static str>>>,
    /// When it says that it may be asked again, where it does not get through; and how often that was.
    pub(crate) refusal: Arc<Mutex<(Option<Retry>, u32)>>,
    /// The verbs that find another store from now on.
    pub(crate) astray: Arc<Mutex<Vec<&'static str>>>,
    /// A verb that is done, and whose answer this handle does not hear.
    pub(crate) unheard: Arc<Mutex<Option<&'static str>>>,
    /// Every release that was sent through this handle, heard or not.
    pub(crate) releases: Arc<Mutex<Vec<Release>>>,
    /// What it leads to, as a store of servers does.
    pub(crate) witness: Option<Arc<dyn ClockWitness>>,
}

impl Faults {
    /// What a handle lacks that gets through with nothing.
    pub(crate) const EVERY_VERB: &str = "every verb";

    /// Before the step: an error, and nothing is done.
    pub(super) fn before(&self, op: &'static str) -> Result<()> {
        let astray = self.astray.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if astray.iter().any(|verb| [op, Self::EVERY_VERB].contains(verb)) {
            let (witness, expected, found) = ("this process".into(), "one".into(), "two".into());
            return Err(Error::new(op, ErrorKind::OtherStore { witness, expected, found }));
        }
        fails(&self.lacks, op).map_err(|error| {
            let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
            refusal.1 += 1;
            match refusal.0 {
                Some(retry) => error.with_retry(retry),
                None => error,
            }
        })
    }

    /// After the step: an error, and all is done.
    pub(super) fn after(&self, op: &'static str) -> Result<()> {
        fails(&self.unheard, op)
    }

    pub(super) fn sent(&self, release: &Release) {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner).push(release.clone());
    }
}

fn fails(verb: &Mutex<Option<&'static str>>, op: &'static str) -> Result<()> {
    let failing = *verb.lock().unwrap_or_else(PoisonError::into_inner);
    if failing != Some(op) && failing != Some(Faults::EVERY_VERB) {
        return Ok(());
    }
    Err(Error::new(op, ErrorKind::Unavailable { what: "the memory store".into() }))
}
