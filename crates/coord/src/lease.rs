//! Leases on slots: terms, marks, and the rules by which a mark may move.
//!
//! The rules are pure functions over one [`SlotRow`]. Every store that can run code in its atomic
//! step calls them; a store that cannot (a script inside a server) follows them line by line.

use std::fmt;

use snowmint_core::UnixMillis;

use crate::error::ErrorKind;
use crate::member::Incarnation;
use crate::pool::Pool;
use crate::sources::counts;

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

    /// Further than claims can have gone in a state that was lost: 2^32.
    #[must_use]
    pub const fn leap(self) -> Self {
        Self(self.0.saturating_add(1 << 32))
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
            ErrorKind::Fenced { .. }
            | ErrorKind::MarkMoved { .. }
            | ErrorKind::NotFound { .. }
            | ErrorKind::StoreWentBack { .. }
            | ErrorKind::OtherStore { .. } => Self::Lost,
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
    /// Where the caller saw the mark, for who cannot tell by the term whether what he gives up was lent anew
    /// since; none: it may have moved.
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

/// What an extend may do to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendStep {
    /// Set mark and request number.
    Move,
    /// The very same request was done before: answer it again, change nothing.
    Repeat,
}

/// Names a slot in messages.
#[must_use]
pub fn slot_label(pool: &str, slot: u64) -> String {
    format!("slot {slot} of pool {pool}")
}

/// Decides an extend, given the slot's row and the time of the clock that the store goes by.
///
/// # Errors
/// `Fenced`, `MarkMoved`, `ClockAhead`, `Invalid`; `StoreWentBack` when the lease is newer than the
/// store, which can only be an old copy.
pub fn decide_extend(
    row: &SlotRow,
    item: &Extend,
    now: UnixMillis,
) -> Result<ExtendStep, ErrorKind> {
    check_held(row, &item.pool, item.term, item.holder)?;
    if item.to <= item.from || item.to > Mark::MAX {
        return Err(ErrorKind::Invalid {
            what: format!(
                "an extend moves the mark forward, to at most {}: not from {} to {}",
                Mark::MAX,
                item.from,
                item.to
            ),
        });
    }
    if row.mark == item.to && row.extend_request == item.request && item.request != 0 {
        return Ok(ExtendStep::Repeat);
    }
    if row.mark != item.from {
        return Err(mark_moved(row, &item.pool, item.from));
    }
    if let Some(limit_ms) = item.ahead_max_ms
        && now < item.allowed_from()
    {
        return Err(ErrorKind::ClockAhead {
            ahead_ms: item.to.unix_millis().since(now),
            limit_ms,
            compared_with: "the store's time".into(),
        });
    }
    Ok(ExtendStep::Move)
}

/// Decides a release, given the slot's row: the row after it, or none when this very release was
/// done before.
///
/// # Errors
/// `Fenced`, `StoreWentBack` as for [`decide_extend`]; `MarkMoved` when the mark is not where it was seen;
/// `Invalid` when the new one is not within the lease.
pub fn decide_release(
    row: &SlotRow,
    release: &Release,
    now: UnixMillis,
) -> Result<Option<SlotRow>, ErrorKind> {
    if row.holder.is_none() && row.term == release.term.next() && row.mark == release.mark {
        return Ok(None);
    }
    check_held(row, &release.pool, release.term, release.holder)?;
    if let Some(seen) = release.from
        && seen != row.mark
    {
        return Err(mark_moved(row, &release.pool, seen));
    }
    if release.mark < row.floor || release.mark > row.mark {
        return Err(ErrorKind::Invalid {
            what: format!(
                "{} can be released at a mark from its floor {} to its mark {}, not at {}",
                slot_label(&release.pool, release.slot),
                row.floor,
                row.mark,
                release.mark
            ),
        });
    }
    Ok(Some(given_up(row, release.mark, now)))
}

/// The row once nobody holds the slot any more.
#[must_use]
pub fn given_up(row: &SlotRow, mark: Mark, now: UnixMillis) -> SlotRow {
    SlotRow { term: row.term.next(), mark, holder: None, given_up_at: now, ..row.clone() }
}

/// The row after an operator moved the namespace forward: no lower mark than `mark`, and a term
/// that no lease of a lost state can have. Marks of workers are times, which say by themselves how far a lost
/// state can have come; those of counters are numbers, and go on by more than it can have counted.
#[must_use]
pub fn forwarded(pool: &str, row: &SlotRow, mark: Mark) -> SlotRow {
    let mark = row.mark.max(mark);
    let mark = if counts(pool, row.slot) { mark.max(leapt(row.mark)) } else { mark };
    SlotRow {
        term: row.term.leap(),
        floor: mark,
        mark,
        holder: None,
        given_up_at: row.given_up_at.max(row.held_since),
        ..row.clone()
    }
}

/// Further than counters can have gone in a state that was lost: 2^40. Never the end of all numbers.
fn leapt(mark: Mark) -> Mark {
    let last = Mark::new(Mark::MAX.get() - 1);
    Mark::new(mark.get().saturating_add(1 << 40)).min(last).max(mark)
}

fn mark_moved(row: &SlotRow, pool: &str, expected: Mark) -> ErrorKind {
    ErrorKind::MarkMoved { what: slot_label(pool, row.slot), expected, found: row.mark }
}

