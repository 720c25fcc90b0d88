//! Reasons of failures in the audit trail.

use std::fmt::{self, Display};

use snowmint_coord::{Error as StoreError, ErrorKind};

/// Reason of a failure, or of an unknown outcome.
pub(crate) struct FailureReason<'a>(pub(crate) &'a StoreError);

impl Display for FailureReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.full_message())?;
        match self.0.kind() {
            ErrorKind::Unavailable => f.write_str("; it may have been done"),
            _ => Ok(()),
        }
    }
}
