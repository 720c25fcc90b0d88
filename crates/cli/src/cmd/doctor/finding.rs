//! Result of one check.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Ok,
    Warning,
    Error,
}

/// Result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) subject: &'static str,
    pub(super) message: String,
}

impl Finding {
    fn new(severity: Severity, subject: &'static str, message: impl Into<String>) -> Self {
        Self { severity, subject, message: message.into() }
    }

    pub(super) fn ok(subject: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Ok, subject, message)
    }

    pub(super) fn warning(subject: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, subject, message)
    }

    pub(super) fn error(subject: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, subject, message)
    }
}
