//! Errors: the part for callers, and the part that only the log shows.

use std::fmt;
use std::sync::Arc;

use snowmint_coord::error::chain;
use snowmint_coord::label::visible;
use snowmint_coord::{ErrorKind, Retry};
use snowmint_wire::error::{Code, RespPrefix};
use snowmint_wire::http::ErrorInfo;

use crate::advertised_addrs::AdvertisedAddrs;
use crate::clients::share::OverShare;

/// Milliseconds until a retry of something unavailable, where no better hint is known.
const RETRY_MS: u64 = 1_000;

/// An error in the form for callers. Its form in each protocol is a row of
/// [`snowmint_wire::error`]'s table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
    /// Addresses, URLs and paths: for the log, and for callers that may read them.
    detail: Option<Box<str>>,
    retry_after_ms: Option<u64>,
    owner: Option<Box<SectionOwner>>,
    cause: Option<Cause>,
}

/// Owner of a key's section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionOwner {
    /// Section of the key.
    pub section: u16,
    /// Addresses of the owner.
    pub advertised_addrs: AdvertisedAddrs,
}

impl Error {
    /// Creates an error with this code.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let retry_after_ms = (code.row().resp == RespPrefix::TryAgain).then_some(RETRY_MS);
        // It may quote the caller.
        let message = visible(message.into());
        Self { code, message, detail: None, retry_after_ms, owner: None, cause: None }
    }

    /// Creates an error for an invalid request.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    /// Creates an error for a count above the limit of this name.
    pub(crate) fn too_many(count: u64, limit: u64, limit_name: &str) -> Self {
        // Longer digits are read as the highest count.
        let more = if count == u64::MAX { " or more" } else { "" };
        let message = format!("count {count}{more} exceeds {limit_name} ({limit}); ask for fewer");
        Self::new(Code::LimitExceeded, message)
    }

    /// Creates an error for a client with more than its share of unsent IDs.
    pub(crate) fn unsent(requested: u64, over: &OverShare) -> Self {
        let OverShare { client, held, free, limit } = over;
        let message = format!(
            "{requested} more unsent IDs exceed the share of {client} (holds {held}, free {free} of \
             limits.unsent_max {limit}); read responses or ask for fewer"
        );
        Self::new(Code::Overloaded, message)
    }

    /// Creates an error for a client with more than its share of requests that wait for a peer.
    pub(crate) fn too_many_forwarded(address: &str, over: &OverShare) -> Self {
        let OverShare { client, held, free, limit } = over;
        let message = format!(
            "one more request exceeds the share of {client} of those that wait for one server \
             (holds {held}, free {free} of limits.passed_on_max {limit}); retry later"
        );
        Self::new(Code::Overloaded, message).with_detail(format!("server {address}"))
    }

    /// Returns the error of a peer, which had this HTTP status, for the caller.
    pub(crate) fn reported(info: ErrorInfo, status: u16) -> Self {
        // A newer version may have more codes.
        let unknown = if status < 500 { Code::BadRequest } else { Code::Unavailable };
        let code = Code::from_name(&info.code).unwrap_or(unknown);
        let ErrorInfo { message, retry_after_ms, owner, .. } = info;
        let owner = owner.map(|owner| {
            Box::new(SectionOwner {
                section: owner.section,
                advertised_addrs: AdvertisedAddrs::read(&owner.address),
            })
        });
        let message = visible(message);
        Self { code, message, detail: None, retry_after_ms, owner, cause: None }
    }

    /// Adds a detail, which only the log and callers that may read it get.
    #[must_use]
    pub(crate) fn with_detail(mut self, detail: impl Into<Box<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Returns the same error with its detail as a part of the message, for a caller that may read
    /// it.
    pub(crate) fn in_full(mut self) -> Self {
        self.message = self.full_message();
        self.detail = None;
        self
    }

    /// Returns the same error, with more text.
    pub(crate) fn adding(mut self, more: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(more);
        self
    }

    /// Returns the same error, with the time in which a retry may succeed.
    pub(crate) fn retry_in_ms(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns a sentence for people, without the detail: any caller may read it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the detail, if there is one.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Returns the sentence, and the detail in parentheses.
    #[must_use]
    pub fn full_message(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the section owner of the key, if it is another server.
    #[must_use]
    pub fn owner(&self) -> Option<&SectionOwner> {
        self.owner.as_deref()
    }

    /// Returns the cause for the log, if the error is more than a mistake of the caller.
    pub(crate) const fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Returns in how many milliseconds a retry may succeed; `None` when a retry does not help.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }
}

impl fmt::Display for Error {
    /// Writes the error for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full_message())
    }
}

impl std::error::Error for Error {}

/// Cause of an error, with all details of the back end: for the log, since callers get less.
#[derive(Clone, Debug)]
pub(crate) struct Cause(Arc<snowmint_coord::Error>);

impl Cause {
    pub(crate) fn new(error: snowmint_coord::Error) -> Self {
        Self(Arc::new(error))
    }
}

/// Equal to any other: errors are compared by the part for callers, without causes.
impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

/// Writes the whole chain.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        chain(&*self.0).fmt(f)
    }
}

