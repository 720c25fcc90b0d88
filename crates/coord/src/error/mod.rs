//! One error type for everything that asks a store: what happened, whether a retry helps, and
//! which operation it was.

mod chain;
mod parts;
mod pool_full;

use std::fmt;
use std::sync::Arc;

use crate::lease::{Mark, Term};
pub use chain::chain;
pub use parts::ErrorParts;
pub use pool_full::{Holder, PoolFull};

/// The outcome of everything in this crate that can be refused.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in which operation, and whether trying again can help.
///
/// One word wide. `Display` says what happened, with the value and the limit; what a back end had to
/// say is left to [`source`](std::error::Error::source), so print the whole [`chain`] in logs. Clones
/// share the source, so that one failure can be answered to many waiters.
#[derive(Clone)]
pub struct Error(Box<Repr>);

#[derive(Clone)]
struct Repr {
    op: &'static str,
    kind: ErrorKind,
    retry: Retry,
    nothing_done: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Whether the same call can succeed later, without anybody changing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not without a change: of the call, the configuration, or by an operator.
    Never,
    /// At once.
    Now,
    /// After this many milliseconds.
    AfterMs(u64),
}

/// What happened. The fields carry the value and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store did not answer, or answered that it cannot now. Whether a write happened is
    /// unknown, unless [`Error::is_nothing_done`].
    #[error("{what} is not available")]
    Unavailable {
        /// The store, or the part of it.
        what: String,
    },
    /// Somebody else claimed the slot since, or holds it, or it was released: stop minting from it.
    #[error(
        "{slot} was passed on, or is another member's: this lease has {held}, the newest is {newest}; claim again"
    )]
    Fenced {
        /// Pool and slot.
        slot: String,
        /// The term of the lease that asked.
        held: Term,
        /// The newest term of the slot.
        newest: Term,
    },
    /// The mark is not where the caller left it: another call moved it.
    #[error("the mark of {what} is {found}, not {expected}: another call moved it")]
    MarkMoved {
        /// Pool and slot, or the source.
        what: String,
        /// Where the caller left it.
        expected: Mark,
        /// Where it is.
        found: Mark,
    },
    /// No slot of the pool can be claimed now.
    #[error("{0}")]
    PoolFull(Box<PoolFull>),
    /// A clock, or a mark asked for, lies too far ahead.
    #[error(
        "{ahead_ms} ms ahead of {compared_with}, where {limit_ms} ms are allowed; check the clock"
    )]
    ClockAhead {
        /// By how much, in milliseconds.
        ahead_ms: u64,
        /// What is allowed, in milliseconds.
        limit_ms: u64,
        /// What it was compared with.
        compared_with: String,
    },
    /// A clock is behind what has been minted, or behind another clock.
    #[error(
        "{behind_ms} ms behind {compared_with}, where {limit_ms} ms are allowed; check the clock"
    )]
    ClockBehind {
        /// By how much, in milliseconds.
        behind_ms: u64,
        /// What is allowed, in milliseconds.
        limit_ms: u64,
        /// What it was compared with.
        compared_with: String,
    },
    /// There is nothing of this name.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for, and where it helps, what to do.
        what: String,
    },
    /// Disagrees with what the store has.
    #[error("{what}: the store has {stored}, this asks for {wanted}")]
    Conflict {
        /// What disagrees, and what to do.
        what: String,
        /// What the store has.
        stored: String,
        /// What was asked for.
        wanted: String,
    },
    /// The call makes no sense as it is.
    #[error("{what}")]
    Invalid {
        /// Which value, and what would be right.
        what: String,
    },
    /// The store is older than something that has seen it.
    #[error(
        "the store went back: {witness} was {seen} before and is {found} now; was an old copy restored? \
         An operator must recover it (snowmint worker recover; while no server runs, snowmint worker fast-forward)"
    )]
    StoreWentBack {
        /// What was compared.
        witness: String,
        /// The highest value seen before.
        seen: u64,
        /// The value now.
        found: u64,
    },
    /// The store is not the one that was used before.
    #[error(
        "the store is {found}, but {witness} belongs to {expected}; if it is to be used in its place, \
         an operator must move it forward (snowmint worker fast-forward)"
    )]
    OtherStore {
        /// What remembers the store.
        witness: String,
        /// The identity it remembers.
        expected: String,
        /// The identity of the store at hand.
        found: String,
    },
    /// A local journal cannot be trusted here.
    #[error("the journal {path} is refused: {reason}; {way_out}")]
    JournalRefused {
        /// The file.
        path: String,
        /// Why.
        reason: String,
        /// What an operator can do.
        way_out: String,
    },
    /// Another process has it.
    #[error("{what} is locked by another process")]
    Locked {
        /// The directory or file.
        what: String,
    },
    /// A finite supply has been used up for good.
    #[error("{what} is used up: the limit is {limit}")]
    Exhausted {
        /// Which supply.
        what: String,
        /// Its limit.
        limit: u64,
    },
    /// All sequence values of the current tick are taken.
    #[error("all IDs of this tick are taken; the next tick begins in {next_in_ms} ms")]
    TickFull {
        /// Milliseconds until the next tick.
        next_in_ms: u64,
    },
    /// Everything up to the mark has been minted and the store has not moved the mark yet.
    #[error("the window is spent: the mark {mark} is reached and could not be moved yet")]
    WindowSpent {
        /// The mark.
        mark: Mark,
    },
    /// The layout's years have run out.
    #[error("the layout of {name} has no time left: its last tick is past")]
    EpochSpent {
        /// The source or layout.
        name: String,
    },
    /// The handle was closed.
    #[error("{what} is closed")]
    Closed {
        /// Which handle.
        what: String,
    },
    /// The source is switched off in the catalog.
    #[error("source {name} is disabled; enable it in the catalog")]
    Disabled {
        /// The source.
        name: String,
    },
    /// Another process answers for this section of counters, or for this source.
    #[error("section {section} is answered by {}; ask there", where_else(address))]
    Elsewhere {
        /// The section.
        section: u16,
        /// Where that process is reached; empty when it serves nobody.
        address: String,
    },
    /// More at once than allowed.
    #[error("{wanted} {what} at once, where {limit} are allowed")]
    TooMany {
        /// Of what.
        what: String,
        /// How many were asked for.
        wanted: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// Stored data is not what was written.
    #[error("{what} is damaged; restore it, then move it forward (snowmint worker fast-forward)")]
    Corrupt {
        /// The file or row.
        what: String,
    },
    /// The disk or quota under the store is full. What was acknowledged before is safe.
    #[error("no space left for {what}; nothing acknowledged is lost, free some space")]
    StorageFull {
        /// The file.
        what: String,
    },
    /// The store cannot be written by this process.
    #[error("{what} cannot be written; check owner, permissions and mount")]
    Unwritable {
        /// The file or directory.
        what: String,
    },
    /// The user as whom the store is asked may not do what has to be done there. Which right is missing is in the
    /// source, in the store's own words.
    #[error(
        "this user lacks a right in {what}: grant those that docs/stores.md lists, or name another user in the URL"
    )]
    NoRight {
        /// The store.
        what: String,
    },
    /// The store is set to lose what it acknowledged, so that what was handed out could come again.
    #[error("{what}")]
    UnsafeStore {
        /// Which store, which setting, and what it must be.
        what: String,
    },
    /// This build, or this store, cannot do it.
    #[error("{what}")]
    Unsupported {
        /// What, and what can.
        what: String,
    },
    /// A bug in this program, or in a store's driver.
    #[error("internal error: {what}; please report it")]
    Internal {
        /// What was seen.
        what: String,
    },
}

