//! Readiness of a node, with reasons.

use std::fmt;
use std::sync::PoisonError;

use snowmint_core::UnixMillis;

use super::Node;
use crate::error::Error;

/// Readiness of a node, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Whether the node can mint from its own sources.
    pub ready: bool,
    /// Reasons why it cannot; empty when it is ready.
    pub reasons: Vec<Reason>,
    /// Latest end of offline minting in the rest of an earlier process's windows, before the store
    /// is reached; none when the node is not offline.
    pub without_store_until: Option<UnixMillis>,
}

impl Readiness {
    /// Returns all reasons in one line.
    #[must_use]
    pub fn why(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    }
}

impl Node {
    /// Returns whether the node can mint for all of its [own](Node::is_own) sources that were
    /// opened, and the reasons if not.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let core = self.core();
        let mut readiness = core.readiness.lock().unwrap_or_else(PoisonError::into_inner).clone();
        readiness.reasons.extend(core.own_reasons());
        readiness.ready &= readiness.reasons.is_empty();
        readiness
    }
}

/// Reason why a node cannot mint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Short, stable name for machines: an error's code, `not_joined` or `not_claimed`.
    pub code: &'static str,
    /// Sentence, which may name sources, pools and stores.
    pub message: String,
}

impl Reason {
    /// Creates a reason with this code.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn not_joined() -> Self {
        Self::new("not_joined", "the store is not joined yet")
    }
}

impl From<&Error> for Reason {
    fn from(error: &Error) -> Self {
        Self::new(error.kind().code(), error.message())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
