//! What callers are told, and what only the log says.

use std::fmt;

use snowmint_coord::{ErrorKind, Retry};
use snowmint_wire::error::{Code, RespPrefix};
use snowmint_wire::http::ErrorInfo;

use super::complaint::Cause;
use crate::reach::Reach;
use crate::share::OverShare;

/// When nobody knows better: in how long something that is not available now may be.
const RETRY_MS: u64 = 1_000;

/// An error as a caller is told. Its form in each protocol is a row of
/// [`snowmint_wire::error`]'s table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
    retry_after_ms: Option<u64>,
    elsewhere: Option<Box<Elsewhere>>,
    cause: Option<Cause>,
}

/// Who answers for a key instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The key's section.
    pub section: u16,
    /// Where that server is reached.
    pub reach: Reach,
}

impl Error {
    /// An error with this code.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let retry_after_ms = (code.row().resp == RespPrefix::TryAgain).then_some(RETRY_MS);
        Self { code, message: message.into(), retry_after_ms, elsewhere: None, cause: None }
    }

    /// The request is wrong in itself.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub(crate) fn too_many(what: &str, asked: u64, limit: u64, limit_name: &str) -> Self {
        let message = format!("{asked} {what} at once, where {limit} are allowed ({limit_name})");
        Self::new(Code::TooMany, message)
    }

    /// A client would have more than its share of IDs that wait to be sent.
    pub(crate) fn unsent(asked: u64, over: &OverShare) -> Self {
        let OverShare { client, held, free, limit } = over;
        let message = format!(
            "{asked} IDs more would be over the share of {client} in the {limit} IDs that may be waiting to be \
             sent (limits.unsent_max): {held} wait for it, and {free} are free; ask for fewer, or read them first"
        );
        Self::new(Code::Overloaded, message)
    }

    /// A client would have more than its share of requests that wait for another server.
    pub(crate) fn passed_on(address: &str, over: &OverShare) -> Self {
        let OverShare { client, held, free, limit } = over;
        let message = format!(
            "one request more would be over the share of {client} in the {limit} that may wait for the server at \
             {address} (limits.passed_on_max): {held} of its requests wait, and {free} more may; ask later"
        );
        Self::new(Code::Overloaded, message)
    }

    /// What another server said, to be passed on.
    pub(crate) fn said(said: ErrorInfo) -> Self {
        let code = Code::from_name(&said.code).unwrap_or(Code::Unavailable);
        let ErrorInfo { message, retry_after_ms, elsewhere, .. } = said;
        let elsewhere = elsewhere.map(|owner| {
            Box::new(Elsewhere { section: owner.section, reach: Reach::read(&owner.address) })
        });
        Self { code, message, retry_after_ms, elsewhere, cause: None }
    }

    /// The same error, of which more is to be said.
    pub(crate) fn adding(mut self, more: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(more);
        self
    }

    /// The same error, of which is known in how long the same request may succeed.
    pub(crate) fn retry_in_ms(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// A sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Who answers for the key instead, if somebody does.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Elsewhere> {
        self.elsewhere.as_deref()
    }

    /// What the log says of it, where it is more than a mistake of the caller's.
    pub(crate) const fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// In how many milliseconds the same request may succeed; none when a retry does not help.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The code that a kind of error is answered with.
#[must_use]
pub fn code_of(kind: &ErrorKind) -> Code {
    match kind {
        // A caller names nothing but sources, so nothing else can be missing.
        ErrorKind::NotFound { .. } => Code::UnknownSource,
        ErrorKind::Invalid { .. } => Code::BadRequest,
        // All others are called in the table as they are here.
        kind => Code::from_name(kind.code()).unwrap_or(Code::Internal),
    }
}

impl From<snowmint_coord::Error> for Error {
    fn from(error: snowmint_coord::Error) -> Self {
        let code = code_of(error.kind());
        let retry_after_ms = match error.retry() {
            // Who is told so has waited as long as a request may: the store is away.
            Retry::AfterMs(_) if code == Code::WindowSpent => Some(RETRY_MS),
            Retry::AfterMs(ms) => Some(ms),
            Retry::Now => Some(0),
            Retry::Never => Self::new(code, "").retry_after_ms,
        };
        // What a back end had to say stays in the log: it may name hosts, paths and users.
        let elsewhere = match error.kind() {
            ErrorKind::Elsewhere { section, address } => {
                let reach = Reach::read(address);
                Some(Box::new(Elsewhere { section: *section, reach }))
            }
            _ => None,
        };
        let message = error.kind().to_string();
        let cause = (code.row().http >= 500).then(|| Cause::new(error));
        Self { code, message, retry_after_ms, elsewhere, cause }
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::{Error as CoordError, ErrorParts, PoolFull};

    use super::*;

    /// One of each kind.
    fn kinds() -> Vec<ErrorKind> {
        let full = PoolFull {
            pool: "it".into(),
            groups: 1,
            only: None,
            held: 1,
            marked_ahead: 0,
            holders: Vec::new(),
            usable_at: None,
            usable_in_ms: Some(7),
            by_recovery: false,
        };
        let made = |&code: &&str| {
            let texts = vec!["it".to_owned(); 3];
            let full = (code == "pool_full").then(|| full.clone());
            let parts = ErrorParts { code: code.into(), texts, numbers: vec![2, 1], full };
            ErrorKind::from_parts(parts).unwrap_or_else(|| panic!("{code}"))
        };
        ErrorKind::CODES.iter().map(made).collect()
    }

    #[test]
    fn every_kind_of_error_has_a_row_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for kind in kinds() {
            let code = code_of(&kind);
            assert!(seen.insert(code), "{code} twice");
            if !matches!(kind, ErrorKind::Internal { .. }) {
                assert_ne!(code, Code::Internal, "{kind:?} has no row in the table of codes");
            }
            // A hint to try again reaches the caller in each protocol, and is never made up for an
            // error that stays.
            let retry = kind.retry();
            let error = Error::from(CoordError::new("test", kind.clone()));
            match retry {
                Retry::AfterMs(_) if error.code() == Code::WindowSpent => {
                    assert_eq!(error.retry_after_ms(), Some(RETRY_MS));
                }
                Retry::AfterMs(ms) => assert_eq!(error.retry_after_ms(), Some(ms), "{kind:?}"),
                Retry::Now => assert_eq!(error.retry_after_ms(), Some(0), "{kind:?}"),
                Retry::Never => {
                    let later = code.row().resp == RespPrefix::TryAgain;
                    assert_eq!(error.retry_after_ms().is_some(), later, "{kind:?}");
                }
            }
            if error.retry_after_ms().is_some() {
                assert_eq!(code.row().resp, RespPrefix::TryAgain, "{kind:?}");
                assert_eq!(code.row().http, 503, "{kind:?}");
            }
        }
    }

    #[test]
    fn what_a_back_end_says_stays_in_the_log() {
        let kind = ErrorKind::Unavailable { what: "the store".into() };
        let cause = std::io::Error::other("password of root@db.internal refused");
        let error = Error::from(CoordError::new("claim", kind).with_source(cause));
        assert_eq!(error.message(), "the store is not available");
    }
}