fn check_held(
    row: &SlotRow,
    pool: &str,
    held: Term,
    holder: Option<Incarnation>,
) -> Result<(), ErrorKind> {
    if held > row.term {
        return Err(ErrorKind::StoreWentBack {
            witness: format!("the term of {}", slot_label(pool, row.slot)),
            seen: held.get(),
            found: row.term.get(),
        });
    }
    // A released slot keeps no holder, and its term was raised by the release.
    let is_anothers = holder.is_some() && holder != row.holder;
    if held < row.term || is_anothers {
        return Err(ErrorKind::Fenced { slot: slot_label(pool, row.slot), held, newest: row.term });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> SlotRow {
        SlotRow {
            slot: 3,
            term: Term::new(5),
            floor: Mark::new(100),
            mark: Mark::new(200),
            holder: Some(Incarnation::new(1)),
            owner: "orders".into(),
            claim_request: 7,
            extend_request: 9,
            held_since: UnixMillis::new(90),
            given_up_at: UnixMillis::ZERO,
        }
    }

    fn extend(term: u64, from: u64, to: u64, request: u64) -> Extend {
        Extend {
            pool: "workers-10".into(),
            slot: 3,
            term: Term::new(term),
            holder: Some(Incarnation::new(1)),
            from: Mark::new(from),
            to: Mark::new(to),
            request,
            ahead_max_ms: Some(50),
        }
    }

    fn decide(item: &Extend) -> Result<ExtendStep, &'static str> {
        decide_extend(&row(), item, UnixMillis::new(210)).map_err(|kind| kind.code())
    }

    #[test]
    fn only_the_newest_term_moves_the_mark_from_exactly_where_it_is() {
        assert_eq!(decide(&extend(5, 200, 250, 11)), Ok(ExtendStep::Move));
        assert_eq!(decide(&extend(4, 200, 250, 11)), Err("fenced"));
        assert_eq!(decide(&extend(6, 200, 250, 11)), Err("store_went_back"));
        assert_eq!(decide(&extend(5, 199, 250, 11)), Err("mark_moved"));
        assert_eq!(decide(&extend(5, 201, 250, 11)), Err("mark_moved"));
        assert_eq!(decide(&extend(5, 200, 200, 11)), Err("invalid"));
        assert_eq!(decide(&extend(5, 200, u64::MAX, 11)), Err("invalid"));
    }

    #[test]
    fn a_repeat_is_known_by_request_and_target() {
        assert_eq!(decide(&extend(5, 150, 200, 9)), Ok(ExtendStep::Repeat));
        assert_eq!(decide(&extend(5, 150, 200, 8)), Err("mark_moved"));
        assert_eq!(decide(&extend(5, 150, 199, 9)), Err("mark_moved"));
        assert_eq!(decide(&extend(4, 150, 200, 9)), Err("fenced"));
    }

    #[test]
    fn nobody_speaks_for_another_holder() {
        let now = UnixMillis::new(300);
        let given_up = given_up(&row(), Mark::new(150), now);
        let said = |holder| Extend { holder, ..extend(5, 200, 210, 11) };
        let said_of = |row: &SlotRow, holder| {
            let release = Release {
                pool: "p".into(),
                slot: 3,
                term: row.term,
                holder,
                mark: row.mark,
                from: None,
            };
            decide_release(row, &release, now).map(drop).map_err(|kind| kind.code())
        };
        for (holder, wanted) in [(None, Ok(())), (Some(1), Ok(())), (Some(2), Err("fenced"))] {
            let holder = holder.map(Incarnation::new);
            assert_eq!(decide(&said(holder)).map(drop), wanted);
            assert_eq!(said_of(&row(), holder), wanted);
            // Nobody's is nobody's.
            let wanted = holder.map_or(Ok(()), |_| Err("fenced"));
            assert_eq!(said_of(&given_up, holder), wanted);
        }
    }

    #[test]
    fn the_limit_ahead_is_inclusive() {
        assert_eq!(decide(&extend(5, 200, 260, 11)), Ok(ExtendStep::Move));
        assert_eq!(decide(&extend(5, 200, 261, 11)), Err("clock_ahead"));
        let unlimited = Extend { ahead_max_ms: None, ..extend(5, 200, 1 << 62, 11) };
        assert_eq!(decide(&unlimited), Ok(ExtendStep::Move));
    }

    #[test]
    fn a_release_stays_within_the_lease_and_repeats() {
        let now = UnixMillis::new(300);
        let release = |term, mark| Release {
            pool: "p".into(),
            slot: 3,
            term: Term::new(term),
            holder: Some(Incarnation::new(1)),
            mark: Mark::new(mark),
            from: None,
        };
        for mark in [99, 201] {
            let refused = decide_release(&row(), &release(5, mark), now).unwrap_err();
            assert_eq!(refused.code(), "invalid");
        }
        assert_eq!(decide_release(&row(), &release(4, 150), now).unwrap_err().code(), "fenced");
        let after = decide_release(&row(), &release(5, 100), now).unwrap().unwrap();
        assert_eq!((after.term, after.mark, after.holder), (Term::new(6), Mark::new(100), None));
        assert_eq!(after.given_up_at, now);
        assert_eq!(decide_release(&after, &release(5, 100), now), Ok(None));
        assert_eq!(decide_release(&after, &release(5, 101), now).unwrap_err().code(), "fenced");
        for (from, wanted) in [(199, "mark_moved"), (201, "mark_moved"), (200, "released")] {
            let release = Release { from: Some(Mark::new(from)), ..release(5, 150) };
            let decided = decide_release(&row(), &release, now);
            assert_eq!(decided.as_ref().map_or_else(ErrorKind::code, |_| "released"), wanted);
        }
    }
}
