//! One error type for every store call: what happened, whether a retry helps, and which verb
//! failed.

mod chain;
mod constructors;
mod generator;
pub mod json;
mod kind;
pub mod label;
mod parts;
mod pool_full;
mod retry;
mod verb;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use chain::chain;
pub use kind::ErrorKind;
use kind::Sentence;

use crate::error::label::visible;
pub use parts::ErrorParts;
pub use pool_full::{Holder, PoolFull};
pub use retry::Retry;
pub(crate) use verb::VerbRow;
pub use verb::{Verb, VerbKind};

/// Outcome of every fallible operation in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure, the verb of the store that failed, and whether a retry can help.
///
/// One word wide. `Display` prints what happened, with the value and the limit, and the
/// [`detail`](Error::detail) for operators. The back end's error is left to
/// [`source`](std::error::Error::source), so print the whole [`chain`] in logs. Clones share the
/// source, so that many waiters can receive the same failure.
#[derive(Clone)]
pub struct Error(Box<Repr>);

#[derive(Clone)]
struct Repr {
    kind: ErrorKind,
    /// `None`: the kind's values are the sentence.
    message: Option<Cow<'static, str>>,
    detail: Option<Box<str>>,
    verb: Option<Verb>,
    retry: Retry,
    not_applied: bool,
    contradicts: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error of this kind; the kind decides whether a retry helps. The message may quote
    /// a caller, a row, a file or the environment, so its control characters are made visible.
    fn new(kind: ErrorKind, message: Option<Cow<'static, str>>) -> Self {
        let retry = kind.retry();
        let message = message.map(|message| match message {
            Cow::Owned(text) => Cow::Owned(visible(text)),
            written_here => written_here,
        });
        Self(Box::new(Repr {
            kind,
            message,
            detail: None,
            verb: None,
            retry,
            not_applied: false,
            contradicts: false,
            source: None,
        }))
    }