impl std::error::Error for Cause {}

/// Reason why the owner did not do a request.
#[derive(Debug)]
pub(crate) struct OwnerFailure {
    pub(crate) error: Error,
    /// Whether a quick retry is useless.
    pub(crate) lasts: bool,
}

impl From<Error> for OwnerFailure {
    fn from(error: Error) -> Self {
        // Error of the owner, or of the previous owner.
        let may_pass = matches!(error.code(), Code::NotOwner | Code::Unavailable | Code::Closed);
        Self { error, lasts: !may_pass }
    }
}

/// Returns the code of an error kind.
#[must_use]
pub fn code_of(kind: &ErrorKind) -> Code {
    match kind {
        // A caller names only sources, so nothing else can be missing.
        ErrorKind::NotFound => Code::UnknownSource,
        ErrorKind::Invalid => Code::BadRequest,
        // The rest have the same names here and in the table.
        kind => Code::from_name(kind.code()).unwrap_or(Code::Internal),
    }
}

impl From<snowmint_coord::Error> for Error {
    fn from(error: snowmint_coord::Error) -> Self {
        let code = code_of(error.kind());
        let retry_after_ms = match error.retry() {
            // The caller has waited for the longest time of a request: the store is unreachable.
            Retry::AfterMs(_) if code == Code::WindowSpent => Some(RETRY_MS),
            Retry::AfterMs(ms) => Some(ms),
            Retry::Now => Some(0),
            Retry::Never => Self::new(code, "").retry_after_ms,
        };
        let owner = match error.kind() {
            ErrorKind::NotOwner { section, address } => {
                let advertised_addrs = AdvertisedAddrs::read(address);
                Some(Box::new(SectionOwner { section: *section, advertised_addrs }))
            }
            _ => None,
        };
        let message = error.message().into_owned();
        let detail = error.detail().map(Into::into);
        // The back end's own text stays in the log: it may name hosts, paths and users.
        let cause = (code.row().http >= 500).then(|| Cause::new(error));
        Self { code, message, detail, retry_after_ms, owner, cause }
    }
}

/// Returns a caller's text, cut and escaped for a response or a log.
#[must_use]
pub fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 80;
    match text.char_indices().nth(SHOWN_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use snowmint_coord::{Error as CoordError, ErrorParts, PoolFull};

    use super::*;

    /// Returns one error of each kind.
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
            CoordError::from_parts(parts, "it".into()).kind().clone()
        };
        ErrorKind::CODES.iter().map(made).collect()
    }

    #[test]
    fn every_kind_of_error_has_a_row_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for kind in kinds() {
            let code = code_of(&kind);
            assert!(seen.insert(code), "{code} twice");
            if !matches!(kind, ErrorKind::Internal) {
                assert_ne!(code, Code::Internal, "{kind:?} has no row in the table of codes");
            }
            // A hint to retry reaches the caller in each protocol, and never accompanies an error
            // that stays.
            let retry = kind.retry();
            let error = Error::from(CoordError::of(kind.clone(), "it happened"));
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
    fn back_end_text_stays_in_the_log() {
        let cause = std::io::Error::other("password of root@db.internal refused");
        let error = CoordError::unavailable("store is unavailable; retry").with_source(cause);
        assert_eq!(Error::from(error).message(), "store is unavailable; retry");
    }

    #[test]
    fn quoted_control_characters_are_visible() {
        let message = "unknown format a\u{1b}[2J\n; correct it".to_owned();
        let reported = ErrorInfo {
            code: "bad_request".to_owned(),
            message: message.clone(),
            retry_after_ms: None,
            owner: None,
        };
        for error in [Error::bad_request(message), Error::reported(reported, 400)] {
            assert_eq!(error.message(), "unknown format a\\u{1b}[2J\\n; correct it");
        }
    }

    #[test]
    fn unknown_code_of_an_owner_is_judged_by_its_status() {
        for (status, code, lasts) in [
            (400, Code::BadRequest, true),
            (499, Code::BadRequest, true),
            (500, Code::Unavailable, false),
            (503, Code::Unavailable, false),
        ] {
            let message = "key has a color; leave it out".to_owned();
            let (code_name, retry_after_ms) = ("colored".to_owned(), None);
            let info = ErrorInfo { code: code_name, message, retry_after_ms, owner: None };
            let failure = OwnerFailure::from(Error::reported(info, status));
            assert_eq!((failure.error.code(), failure.lasts), (code, lasts), "{status}");
            assert_eq!(failure.error.message(), "key has a color; leave it out");
        }
    }

    #[test]
    fn address_is_a_detail_until_the_caller_may_read_it() {
        let error = CoordError::unavailable("MySQL is unavailable").with_detail("at db:3306");
        let error = Error::from(error);
        assert_eq!((error.message(), error.detail()), ("MySQL is unavailable", Some("at db:3306")));
        assert_eq!(error.to_string(), "MySQL is unavailable (at db:3306)", "for the log");
        let full = error.in_full();
        assert_eq!((full.message(), full.detail()), ("MySQL is unavailable (at db:3306)", None));
        assert!(full.cause().is_some());
    }
}
