//! One constructor for each kind of failure.

use std::borrow::Cow;

use super::{Error, ErrorKind, PoolFull};
use crate::lease::{Mark, Term};

/// Defines the constructors of kinds whose sentence each place writes.
macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident = $kind:expr;)*) => {
        impl Error {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(message: impl Into<Cow<'static, str>>) -> Self {
                    Self::of($kind, message)
                }
            )*
        }
    };
}

// The fields are those of the kinds' own templates, which the message replaces.
constructors! {
    /// Creates the error for a store, or a part of it, that does not respond.
    unavailable = ErrorKind::Unavailable { what: String::new() };
    /// Creates the error for a lease that was lost.
    fenced = ErrorKind::Fenced { slot: String::new(), held: Term::new(0), newest: Term::new(0) };
    /// Creates the error for a missing thing.
    not_found = ErrorKind::NotFound { what: String::new() };
    /// Creates the error for a request that disagrees with the stored value.
    conflict = ErrorKind::Conflict {
        what: String::new(),
        stored: String::new(),
        wanted: String::new(),
    };
    /// Creates the error for an invalid call.
    invalid = ErrorKind::Invalid { what: String::new() };
    /// Creates the error for a store that is not the one used before.
    store_mismatch = ErrorKind::OtherStore {
        witness: String::new(),
        expected: String::new(),
        found: String::new(),
    };
    /// Creates the error for a journal that cannot be trusted here.
    journal_refused = ErrorKind::JournalRefused {
        path: String::new(),
        reason: String::new(),
        way_out: String::new(),
    };
    /// Creates the error for a lock that another process holds.
    locked = ErrorKind::Locked { what: String::new() };
    /// Creates the error for a finite supply that is used up for good.
    exhausted = ErrorKind::Exhausted { what: String::new(), limit: 0 };
    /// Creates the error for a layout whose years have run out.
    epoch_spent = ErrorKind::EpochSpent { name: String::new() };
    /// Creates the error for a closed handle.
    closed = ErrorKind::Closed { what: String::new() };
    /// Creates the error for a disabled source.
    disabled = ErrorKind::Disabled { name: String::new() };
    /// Creates the error for a request that exceeds a limit.
    limit_exceeded = ErrorKind::TooMany { what: String::new(), wanted: 0, limit: 0 };
    /// Creates the error for stored data that differs from the data that was written.
    corrupt = ErrorKind::Corrupt { what: String::new() };
    /// Creates the error for a full disk or quota.
    storage_full = ErrorKind::StorageFull { what: String::new() };
    /// Creates the error for a store that this process cannot write to.
    store_read_only = ErrorKind::Unwritable { what: String::new() };
    /// Creates the error for a store whose user lacks a permission.
    store_permission_denied = ErrorKind::NoRight { what: String::new() };
    /// Creates the error for settings under which a store may lose acknowledged writes.
    unsafe_store = ErrorKind::UnsafeStore { what: String::new() };
    /// Creates the error for an operation that this build, or this store, does not support.
    unsupported = ErrorKind::Unsupported { what: String::new() };
    /// Creates the error for a condition that only a bug can cause.
    internal = ErrorKind::Internal { what: String::new() };
}

impl Error {
    /// Creates an error of this kind with this sentence.
    #[must_use]
    pub fn of(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::from(kind);
        error.0.message = Some(message.into());
        error
    }

    /// Creates the error for a mark that another call moved from `expected` to `found`.
    #[must_use]
    pub fn mark_moved(expected: Mark, found: Mark, message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(ErrorKind::MarkMoved { what: String::new(), expected, found }, message)
    }

    /// Creates the error for a clock, or a requested mark, that lies too far ahead.
    #[must_use]
    pub fn clock_ahead(
        ahead_ms: u64,
        limit_ms: u64,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let compared_with = String::new();
        Self::of(ErrorKind::ClockAhead { ahead_ms, limit_ms, compared_with }, message)
    }

    /// Creates the error for a clock that is behind.
    #[must_use]
    pub fn clock_behind(
        behind_ms: u64,
        limit_ms: u64,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let compared_with = String::new();
        Self::of(ErrorKind::ClockBehind { behind_ms, limit_ms, compared_with }, message)
    }

    /// Creates the error for a tick without free sequence values.
    #[must_use]
    pub fn tick_full(next_in_ms: u64) -> Self {
        ErrorKind::TickFull { next_in_ms }.into()
    }

    /// Creates the error for a window that is used up at `mark`.
    #[must_use]
    pub fn window_spent(mark: Mark) -> Self {
        ErrorKind::WindowSpent { mark }.into()
    }

    /// Creates the error for a section that another process owns; `address` is empty when that
    /// process serves no requests.
    #[must_use]
    pub fn not_owner(section: u16, address: String) -> Self {
        ErrorKind::Elsewhere { section, address }.into()
    }

    /// Creates the error for a pool without a slot that can be claimed now.
    #[must_use]
    pub fn pool_full(full: PoolFull) -> Self {
        ErrorKind::PoolFull(Box::new(full)).into()
    }

    /// Creates the error for a store in an older state than one seen before. `evidence` is a noun
    /// phrase for the value that was `seen` and is `found` now.
    #[must_use]
    pub fn store_rolled_back(evidence: impl Into<String>, seen: u64, found: u64) -> Self {
        ErrorKind::StoreWentBack { witness: evidence.into(), seen, found }.into()
    }
}
