//! Leases on slots: terms, marks, and the rules by which a mark may move.
//!
//! The rules are pure functions over one [`SlotRow`]. Every store that can run code in its atomic
//! step calls them; a store that cannot (a script inside a server) follows them line by line.

mod decide;

use std::fmt;

use snowmint_core::UnixMillis;

use crate::error::{Error, ErrorKind, Result};
use crate::member::Incarnation;
use crate::pool::Pool;
pub(crate) use decide::leapt;
pub use decide::{ExtendStep, decide_extend, decide_release, fast_forwarded, given_up};

/// Exclusive bound of everything promised so far: Unix milliseconds for worker slots, a number for
/// segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// The mark before any promise.
    pub const ZERO: Self = Self(0);
    /// The highest mark that every store can keep: 63 bits.
    pub const MAX: Self = Self(i64::MAX.unsigned_abs());

    /// Creates a mark at `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the value.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the mark of a worker slot as a time.
    #[must_use]
    pub const fn unix_millis(self) -> UnixMillis {
        UnixMillis::new(self.0)
    }
}

/// Checks that every store can keep a mark.
///
/// # Errors
/// `Invalid` for a mark above [`Mark::MAX`].
pub fn check_mark(mark: Mark) -> Result<()> {
    if mark > Mark::MAX {
        let message = format!("mark {mark} is above the maximum {}; correct it", Mark::MAX);
        return Err(Error::invalid(message));
    }
    Ok(())
}

impl From<UnixMillis> for Mark {
    fn from(time: UnixMillis) -> Self {
        Self(time.get())
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Fencing number of a slot. Every claim and every release raises it by one; only the newest term
/// may move the mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(u64);

impl Term {
    /// The term before the first claim.
    pub const ZERO: Self = Self(0);

    /// Creates the term with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the following term. Each claim raises the term by one, so 64 bits do not run out.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the term after `recoveries` recoveries, lost ones included. It rises further than
    /// claims can have raised it in any lost state: by 2^32 for each recovery, and by one such step
    /// in any case.
    #[must_use]
    pub fn leap(self, recoveries: u64) -> Self {
        let more = recoveries.saturating_sub(self.leaps()).clamp(1, u64::from(u32::MAX));
        Self(self.0.saturating_add(more << 32))
    }

    /// Returns the number of such steps.
    pub(crate) const fn leaps(self) -> u64 {
        self.0 >> 32
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {}", self.0)
    }
}

/// A member's hold on a slot. The window is `[floor, mark)`; right after a claim it is empty, and
/// the first extend opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Name of the pool.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// Term of the lease, exactly one above the slot's term before the claim. A member that knows
    /// the earlier term (from a journal) therefore knows whether the slot was held in between.
    pub term: Term,
    /// Holder, where it is known.
    pub holder: Option<Incarnation>,
    /// Floor: everything below was promised before.
    pub floor: Mark,
    /// Mark: everything at or above it is not promised yet.
    pub mark: Mark,
}

impl Lease {
    /// Returns the release of a lease from which nothing was minted.
    #[must_use]
    pub fn unused(&self) -> Release {
        let Self { pool, slot, term, holder, mark, .. } = self.clone();
        Release { pool, slot, term, holder, mark, from: None }
    }
}

/// A request to claim slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Pool of the slots.
    pub pool: Pool,
    /// Member that claims; it must have joined.
    pub member: Incarnation,
    /// Label of the member, kept with the slot for [`Preference::LastOfOwner`].
    pub owner: String,
    /// Number of groups of slots, at least one. The result has fewer when fewer are free.
    pub count: u32,
    /// Slot preference.
    pub preference: Preference,
    /// A member proven dead by stronger evidence than its presence, such as the lock of its data
    /// directory: its slots count as free.
    pub supersedes: Option<Incarnation>,
    /// Highest acceptable mark of a slot. For worker slots this is the claimer's time, so that it
    /// can mint at once.
    pub mark_at_most: Mark,
    /// A random number, not 0. A repeated claim with the same number, by the same member, returns
    /// the leases of the first.
    pub request: u64,
}

/// Slot preference of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Any slot.
    Any,
    /// The slot that this owner had last, if it is free and its mark allows it; otherwise any.
    LastOfOwner,
    /// This group (in a pool of single slots: this slot) and no other.
    Exactly(u64),
    /// The same group, which a configuration names. It outranks tokens: unless the claimer is an
    /// embedded client with a token, the claim takes the group from a live one. The new term fences
    /// the former holder, and the floor lies at the mark up to which it may have minted.
    Configured(u64),
}

impl Preference {
    /// Returns the only group that a claim accepts, if it names one.
    #[must_use]
    pub const fn only(self) -> Option<u64> {
        match self {
            Self::Any | Self::LastOfOwner => None,
            Self::Exactly(group) | Self::Configured(group) => Some(group),
        }
    }
}

