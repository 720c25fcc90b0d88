//! Leases on slots: terms, marks, and the rules by which a mark may move.
//!
//! The rules are pure functions over one [`SlotRow`]. Every store that can run code in its atomic
//! step calls them; a store that cannot (a script inside a server) follows them line by line.

mod decide;

use std::fmt;

use snowmint_core::UnixMillis;

use crate::error::ErrorKind;
use crate::member::Incarnation;
use crate::pool::Pool;
pub(crate) use decide::leapt;
pub use decide::{ExtendStep, decide_extend, decide_release, forwarded, given_up};

/// The exclusive bound of what has been promised so far: Unix milliseconds for worker slots, a
/// number for segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// Nothing has been promised.
    pub const ZERO: Self = Self(0);
    /// The highest mark that every store can keep: 63 bits.
    pub const MAX: Self = Self(i64::MAX.unsigned_abs());

    /// A mark at `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The mark of a worker slot, as the time that it is.
    #[must_use]
    pub const fn unix_millis(self) -> UnixMillis {
        UnixMillis::new(self.0)
    }
}

/// Checks that every store can keep a mark.
///
/// # Errors
/// `Invalid`.
pub fn check_mark(mark: Mark) -> Result<(), ErrorKind> {
    if mark > Mark::MAX {
        let what = format!("a mark is at most {}, not {mark}", Mark::MAX);
        return Err(ErrorKind::Invalid { what });
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

/// The fencing number of a slot. Every claim and every release raises it by one; only the newest
/// may move the mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(u64);

impl Term {
    /// Before the first claim.
    pub const ZERO: Self = Self(0);

    /// The term with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after. Terms rise by one a claim, so 64 bits do not run out.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// After so many recoveries, those that the store has lost included: further than claims can have gone in any state
    /// that was lost, 2^32 for each, and once further in any case.
    #[must_use]
    pub fn leap(self, recoveries: u64) -> Self {
        let more = recoveries.saturating_sub(self.leaps()).clamp(1, u64::from(u32::MAX));
        Self(self.0.saturating_add(more << 32))
    }

    /// How often it has leapt.
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
    /// The pool's name.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// Exactly one above the slot's term before the claim. Whoever knows the term before (from a
    /// journal) therefore knows whether anybody held the slot in between.
    pub term: Term,
    /// Who holds it, where that is known.
    pub holder: Option<Incarnation>,
    /// Everything below was promised to somebody before.
    pub floor: Mark,
    /// Everything from here on is promised to nobody yet.
    pub mark: Mark,
}

impl Lease {
    /// How to give it up when nothing was minted from it.
    #[must_use]
    pub fn unused(&self) -> Release {
        let Self { pool, slot, term, holder, mark, .. } = self.clone();
        Release { pool, slot, term, holder, mark, from: None }
    }
}

/// A request to claim slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Where from.
    pub pool: Pool,
    /// Who claims; must have joined.
    pub member: Incarnation,
    /// Its label, kept with the slot for [`Wish::LastOfOwner`].
    pub owner: String,
    /// How many groups of slots, at least one. Fewer come back when fewer are free.
    pub count: u32,
    /// Which.
    pub wish: Wish,
    /// A member proven dead by something stronger than its presence, such as the lock of the data
    /// directory that it had: its slots count as free.
    pub supersedes: Option<Incarnation>,
    /// A slot with a higher mark is not taken. For worker slots: the claimer's time, so that it
    /// can mint at once.
    pub mark_at_most: Mark,
    /// A random number. A repeat of a claim with the same number, by the same member, answers the
    /// leases of the first.
    pub request: u64,
}

/// Which slot a claim would like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// None in particular.
    Any,
    /// The one that this owner had last, if it is free and its mark allows; else any.
    LastOfOwner,
    /// This group (in a pool of single slots: this slot) and no other.
    Exactly(u64),
}

/// A request to move the mark of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extend {
    /// The pool's name.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// The lease's term.
    pub term: Term,
    /// Who must hold it, so that nobody speaks for another; none: whoever knows the term.
    pub holder: Option<Incarnation>,
    /// Where the holder left the mark.
    pub from: Mark,
    /// Where it shall be; above `from`, at most [`Mark::MAX`].
    pub to: Mark,
    /// A random number by which a repeat of this very request is recognised.
    pub request: u64,
    /// Refuse a `to` beyond the store's time (or, where the store has no clock, the caller's) plus
    /// this many milliseconds. None for marks that are no times.
    pub ahead_max_ms: Option<u64>,
}

impl Extend {
    /// From when on the mark is not too far ahead, by the clock that the store goes by.
    #[must_use]
    pub fn allowed_from(&self) -> UnixMillis {
        let at = |limit_ms| self.to.unix_millis().get().saturating_sub(limit_ms);
        UnixMillis::new(self.ahead_max_ms.map_or(0, at))
    }
}

/// A moved mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Where the mark is now.
    pub mark: Mark,
    /// The version of the namespace's catalog. Read the catalog again when it has risen.
    pub catalog_version: u64,
    /// [`StoreIdentity::writes`](crate::StoreIdentity::writes) after this call.
    pub writes: u64,
}

/// What the refusal of an extend says about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotExtended {
    /// Somebody else has the slot, or may have it: nothing may be minted from it any more.
    Lost,
    /// Nothing was done: to be asked anew, for what is right by then.
    Refused,
    /// Whether it was done is not known, and only the same request again can tell. What was granted before holds
    /// as long as it held before.
    Unknown,
}

impl NotExtended {
    pub(crate) const fn by(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::Fenced { .. } | ErrorKind::MarkMoved { .. } | ErrorKind::NotFound { .. } => {
                Self::Lost
            }
            kind if kind.doubts_store() => Self::Lost,
            ErrorKind::ClockAhead { .. } => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

/// A request to give a slot up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The pool's name.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// The lease's term.
    pub term: Term,
    /// Who must hold it, so that nobody speaks for another; none: whoever knows the term.
    pub holder: Option<Incarnation>,
    /// The end of everything taken: at least the lease's floor, at most its mark. What lies between
    /// here and the mark goes to the next holder.
    pub mark: Mark,
    /// Where the caller saw the mark, if it cannot tell by the term whether the slot was lent anew since;
    /// none: it may have moved.
    pub from: Option<Mark>,
}

/// All that a store keeps about one slot that was ever claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRow {
    /// The slot.
    pub slot: u64,
    /// The newest term.
    pub term: Term,
    /// The mark when the newest lease began. A release never lowers the mark below it.
    pub floor: Mark,
    /// The mark.
    pub mark: Mark,
    /// Who holds it; none once released.
    pub holder: Option<Incarnation>,
    /// The owner label of the last claim.
    pub owner: String,
    /// The request number of the last claim.
    pub claim_request: u64,
    /// The request number of the last extend of this term; 0 before the first.
    pub extend_request: u64,
    /// When it was last claimed.
    pub held_since: UnixMillis,
    /// When it was last released; meaningless while held.
    pub given_up_at: UnixMillis,
}

/// The refusal of a verb on a slot that has no row.
#[must_use]
pub fn never_claimed(pool: &str, slot: u64) -> ErrorKind {
    let slot = slot_label(pool, slot);
    ErrorKind::NotFound { what: format!("lease on {slot}: never claimed, or long given up; claim") }
}

/// Names a slot in messages.
#[must_use]
pub fn slot_label(pool: &str, slot: u64) -> String {
    format!("slot {slot} of pool {pool}")
}
