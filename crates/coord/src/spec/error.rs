//! What can be wrong with a source's keys.

use super::Kind;

/// A source's keys do not describe a source. Names the key, the value and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No source has such a key.
    #[error("a source has no key {key:?}; it has {}", super::keys::names())]
    UnknownKey {
        /// The key as given.
        key: String,
    },
    /// The text is no set of keys at all.
    #[error("this is no description of a source: {why}")]
    Unreadable {
        /// What the reader said.
        why: String,
    },
    /// A value that its key cannot take.
    #[error("{key} = {value:?} is not possible: {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it was given.
        value: String,
        /// Why not, and what would be.
        why: String,
    },
    /// A key that means nothing for this kind of source.
    #[error("{key} means nothing for a source of kind {kind}: remove it")]
    NotForKind {
        /// The key.
        key: &'static str,
        /// The source's kind.
        kind: Kind,
    },
    /// A key that needs another one to have a meaning.
    #[error("{key} is given, but it only has a meaning with {needs}")]
    Needs {
        /// The key.
        key: &'static str,
        /// What is missing, as `key = value`.
        needs: &'static str,
    },
    /// A key that this source cannot do without.
    #[error("{key} is missing: {why}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it is needed for.
        why: &'static str,
    },
}
