//! Reasons why a journal cannot be trusted here.

use std::path::Path;

use super::binding::Difference;
use super::disk::FileTime;
use crate::error::Error;

/// Remedy for a journal of another place or time, which may lack the newest numbers: the command
/// says what to add. `DIR` is in the detail of the error.
const FAST_FORWARD: &str = "once no other process uses this data, run snowmint worker \
                            fast-forward --data-dir DIR, which names what it needs";

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
        let detail = format!("journal {path:?}, DIR {dir:?}");
        let message = match self {
            Self::Place(Difference::Machine { written, here }) => format!(
                "journal was written on machine {written}, this is machine {here}; {FAST_FORWARD}"
            ),
            Self::Place(Difference::Path { written, here }) => {
                let message = format!("journal was written in another directory; {FAST_FORWARD}");
                let detail = format!("{detail}, written in {written:?}, now in {here:?}");
                return Error::journal_refused(message).with_detail(detail);
            }
            Self::Place(Difference::Copy) => {
                format!("journal is a copy, perhaps from a backup; {FAST_FORWARD}")
            }
            Self::Restored { modified, written_at } => format!(
                "journal was written at {modified}, its content is from {written_at}: an older \
                 state was restored; {FAST_FORWARD}"
            ),
            Self::Damaged => format!("journal is damaged in both copies; {FAST_FORWARD}"),
            Self::Form(form) => {
                format!("journal has form {form}, maximum 1; run the newer version that wrote it")
            }
            Self::Content(error) => format!(
                "journal has content unknown to this version: {error}; run the newer version that \
                 wrote it"
            ),
            Self::Incarnation(error) => {
                let message = format!("journal has an invalid incarnation; {FAST_FORWARD}");
                return Error::journal_refused(message).with_detail(detail).with_source(error);
            }
        };
        Error::journal_refused(message).with_detail(detail)
    }
}
