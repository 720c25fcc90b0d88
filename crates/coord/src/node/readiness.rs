//! Whether a node can mint, and if not, why.

use std::fmt;

use snowmint_core::UnixMillis;

use crate::error::Error;

/// Whether a node can mint, and if not, why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it can.
    pub ready: bool,
    /// What is missing; empty when it is ready.
    pub reasons: Vec<Reason>,
    /// It mints without having met the store, in what is left of the windows of an earlier process, and
    /// until this time at most; none when it does not.
    pub without_store_until: Option<UnixMillis>,
}

impl Readiness {
    /// All reasons in one line.
    #[must_use]
    pub fn why(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    }
}

/// Something without which a node cannot mint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// A short, stable name for machines: that of an error, `not_joined` or `not_claimed`.
    pub code: &'static str,
    /// A sentence, which may name sources, pools and stores.
    pub message: String,
}

impl Reason {
    /// A reason with this code.
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
        Self::new(error.kind().code(), error.to_string())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