/// Where else to ask, for people.
fn where_else(address: &str) -> &str {
    if address.is_empty() { "a process that serves nobody" } else { address }
}

impl ErrorKind {
    /// Whether it says that a store is another one than it was, an older state of it, or none that keeps what it
    /// acknowledges.
    pub(crate) const fn doubts_store(&self) -> bool {
        matches!(
            self,
            Self::StoreWentBack { .. } | Self::OtherStore { .. } | Self::UnsafeStore { .. }
        )
    }

    /// A short, stable name for machines, such as `pool_full`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "unavailable",
            Self::Fenced { .. } => "fenced",
            Self::MarkMoved { .. } => "mark_moved",
            Self::PoolFull(_) => "pool_full",
            Self::ClockAhead { .. } => "clock_ahead",
            Self::ClockBehind { .. } => "clock_behind",
            Self::NotFound { .. } => "not_found",
            Self::Conflict { .. } => "conflict",
            Self::Invalid { .. } => "invalid",
            Self::StoreWentBack { .. } => "store_went_back",
            Self::OtherStore { .. } => "other_store",
            Self::JournalRefused { .. } => "journal_refused",
            Self::Locked { .. } => "locked",
            Self::Exhausted { .. } => "exhausted",
            Self::TickFull { .. } => "tick_full",
            Self::WindowSpent { .. } => "window_spent",
            Self::EpochSpent { .. } => "epoch_spent",
            Self::Closed { .. } => "closed",
            Self::Disabled { .. } => "disabled",
            Self::Elsewhere { .. } => "elsewhere",
            Self::TooMany { .. } => "too_many",
            Self::Corrupt { .. } => "corrupt",
            Self::StorageFull { .. } => "storage_full",
            Self::Unwritable { .. } => "unwritable",
            Self::NoRight { .. } => "no_right",
            Self::UnsafeStore { .. } => "unsafe_store",
            Self::Unsupported { .. } => "unsupported",
            Self::Internal { .. } => "internal",
        }
    }

    /// Whether a retry helps, unless the place that raised the error knows better.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unavailable { .. } | Self::WindowSpent { .. } => Retry::AfterMs(100),
            Self::StorageFull { .. } => Retry::AfterMs(1000),
            Self::PoolFull(full) => full.usable_in_ms.map_or(Retry::Never, Retry::AfterMs),
            Self::TickFull { next_in_ms } => Retry::AfterMs(*next_in_ms),
            Self::ClockBehind { behind_ms, limit_ms, .. } => {
                Retry::AfterMs(behind_ms.saturating_sub(*limit_ms))
            }
            _ => Retry::Never,
        }
    }
}

