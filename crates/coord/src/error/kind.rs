//! The kinds of failure.

use std::fmt;

use snowmint_core::Rfc3339;

use super::{PoolFull, Retry};
use crate::ids::Mark;

/// Kind of failure, with the values that programs act on. The sentence is the error's
/// [`message`](super::Error::message).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store did not respond, or responded that it is unavailable. Whether a write happened is
    /// unknown, unless [`is_not_applied`](super::Error::is_not_applied).
    Unavailable,
    /// Another member claimed or holds the slot, or the slot was released: stop minting from it.
    Fenced,
    /// Another call moved the mark, so it is not where the caller left it.
    MarkMoved {
        /// The mark as the caller left it.
        expected: Mark,
        /// The mark in the store.
        found: Mark,
    },
    /// No slot of the pool can be claimed now.
    PoolFull(Box<PoolFull>),
    /// A clock, or a requested mark, lies too far ahead.
    ClockAhead {
        /// Excess, in milliseconds.
        ahead_ms: u64,
        /// Limit, in milliseconds.
        limit_ms: u64,
    },
    /// A clock is behind what has been minted, or behind another clock.
    ClockBehind {
        /// Deficit, in milliseconds.
        behind_ms: u64,
        /// Limit, in milliseconds.
        limit_ms: u64,
    },
    /// Nothing of this name exists.
    NotFound,
    /// The request disagrees with the stored value.
    Conflict,
    /// The call is invalid.
    Invalid,
    /// The store is in an older state than one seen before (store rollback).
    StoreRolledBack {
        /// The evidence that was compared, as a noun phrase.
        evidence: String,
        /// The highest value seen before.
        seen: u64,
        /// The value now.
        found: u64,
    },
    /// The store is not the one used before.
    StoreMismatch,
    /// A local journal cannot be trusted here.
    JournalRefused,
    /// Another process holds the lock.
    Locked,
    /// A finite supply is used up for good.
    Exhausted,
    /// All sequence values of the current tick are minted.
    TickFull {
        /// Milliseconds until the next tick.
        next_in_ms: u64,
    },
    /// Minting has reached the mark, and the store has not moved it yet.
    WindowSpent {
        /// The mark.
        mark: Mark,
    },
    /// The layout's years have run out.
    EpochSpent,
    /// The handle was closed.
    Closed,
    /// The source is disabled in the catalog.
    Disabled,
    /// Another process is the section owner of this counter section, or owns this source.
    NotOwner {
        /// The section.
        section: u16,
        /// The address of that process; empty when it serves no requests.
        address: String,
    },
    /// The request exceeds a limit on how much one call may ask for.
    LimitExceeded,
    /// Stored data differs from the data that was written.
    Corrupt,
    /// The disk or quota under the store is full. Everything acknowledged before is safe.
    StorageFull,
    /// This process cannot write to the store.
    StoreReadOnly,
    /// The store's user lacks a permission for the operation. The source error names the missing
    /// permission, in the store's own words.
    StorePermissionDenied,
    /// The store's settings may lose acknowledged writes, so that issued numbers could repeat.
    UnsafeStore,
    /// This build, or this store, does not support the operation.
    Unsupported,
    /// A bug in this program, or in a store's driver.
    Internal,
}

/// The sentence of a kind whose values are the whole sentence; of other kinds, the code.
pub(super) struct Sentence<'a>(pub(super) &'a ErrorKind);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ErrorKind::PoolFull(full) => write!(f, "{full}"),
            ErrorKind::StoreRolledBack { evidence, seen, found } => write!(
                f,
                "store rolled back: {evidence}: was {seen}, is {found}; recover it (snowmint \
                 worker recover; while no server runs, snowmint worker fast-forward)"
            ),
            ErrorKind::TickFull { next_in_ms } => {
                write!(
                    f,
                    "all IDs of this tick are minted; the next tick begins in {next_in_ms} ms"
                )
            }
            ErrorKind::WindowSpent { mark } => {
                let mark = Rfc3339(mark.unix_millis());
                write!(f, "window is used up at mark {mark}; retry while the store extends it")
            }
            ErrorKind::NotOwner { section, address } if address.is_empty() => write!(
                f,
                "section {section} is owned by a process that serves no requests; call it there"
            ),
            ErrorKind::NotOwner { section, address } => write!(
                f,
                "section {section} is owned by the server at {address}; send the request there"
            ),
            kind => f.write_str(kind.code()),
        }
    }
}

impl ErrorKind {
    /// Returns whether the store was rolled back: an operator must recover it.
    pub(crate) const fn is_rolled_back(&self) -> bool {
        matches!(self, Self::StoreRolledBack { .. })
    }

    /// Returns whether the error means that the store is a different one, is in an older state, or
    /// may lose acknowledged writes.
    pub(crate) const fn doubts_store(&self) -> bool {
        self.is_rolled_back() || matches!(self, Self::StoreMismatch | Self::UnsafeStore)
    }

    /// Returns whether the error is about the store as a whole, so that its address helps an
    /// operator, and not about one request.
    pub(crate) const fn is_of_store(&self) -> bool {
        self.doubts_store()
            || matches!(
                self,
                Self::Unavailable
                    | Self::Closed
                    | Self::Corrupt
                    | Self::StorageFull
                    | Self::StoreReadOnly
                    | Self::StorePermissionDenied
                    | Self::Unsupported
                    | Self::Internal
            )
    }

    /// Returns whether a retry helps, unless the code that raised the error knows better.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unavailable | Self::WindowSpent { .. } => Retry::AfterMs(100),
            Self::StorageFull => Retry::AfterMs(1000),
            Self::PoolFull(full) => full.usable_in_ms.map_or(Retry::Never, Retry::AfterMs),
            Self::TickFull { next_in_ms } => Retry::AfterMs(*next_in_ms),
            Self::ClockBehind { behind_ms, limit_ms } => {
                Retry::AfterMs(behind_ms.saturating_sub(*limit_ms))
            }
            _ => Retry::Never,
        }
    }
}
