//! Journals of the data directories that an operator names.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use snowmint_coord::error::chain;
use snowmint_coord::journal::{self, DataDir, Inspected, Record};
use snowmint_coord::{Error, ErrorKind, StoreIdentity};

use crate::terminal::exit::{Failure, Outcome, complain};

/// Journals of another data directory.
pub(super) struct OtherJournals {
    /// Current journal, whose directory no other process may be using.
    pub(super) live: Option<(DataDir, Inspected)>,
    /// Journals that were set aside.
    pub(super) aside: Vec<Record>,
}

/// Reads the journals of other data directories. While the servers run, one of them may be using a
/// directory whose journals were set aside.
pub(super) fn read_all(
    dirs: &[PathBuf],
    runs: bool,
    namespace: &str,
) -> Outcome<Vec<OtherJournals>> {
    let journals: Vec<_> = dirs.iter().map(|dir| read(dir, runs)).collect::<Outcome<_>>()?;
    for (dir, journal) in dirs.iter().zip(&journals) {
        let of = journal.live.as_ref().map(|(_, read)| read.record.namespace.as_str());
        if let Some(of) = of.filter(|of| !of.is_empty() && *of != namespace) {
            return Err(Failure::usage(format!(
                "directory {dir:?} of --journal belongs to namespace {of:?}, not to {namespace:?}; \
                 leave it out, and recover each namespace with its own journals"
            )));
        }
    }
    Ok(journals)
}

fn read(dir: &Path, runs: bool) -> Outcome<OtherJournals> {
    let unreadable = |error: &dyn Display| {
        Failure::usage(format!(
            "directory {dir:?} of --journal cannot be read: {error}; check path and permissions"
        ))
    };
    // Without a journal, no lock file is created either.
    let is_live = journal::is_in(dir).map_err(|error| unreadable(&error))?;
    let aside = journal::inspect_set_aside(dir, unread).map_err(|error| unreadable(&error))?;
    if !is_live && aside.is_empty() {
        return Err(Failure::usage(format!(
            "directory {dir:?} of --journal has no journal; name another"
        )));
    }
    if !is_live {
        return Ok(OtherJournals { live: None, aside });
    }
    let live = match DataDir::lock(dir) {
        Err(error) if runs && !aside.is_empty() && matches!(error.kind(), ErrorKind::Locked) => {
            None
        }
        locked => {
            let lock = locked?;
            let read = journal::inspect(&lock)?;
            Some((lock, read))
        }
    };
    Ok(OtherJournals { live, aside })
}

/// Says why a journal that was set aside is left out.
pub(super) fn unread(error: &Error) {
    let reason = chain(error);
    complain(format_args!("a journal set aside cannot be read, and counts as missing: {reason}"));
}

/// Returns the IDs of the current journals that the operator leaves out in part.
pub(super) fn ids(
    journals: &[OtherJournals],
    leaves_out: impl Fn(&Record) -> bool,
) -> impl Iterator<Item = String> {
    let live = journals.iter().filter_map(|journal| journal.live.as_ref());
    let records = live.map(|(_, read)| &read.record);
    records.filter(move |record| leaves_out(record)).map(|record| record.id.clone())
}

/// Sets the current journals aside that belong to another store than `store`, if it is given: their
/// servers would reject it, and everything that they know is in it now. So would those of journals
/// that are left out in part. The others of the same store continue.
pub(super) fn set_aside(
    journals: &[OtherJournals],
    store: Option<&str>,
    leaves_out: impl Fn(&Record) -> bool,
) -> Outcome<Vec<PathBuf>> {
    let mut aside = Vec::new();
    for (lock, read) in journals.iter().filter_map(|journal| journal.live.as_ref()) {
        let record = &read.record;
        let of = StoreIdentity { id: record.store.clone(), writes: 0 }.store();
        let is_other = !record.store.is_empty() && store.is_some_and(|store| of != store);
        if is_other || leaves_out(record) {
            aside.extend(journal::set_aside(lock)?);
        }
    }
    Ok(aside)
}
