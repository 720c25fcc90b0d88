//! Readiness of a node, and the reasons why it cannot mint.

use std::fmt;

use snowmint_core::UnixMillis;

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
    /// Returns all reasons in one line, with the details for operators.
    #[must_use]
    pub fn summary(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    }

    /// Returns the error for a caller that all reasons concern: `message` gets them in one line,
    /// without the details.
    pub(super) fn unavailable(&self, message: impl FnOnce(&str) -> String) -> Error {
        let reasons: Vec<_> = self.reasons.iter().map(|reason| reason.message.as_str()).collect();
        let error = Error::unavailable(message(&reasons.join("; ")));
        let details: Vec<_> = self.reasons.iter().filter_map(|it| it.detail.as_deref()).collect();
        if details.is_empty() { error } else { error.with_detail(details.join("; ")) }
    }
}

/// Reason why a node cannot mint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Short, stable name for machines: an error's code, `not_joined` or `not_claimed`.
    pub code: &'static str,
    /// Sentence, which may name sources, pools and stores, but no address.
    pub message: String,
    /// Detail for operators, such as an address: [`Error::detail`].
    pub detail: Option<String>,
}

impl Reason {
    /// Creates a reason with this code.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None }
    }

    /// Adds the detail of an error, if it has one.
    pub(super) fn with_detail_of(self, error: Option<&Error>) -> Self {
        let detail = error.and_then(Error::detail).map(str::to_owned);
        Self { detail, ..self }
    }

    pub(super) fn not_joined() -> Self {
        Self::new("not_joined", "the store is not joined yet")
    }
}

impl From<&Error> for Reason {
    fn from(error: &Error) -> Self {
        Self::new(error.kind().code(), error.message()).with_detail_of(Some(error))
    }
}

impl fmt::Display for Reason {
    /// Writes the sentence, and the detail in parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_show_addresses_to_operators_alone() {
        let error = Error::unavailable("PostgreSQL is unavailable").with_detail("at db:5432");
        let reasons = vec![Reason::from(&error), Reason::new("closed", "server is stopping")];
        let readiness = Readiness { ready: false, reasons, without_store_until: None };
        let full = "PostgreSQL is unavailable (at db:5432); server is stopping";
        assert_eq!(readiness.summary(), full);
        let error = readiness.unavailable(|reasons| format!("no window ({reasons}); retry"));
        let message = "no window (PostgreSQL is unavailable; server is stopping); retry";
        assert_eq!((error.message(), error.detail()), (message.into(), Some("at db:5432")));
    }
}