    /// Adds a detail for operators, such as an address, a URL or a path, unless the error already
    /// has one. The [`message`](Self::message), which any caller may read, stays without it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail.get_or_insert_with(|| visible(detail.into()).into());
        self
    }

    /// Returns the error without its detail, for a caller that may not read it.
    #[must_use]
    pub fn without_detail(mut self) -> Self {
        self.0.detail = None;
        self
    }

    /// Adds the back end's error as the source.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Names the store that failed, for a caller that would take it for the primary one.
    #[must_use]
    pub(crate) fn of_store(mut self, name: &str) -> Self {
        self.0.message = Some(format!("store {name:?}: {}", self.message()).into());
        self
    }

    /// Names the steps after a store rollback for a program that reaches the store through servers:
    /// it puts nothing in doubt there, so the servers may know nothing of the loss. Other errors
    /// stay, and so do those with a sentence of their own.
    #[must_use]
    pub fn for_program(mut self) -> Self {
        let ErrorKind::StoreRolledBack { evidence, seen, found } = &self.0.kind else {
            return self;
        };
        if self.message() == Sentence(&self.0.kind).to_string() {
            let message = format!(
                "store rolled back: {evidence}: was {seen}, is {found}; recover it at its servers \
                 (snowmint worker recover). If that finds no doubt, stop them and this program, and \
                 run there snowmint worker fast-forward --journal DIR, with this program's data \
                 directory"
            );
            self.0.message = Some(message.into());
        }
        self
    }

    /// Names the verb of the store that failed, unless the error already names one.
    #[must_use]
    pub fn with_verb(mut self, verb: Verb) -> Self {
        self.0.verb.get_or_insert(verb);
        self
    }

    /// Replaces the kind's advice on retries.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Records that nothing was done, where the caller knows it and the kind leaves it open.
    #[must_use]
    pub fn with_not_applied(mut self) -> Self {
        self.0.not_applied = true;
        self
    }

    /// Returns whether certainly nothing was done, where the kind leaves it open: the call was
    /// never sent, or was rejected unread.
    #[must_use]
    pub fn is_not_applied(&self) -> bool {
        self.0.not_applied
    }

    /// Returns whether a store's reply contradicts an earlier one.
    pub(crate) fn is_contradiction(&self) -> bool {
        self.0.contradicts
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns the sentence for callers, without the verb, the detail and the causes.
    #[must_use]
    pub fn message(&self) -> Cow<'_, str> {
        match &self.0.message {
            Some(message) => Cow::Borrowed(message),
            None => Cow::Owned(Sentence(&self.0.kind).to_string()),
        }
    }

    /// Returns the detail for operators, if there is one.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Returns the sentence for operators: the message, and the detail in parentheses.
    #[must_use]
    pub fn full_message(&self) -> String {
        let message = self.message();
        match self.detail() {
            Some(detail) => format!("{message} ({detail})"),
            None => message.into_owned(),
        }
    }

    /// Returns whether the same call can succeed later.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// Returns the verb of the store that failed, if the error comes from a store call.
    #[must_use]
    pub fn verb(&self) -> Option<Verb> {
        self.0.verb
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verb) = self.0.verb {
            write!(f, "{verb}: ")?;
        }
        match &self.0.message {
            Some(message) => f.write_str(message)?,
            None => write!(f, "{}", Sentence(&self.0.kind))?,
        }
        match &self.0.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.message())
            .field("detail", &self.0.detail)
            .field("verb", &self.0.verb)
            .field("retry", &self.0.retry)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::label::is_control;
    use crate::ids::Mark;
    use std::error::Error as _;

    #[test]
    fn error_has_the_size_of_a_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn display_leaves_the_source_to_the_chain() {
        let error = Error::unavailable("store is unavailable")
            .with_verb(Verb::Extend)
            .with_source(std::io::Error::other("socket closed"));
        assert_eq!(error.to_string(), "extend: store is unavailable");
        assert_eq!(error.source().map(ToString::to_string), Some("socket closed".into()));
        assert_eq!(error.retry(), Retry::AfterMs(100));
    }

    #[test]
    fn rollback_names_to_a_program_the_steps_at_its_servers() {
        let error = Error::store_rolled_back("write count seen by this program", 9, 5);
        let shown = error.clone().with_detail("at db:5432").with_verb(Verb::Recall).for_program();
        assert_eq!(
            (shown.kind().code(), shown.detail()),
            ("store_rolled_back", Some("at db:5432"))
        );
        for part in ["was 9, is 5; recover it at its servers", "fast-forward --journal DIR"] {
            assert!(shown.message().contains(part), "{part}: {shown}");
        }
        assert_eq!(shown.clone().for_program().message(), shown.message(), "once");
        let own = Error::of(error.kind().clone(), "store rolled back: run this");
        assert_eq!(own.for_program().message(), "store rolled back: run this");
        let other = Error::unavailable("PostgreSQL is unavailable");
        assert_eq!(other.for_program().message(), "PostgreSQL is unavailable");
    }

    #[test]
    fn detail_is_for_display_and_not_for_callers() {
        let plain = Error::unavailable("PostgreSQL is unavailable; check that it runs");
        assert_eq!((plain.detail(), plain.full_message()), (None, plain.message().into_owned()));
        let error = plain.with_verb(Verb::Extend).with_detail("at postgres://db:5432/ids");
        let error = error.with_detail("a later detail");
        assert_eq!(error.message(), "PostgreSQL is unavailable; check that it runs");
        assert_eq!(error.detail(), Some("at postgres://db:5432/ids"));
        let full = "PostgreSQL is unavailable; check that it runs (at postgres://db:5432/ids)";
        assert_eq!(error.full_message(), full);
        assert_eq!(error.to_string(), format!("extend: {full}"));
        let of_kind = Error::tick_full(3).with_detail("here");
        assert_eq!(of_kind.to_string(), format!("{} (here)", Error::tick_full(3)));
    }

    #[test]
    fn control_characters_of_any_text_are_visible() {
        let hostile = "a\u{1b}[2J\nb\u{202e}";
        let error = Error::conflict(format!("label {hostile}")).with_detail(hostile);
        let parts = ErrorParts { code: "conflict".into(), ..Default::default() };
        let doubt = Error::store_rolled_back(hostile, 2, 1);
        for error in [error, Error::from_parts(parts, hostile.to_owned()), doubt] {
            let text = error.to_string();
            assert!(!text.contains(is_control), "{text:?}");
            assert!(text.contains("a\\u{1b}[2J\\nb\\u{202e}"), "{text:?}");
        }
    }

    #[test]
    fn error_kind_is_the_default_message() {
        let sentence = "all IDs of this tick are minted; the next tick begins in 3 ms";
        assert_eq!(Error::tick_full(3).message(), sentence);
        assert_eq!(Error::tick_full(3).to_string(), sentence);
        let sentence = "window is used up at mark 2026-11-29T11:35:02.485Z; retry while the store \
                        extends it";
        assert_eq!(Error::window_spent(Mark::new(1_795_952_102_485)).message(), sentence);
        let error = Error::mark_moved(Mark::new(7), Mark::new(9), "mark is 9, expected 7");
        assert_eq!(
            (error.message(), error.kind().code()),
            ("mark is 9, expected 7".into(), "mark_moved")
        );
        assert_eq!(error.with_verb(Verb::Extend).to_string(), "extend: mark is 9, expected 7");
        let error = Error::clock_behind(9, 5, "clock is 9 ms behind, limit 5 ms");
        assert_eq!(error.retry(), Retry::AfterMs(4));
    }

    #[test]
    fn first_verb_of_an_error_stays() {
        let error = Error::closed("store is closed");
        assert_eq!((error.verb(), error.to_string()), (None, "store is closed".into()));
        let error = error.with_verb(Verb::Get).with_verb(Verb::List);
        assert_eq!(error.verb(), Some(Verb::Get));
        assert_eq!(error.to_string(), "get: store is closed");
    }
}
