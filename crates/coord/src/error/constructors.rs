//! One constructor for each kind of failure.

use std::borrow::Cow;

use super::{Error, ErrorKind, PoolFull};
use crate::error::label::visible;
use crate::ids::Mark;

/// Defines the constructors of kinds whose sentence each place writes.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident = $kind:ident;)*) => {
        impl Error {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(message: impl Into<Cow<'static, str>>) -> Self {
                    Self::of(ErrorKind::$kind, message)
                }
            )*
        }
    };
}

constructors! {
    /// Creates the error for a store, or a part of it, that does not respond.
    unavailable = Unavailable;
    /// Creates the error for a lease that was lost.
    fenced = Fenced;
    /// Creates the error for a missing thing.
    not_found = NotFound;
    /// Creates the error for a request that disagrees with the stored value.
    conflict = Conflict;
    /// Creates the error for an invalid call.
    invalid = Invalid;
    /// Creates the error for a store that is not the one used before.
    store_mismatch = StoreMismatch;
    /// Creates the error for a journal that cannot be trusted here.
    journal_refused = JournalRefused;
    /// Creates the error for a lock that another process holds.
    locked = Locked;
    /// Creates the error for a finite supply that is used up for good.
    exhausted = Exhausted;
    /// Creates the error for a layout whose years have run out.
    epoch_spent = EpochSpent;
    /// Creates the error for a closed handle.
    closed = Closed;
    /// Creates the error for a disabled source.
    disabled = Disabled;
    /// Creates the error for a request that exceeds a limit.
    limit_exceeded = LimitExceeded;
    /// Creates the error for stored data that differs from the data that was written.
    corrupt = Corrupt;
    /// Creates the error for a full disk or quota.
    storage_full = StorageFull;
    /// Creates the error for a store that this process cannot write to.
    store_read_only = StoreReadOnly;
    /// Creates the error for a store whose user lacks a permission.
    store_permission_denied = StorePermissionDenied;
    /// Creates the error for settings under which a store may lose acknowledged writes.
    unsafe_store = UnsafeStore;
    /// Creates the error for an operation that this build, or this store, does not support.
    unsupported = Unsupported;
    /// Creates the error for a condition that only a bug can cause.
    internal = Internal;
}

impl Error {
    /// Creates an error of this kind with this sentence.
    #[must_use]
    pub fn of(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(kind, Some(message.into()))
    }

    /// Creates the error for a mark that another call moved from `expected` to `found`.
    #[must_use]
    pub fn mark_moved(expected: Mark, found: Mark, message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(ErrorKind::MarkMoved { expected, found }, message)
    }

    /// Creates the error for a clock, or a requested mark, that lies too far ahead.
    #[must_use]
    pub fn clock_ahead(
        ahead_ms: u64,
        limit_ms: u64,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::of(ErrorKind::ClockAhead { ahead_ms, limit_ms }, message)
    }

    /// Creates the error for a clock that is behind.
    #[must_use]
    pub fn clock_behind(
        behind_ms: u64,
        limit_ms: u64,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::of(ErrorKind::ClockBehind { behind_ms, limit_ms }, message)
    }

    /// Creates the error for a tick without free sequence values.
    #[must_use]
    pub fn tick_full(next_in_ms: u64) -> Self {
        Self::new(ErrorKind::TickFull { next_in_ms }, None)
    }

    /// Creates the error for a window that is used up at `mark`.
    #[must_use]
    pub fn window_spent(mark: Mark) -> Self {
        Self::new(ErrorKind::WindowSpent { mark }, None)
    }

    /// Creates the error for a section that another process owns; `address` is empty when that
    /// process serves no requests.
    #[must_use]
    pub fn not_owner(section: u16, address: String) -> Self {
        Self::new(ErrorKind::NotOwner { section, address: visible(address) }, None)
    }

    /// Creates the error for a pool without a slot that can be claimed now.
    #[must_use]
    pub fn pool_full(full: PoolFull) -> Self {
        Self::new(ErrorKind::PoolFull(Box::new(full)), None)
    }

    /// Creates the error for a store in an older state than one seen before. `evidence` is a noun
    /// phrase for the value that was `seen` and is `found` now.
    #[must_use]
    pub fn store_rolled_back(evidence: impl Into<String>, seen: u64, found: u64) -> Self {
        let evidence = visible(evidence.into());
        Self::new(ErrorKind::StoreRolledBack { evidence, seen, found }, None)
    }

    /// Creates the error for a store whose reply contradicts an earlier one: it hands out numbers
    /// again, or has an older lease than its holder. The store may show no trace of that later.
    pub(crate) fn contradiction(evidence: impl Into<String>, seen: u64, found: u64) -> Self {
        let mut error = Self::store_rolled_back(evidence, seen, found);
        error.0.contradicts = true;
        error
    }
}
