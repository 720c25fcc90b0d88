//! Reasons why a program's call was not done.

use snowmint_coord::Error as StoreError;

use crate::error::Error;

/// Reason why a program's call was not done.
pub(crate) enum NotDone {
    /// The caller lacks a right, or its request is invalid.
    Refused(Error),
    /// The store rejects it, or does not return a value that must be known first.
    Unknown(StoreError),
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