impl Error {
    /// `kind` happened in the operation `op`; whether a retry helps follows from the kind.
    #[must_use]
    pub fn new(op: &'static str, kind: ErrorKind) -> Self {
        let retry = kind.retry();
        Self(Box::new(Repr { op, kind, retry, nothing_done: false, source: None }))
    }

    /// A value that makes no sense: `what` says which, and what would be right.
    #[must_use]
    pub fn invalid(op: &'static str, what: impl Into<String>) -> Self {
        Self::new(op, ErrorKind::Invalid { what: what.into() })
    }

    /// Something that can only be a bug.
    #[must_use]
    pub fn internal(op: &'static str, what: impl Into<String>) -> Self {
        Self::new(op, ErrorKind::Internal { what: what.into() })
    }

    /// With what a back end had to say.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// With another answer to whether a retry helps.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Says that nothing was done, where the caller knows that and the kind leaves it open.
    #[must_use]
    pub fn with_nothing_done(mut self) -> Self {
        self.0.nothing_done = true;
        self
    }

    /// Whether nothing was done for sure, where the kind leaves that open: it never left, or was refused unread.
    #[must_use]
    pub fn is_nothing_done(&self) -> bool {
        self.0.nothing_done
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether the same call can succeed later.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// The operation that failed, such as `claim`.
    #[must_use]
    pub fn op(&self) -> &'static str {
        self.0.op
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.op, self.0.kind)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("op", &self.0.op)
            .field("kind", &self.0.kind)
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
    use std::error::Error as _;

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn display_leaves_the_source_to_the_chain() {
        let error = Error::new("extend", ErrorKind::Unavailable { what: "the store".into() })
            .with_source(std::io::Error::other("socket closed"));
        assert_eq!(error.to_string(), "extend: the store is not available");
        assert_eq!(error.source().map(ToString::to_string), Some("socket closed".into()));
        assert_eq!(error.retry(), Retry::AfterMs(100));
    }
}
