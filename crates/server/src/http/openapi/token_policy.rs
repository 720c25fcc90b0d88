//! Callers that a server admits, for the description.

use crate::http::open_paths::is_open;

/// Callers that a server admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum TokenPolicy {
    /// All callers: a token is accepted, but optional.
    NotRequired,
    /// Callers with a token, except on open paths.
    Required {
        /// Whether `/metrics` is open as well.
        but_for_metrics: bool,
    },
}

impl TokenPolicy {
    pub(super) fn is_open(self, path: &str) -> bool {
        match self {
            Self::NotRequired => true,
            Self::Required { but_for_metrics } => {
                is_open(path) || but_for_metrics && path == "/metrics"
            }
        }
    }
}
