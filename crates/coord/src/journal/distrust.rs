//! Reasons why a journal cannot be trusted here.

use std::path::Path;

use super::binding::Difference;
use super::disk::FileTime;
use crate::error::Error;

/// Reason why a journal cannot be trusted here.
#[derive(Debug)]
pub(super) enum Distrust {
    /// The journal was written in another place.
    Place(Difference),
    /// The file was written at another time than its content.
    Restored { modified: FileTime, written_at: FileTime },
    /// Both copies are damaged.
    Damaged,
    /// The journal has the form of a newer version.
    Form(char),
    /// The content is whole, and unknown to this version.
    Content(serde_json::Error),
    /// The content has an invalid incarnation.
    Incarnation(Error),
}

impl Distrust {
    /// Returns the error for the journal at `path`, in the data directory `dir`.
    pub(super) fn into_error(self, path: &Path, dir: &Path) -> Error {
        let dir = dir.display();
        match self {
            Self::Place(Difference::Machine { written, here }) => Error::journal_refused(format!(
                "journal {path:?} was written on machine {written}, this is machine {here}; once no \
                 other process uses this data, run snowmint worker fast-forward --data-dir {dir}"
            )),
            Self::Place(Difference::Path { written, here }) => Error::journal_refused(format!(
                "journal {path:?} was written in {written:?}, this is {here:?}; once no other \
                 process uses this data, run snowmint worker fast-forward --data-dir {dir}"
            )),
            Self::Place(Difference::Copy) => Error::journal_refused(format!(
                "journal {path:?} is a copy, perhaps from a backup; once no other process uses this \
                 data, run snowmint worker fast-forward --data-dir {dir}"
            )),
            Self::Restored { modified, written_at } => Error::journal_refused(format!(
                "journal {path:?} was written at {modified}, its content is from {written_at}: an \
                 older state was restored; once no other process uses this data, run snowmint \
                 worker fast-forward --data-dir {dir}"
            )),
            Self::Damaged => Error::journal_refused(format!(
                "journal {path:?} is damaged in both copies; once no other process uses this data, \
                 run snowmint worker fast-forward --data-dir {dir}"
            )),
            Self::Form(form) => Error::journal_refused(format!(
                "journal {path:?} has form {form}, maximum 1; run the newer version that wrote it"
            )),
            Self::Content(error) => Error::journal_refused(format!(
                "journal {path:?} has content unknown to this version: {error}; run the newer \
                 version that wrote it"
            )),
            Self::Incarnation(error) => Error::journal_refused(format!(
                "journal {path:?} has an invalid incarnation; once no other process uses this data, \
                 run snowmint worker fast-forward --data-dir {dir}"
            ))
            .with_source(error),
        }
    }
}
