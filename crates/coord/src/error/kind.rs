//! The kinds of failure.

use super::{PoolFull, Retry};
use crate::lease::{Mark, Term};

/// Kind of failure. The fields carry the value and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store did not respond, or responded that it is unavailable. Whether a write happened is
    /// unknown, unless [`is_nothing_done`](super::Error::is_nothing_done).
    #[error("{what} is not available")]
    Unavailable {
        /// The store, or the part of it.
        what: String,
    },
    /// Another member claimed or holds the slot, or the slot was released: stop minting from it.
    #[error(
        "{slot} was passed on, or is another member's: this lease has {held}, the newest is {newest}; claim again"
    )]
    Fenced {
        /// Pool and slot.
        slot: String,
        /// The term of the lease in the request.
        held: Term,
        /// The newest term of the slot.
        newest: Term,
    },
    /// Another call moved the mark, so it is not where the caller left it.
    #[error("the mark of {what} is {found}, not {expected}: another call moved it")]
    MarkMoved {
        /// Pool and slot, or the source.
        what: String,
        /// The mark as the caller left it.
        expected: Mark,
        /// The mark in the store.
        found: Mark,
    },
    /// No slot of the pool can be claimed now.
    #[error("{0}")]
    PoolFull(Box<PoolFull>),
    /// A clock, or a requested mark, lies too far ahead.
    #[error(
        "{ahead_ms} ms ahead of {compared_with}, where {limit_ms} ms are allowed; check the clock"
    )]
    ClockAhead {
        /// Excess, in milliseconds.
        ahead_ms: u64,
        /// Limit, in milliseconds.
        limit_ms: u64,
        /// Clock or value of the comparison.
        compared_with: String,
    },
    /// A clock is behind what has been minted, or behind another clock.
    #[error(
        "{behind_ms} ms behind {compared_with}, where {limit_ms} ms are allowed; check the clock"
    )]
    ClockBehind {
        /// Deficit, in milliseconds.
        behind_ms: u64,
        /// Limit, in milliseconds.
        limit_ms: u64,
        /// Clock or value of the comparison.
        compared_with: String,
    },
    /// Nothing of this name exists.
    #[error("there is no {what}")]
    NotFound {
        /// The missing thing and, where it helps, what to do.
        what: String,
    },
    /// The request disagrees with the stored value.
    #[error("{what}: the store has {stored}, this asks for {wanted}")]
    Conflict {
        /// The subject of the disagreement, and what to do.
        what: String,
        /// The stored value.
        stored: String,
        /// The requested value.
        wanted: String,
    },
    /// The call is invalid.
    #[error("{what}")]
    Invalid {
        /// The wrong value, and a right one.
        what: String,
    },
    /// The store is in an older state than one seen before (store rollback).
    #[error(
        "the store went back: {witness} was {seen} before and is {found} now; was an old copy restored? \
         An operator must recover it (snowmint worker recover; while no server runs, snowmint worker fast-forward)"
    )]
    StoreWentBack {
        /// The evidence that was compared.
        witness: String,
        /// The highest value seen before.
        seen: u64,
        /// The value now.
        found: u64,
    },
    /// The store is not the one used before.
    #[error(
        "the store is {found}, but {witness} belongs to {expected}; if it is to be used in its place, \
         an operator must move it forward (snowmint worker fast-forward)"
    )]
    OtherStore {
        /// The record that remembers the store.
        witness: String,
        /// The identity it remembers.
        expected: String,
        /// The identity of the present store.
        found: String,
    },
    /// A local journal cannot be trusted here.
    #[error("the journal {path} is refused: {reason}; {way_out}")]
    JournalRefused {
        /// The file.
        path: String,
        /// The reason for the rejection.
        reason: String,
        /// The remedy for an operator.
        way_out: String,
    },
    /// Another process holds the lock.
    #[error("{what} is locked by another process")]
    Locked {
        /// The directory or file.
        what: String,
    },
    /// A finite supply is used up for good.
    #[error("{what} is used up: the limit is {limit}")]
    Exhausted {
        /// The supply.
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
    /// Minting has reached the mark, and the store has not moved it yet.
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
        /// The handle.
        what: String,
    },
    /// The source is disabled in the catalog.
    #[error("source {name} is disabled; enable it in the catalog")]
    Disabled {
        /// The source.
        name: String,
    },
    /// Another process is the section owner of this counter section, or owns this source.
    #[error("section {section} is answered by {}; ask there", where_else(address))]
    Elsewhere {
        /// The section.
        section: u16,
        /// The address of that process; empty when it serves no requests.
        address: String,
    },
    /// The request exceeds a limit on how much one call may ask for.
    #[error("{wanted} {what} at once, where {limit} are allowed")]
    TooMany {
        /// The unit that is limited.
        what: String,
        /// The requested count.
        wanted: u64,
        /// The allowed count.
        limit: u64,
    },
    /// Stored data differs from the data that was written.
    #[error("{what} is damaged; restore it, then move it forward (snowmint worker fast-forward)")]
    Corrupt {
        /// The file or row.
        what: String,
    },
    /// The disk or quota under the store is full. Everything acknowledged before is safe.
    #[error("no space left for {what}; nothing acknowledged is lost, free some space")]
    StorageFull {
        /// The file.
        what: String,
    },
    /// This process cannot write to the store.
    #[error("{what} cannot be written; check owner, permissions and mount")]
    Unwritable {
        /// The file or directory.
        what: String,
    },
    /// The store's user lacks a permission for the operation. The source error names the missing
    /// permission, in the store's own words.
    #[error(
        "this user lacks a right in {what}: grant those that docs/stores.md lists, or name another user in the URL"
    )]
    NoRight {
        /// The store.
        what: String,
    },
    /// The store's settings may lose acknowledged writes, so that issued numbers could repeat.
    #[error("{what}")]
    UnsafeStore {
        /// The store, the setting, and the value that it must have.
        what: String,
    },
    /// This build, or this store, does not support the operation.
    #[error("{what}")]
    Unsupported {
        /// The missing support, and what has it.
        what: String,
    },
    /// A bug in this program, or in a store's driver.
    #[error("internal error: {what}; please report it")]
    Internal {
        /// The observation.
        what: String,
    },
}

/// Describes the address of another process for people.
fn where_else(address: &str) -> &str {
    if address.is_empty() { "a process that serves nobody" } else { address }
}

impl ErrorKind {
    /// Returns whether the error means that the store is a different one, is in an older state, or
    /// may lose acknowledged writes.
    pub(crate) const fn doubts_store(&self) -> bool {
        matches!(
            self,
            Self::StoreWentBack { .. } | Self::OtherStore { .. } | Self::UnsafeStore { .. }
        )
    }

    /// Returns a short, stable name for machines, such as `pool_full`.
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

    /// Returns whether a retry helps, unless the code that raised the error knows better.
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
