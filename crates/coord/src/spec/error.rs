//! Errors in a source's definition.

use std::fmt;
use std::ops::RangeInclusive;

use super::kind::Kind;

/// Error in a source's definition. It names the key, the value and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The definition has a key that no source has.
    #[error("a source has no key {key:?}; it has {known}")]
    UnknownKey {
        /// The key as given.
        key: String,
        /// The keys that a source may have.
        known: String,
    },
    /// The text is not a set of keys at all.
    #[error("source definition is invalid: {reason}")]
    Unreadable {
        /// Reason of the parser.
        reason: String,
    },
    /// The key cannot take this value.
    #[error("{key} = {value:?} is not possible: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// The given value.
        value: String,
        /// Reason, and the possible values.
        reason: String,
    },
    /// The key means nothing for this kind of source.
    #[error("{key} means nothing for a source of kind {kind}: remove it")]
    NotForKind {
        /// The key.
        key: &'static str,
        /// The source's kind.
        kind: Kind,
    },
    /// The key needs another key to have a meaning.
    #[error("{key} is given, but it only has a meaning with {needs}")]
    Needs {
        /// The key.
        key: &'static str,
        /// Missing part, as `key = value`.
        needs: &'static str,
    },
    /// The source cannot do without this key.
    #[error("{key} is missing: {reason}")]
    Missing {
        /// The key.
        key: &'static str,
        /// Purpose of the key.
        reason: &'static str,
    },
}

/// Returns the error of a key that cannot take this value.
pub(super) fn value(
    key: &'static str,
    value: impl fmt::Display,
    reason: impl Into<String>,
) -> SpecError {
    SpecError::Value { key, value: value.to_string(), reason: reason.into() }
}

/// Rejects a key that was given without what it needs.
pub(super) fn needs(
    key: &'static str,
    is_lacking: bool,
    needs: &'static str,
) -> Result<(), SpecError> {
    if is_lacking { Err(SpecError::Needs { key, needs }) } else { Ok(()) }
}

/// Returns a number within its bounds, with the unit that follows them in the error.
pub(super) fn within<N: Copy + Into<u64> + fmt::Display>(
    key: &'static str,
    number: N,
    bounds: &RangeInclusive<u64>,
    unit: &str,
) -> Result<N, SpecError> {
    if bounds.contains(&number.into()) {
        return Ok(number);
    }
    Err(value(key, number, format!("take {} to {}{unit}", bounds.start(), bounds.end())))
}