impl ClaimRequest {
    /// Returns whether the claim takes slots from this holder even while it is live.
    pub(crate) fn outranks(&self, holder: Incarnation) -> bool {
        let is_configured = matches!(self.preference, Preference::Configured(_));
        self.supersedes == Some(holder)
            || is_configured && self.member.token().is_none() && holder.token().is_some()
    }
}

/// A request to move the mark of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extend {
    /// Name of the pool.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// Term of the lease.
    pub term: Term,
    /// Member that must hold the slot, so that no member acts for another; `None` accepts any
    /// caller that knows the term.
    pub holder: Option<Incarnation>,
    /// Mark as the holder left it.
    pub from: Mark,
    /// New mark; above `from`, at most [`Mark::MAX`].
    pub to: Mark,
    /// Random number that identifies a repeat of this request.
    pub request: u64,
    /// Maximum distance, in milliseconds, of `to` ahead of the store's time (or of the caller's
    /// time, where the store has no clock). `None` for marks that are not times.
    pub ahead_max_ms: Option<u64>,
}

impl Extend {
    /// Returns the earliest time, by the clock that the store uses, at which the mark is not too
    /// far ahead.
    #[must_use]
    pub fn allowed_from(&self) -> UnixMillis {
        let at = |limit_ms| self.to.unix_millis().get().saturating_sub(limit_ms);
        UnixMillis::new(self.ahead_max_ms.map_or(0, at))
    }
}

/// A moved mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Present mark.
    pub mark: Mark,
    /// Version of the namespace's catalog. The caller reads the catalog again when it has risen.
    pub catalog_version: u64,
    /// [`StoreIdentity::writes`](crate::StoreIdentity::writes) after this call.
    pub writes: u64,
}

/// Meaning of a failed extend for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotExtended {
    /// Another member has the slot, or may have it: minting from it must stop.
    Lost,
    /// Nothing was done: send a new request with values that are right by then.
    Refused,
    /// The outcome is unknown, and only the same request again can tell. Earlier grants hold as
    /// before.
    Unknown,
}

impl NotExtended {
    pub(crate) const fn by(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::Fenced | ErrorKind::MarkMoved { .. } | ErrorKind::NotFound => Self::Lost,
            kind if kind.doubts_store() => Self::Lost,
            ErrorKind::ClockAhead { .. } => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

/// A request to release a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Name of the pool.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// Term of the lease.
    pub term: Term,
    /// Member that must hold the slot, so that no member acts for another; `None` accepts any
    /// caller that knows the term.
    pub holder: Option<Incarnation>,
    /// End of everything used: at least the lease's floor, at most its mark. The next holder gets
    /// the rest up to the mark.
    pub mark: Mark,
    /// Mark as the caller saw it, if the term cannot show whether the slot was leased again since;
    /// `None` when it may have moved.
    pub from: Option<Mark>,
}

/// All data that a store keeps about a slot that was ever claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRow {
    /// The slot.
    pub slot: u64,
    /// Newest term.
    pub term: Term,
    /// Mark when the newest lease began. A release never lowers the mark below it.
    pub floor: Mark,
    /// The mark.
    pub mark: Mark,
    /// Holder; `None` once released.
    pub holder: Option<Incarnation>,
    /// Owner label of the last claim.
    pub owner: String,
    /// Request number of the last claim; 0 for a slot that was excluded since.
    pub claim_request: u64,
    /// Request number of the last extend of this term; 0 before the first.
    pub extend_request: u64,
    /// Time of the last claim.
    pub held_since: UnixMillis,
    /// Time of the last release; meaningless while held.
    pub given_up_at: UnixMillis,
}

impl SlotRow {
    /// Returns whether an operator excluded the slot, and nothing has claimed it since. Its mark
    /// then guards IDs of another system. A claim has a request number, so no holder can leave a
    /// row like this, except with its floor at the end.
    #[must_use]
    pub fn is_kept_away(&self) -> bool {
        let is_unclaimed = self.holder.is_none() && self.claim_request == 0;
        self.floor == Mark::MAX || is_unclaimed && self.floor == self.mark
    }
}

/// Returns the error of a verb on a slot that has no row.
#[must_use]
pub fn never_claimed(pool: &str, slot: u64) -> Error {
    let slot = slot_label(pool, slot);
    Error::not_found(format!(
        "lease on {slot} does not exist: never claimed or long released; claim it"
    ))
}

/// Formats a slot for messages.
#[must_use]
pub fn slot_label(pool: &str, slot: u64) -> String {
    format!("slot {slot} of pool {pool:?}")
}
