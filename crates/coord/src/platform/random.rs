//! The only place with randomness: the operating system's generator.

use crate::error::{Error, Result};
use crate::ids::Incarnation;

/// Returns a new incarnation, never one of an [embedded client](Incarnation::of_program): its
/// highest bit is not set.
///
/// # Errors
/// `Unavailable` when the operating system gives no random bytes.
pub fn incarnation() -> Result<Incarnation> {
    Ok(Incarnation::new(u128::from_ne_bytes(bytes()?) >> 1))
}

/// Returns a new request number: never zero, and below 2^63, so that every store can keep it.
///
/// # Errors
/// `Unavailable` when the operating system gives no random bytes.
pub fn request() -> Result<u64> {
    Ok((number()? >> 1).max(1))
}

/// Returns a random 64-bit number.
///
/// # Errors
/// `Unavailable` when the operating system gives no random bytes.
pub fn number() -> Result<u64> {
    Ok(u64::from_ne_bytes(bytes()?))
}

#[allow(clippy::disallowed_methods, reason = "this is the home of randomness")]
fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::unavailable("operating system's random number generator failed; retry")
            .with_source(error)
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn incarnations_differ_and_requests_fit() {
        assert_ne!(super::incarnation().unwrap(), super::incarnation().unwrap());
        for _ in 0..100 {
            let request = super::request().unwrap();
            assert!(request > 0 && i64::try_from(request).is_ok());
        }
    }
}
