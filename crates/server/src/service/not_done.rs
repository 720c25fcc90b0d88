//! Reasons why a call was not done.

use snowmint_coord::Error as StoreError;

use crate::error::Error;

/// Reason why a call was not done. Embedded clients get an error of the store in a response, and the
/// other as an error of their call.
#[derive(Debug)]
pub(crate) enum NotDone {
    /// The caller lacks a right, or its request is invalid.
    Refused(Error),
    /// The store rejects it, or does not return a value that must be known first.
    Unknown(StoreError),
}

impl From<NotDone> for Error {
    fn from(reason: NotDone) -> Self {
        match reason {
            NotDone::Refused(error) => error,
            NotDone::Unknown(error) => error.into(),
        }
    }
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<StoreError> for NotDone {
    fn from(error: StoreError) -> Self {
        Self::Unknown(error)
    }
}
