//! Names of members, read from messages.

use snowmint_coord::Incarnation;

use crate::error::Error;

/// A part of a message, or the error for its caller.
pub(super) type ReadResult<T> = Result<T, Error>;

pub(super) fn incarnation(text: &str) -> ReadResult<Incarnation> {
    text.parse().map_err(|error: snowmint_coord::Error| Error::bad_request(error.to_string()))
}
