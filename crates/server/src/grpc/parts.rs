//! Parts of messages: numbers that must be given, and IDs.

use snowmint_coord::IdBatch;

use crate::error::Error;

/// Checks a number that must be given, and not be 0.
pub(super) fn at_least_one(name: &str, number: u64) -> Result<u64, Error> {
    if number == 0 {
        return Err(Error::bad_request(format!("{name} 0 is below the minimum of 1; raise it")));
    }
    Ok(number)
}

/// Splits the IDs of a response into numbers and texts.
pub(super) fn parted(values: IdBatch) -> (Vec<u64>, Vec<String>) {
    match values {
        IdBatch::Numbers(ids) => (ids, Vec::new()),
        IdBatch::Texts(texts) => (Vec::new(), texts),
    }
}
