//! Leases on slots: terms, marks, and the rules by which a mark may move.
//!
//! The rules are pure functions over one [`SlotRow`]. Every store that can run code in its atomic
//! step calls them; a store that cannot (a script inside a server) follows them line by line.

mod decide;

use snowmint_core::{Rfc3339, UnixMillis};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{Incarnation, Mark, Term};
use crate::model::pool::counts;
pub use decide::{ExtendStep, decide_extend, decide_release, fast_forwarded, given_up};

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

/// Returns the row of a slot after it was granted to a member, with an empty window above the mark
/// that it had before.
pub(crate) fn granted(
    slot: u64,
    (term, mark): (Term, Mark),
    member: Incarnation,
    owner: String,
    request: u64,
    now: UnixMillis,
) -> SlotRow {
    SlotRow {
        slot,
        term: term.next(),
        floor: mark,
        mark,
        holder: Some(member),
        owner,
        claim_request: request,
        extend_request: 0,
        held_since: now,
        given_up_at: UnixMillis::ZERO,
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

/// Writes a mark of a slot: a time, or a number of counters.
pub(crate) fn mark_label(pool: &str, slot: u64, mark: Mark) -> String {
    match mark {
        mark if counts(pool, slot) => mark.to_string(),
        Mark::MAX => "the end of time".to_owned(),
        mark => Rfc3339(mark.unix_millis()).to_string(),
    }
}
