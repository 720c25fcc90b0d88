//! Decisions about a slot's row: for an extend, a release, or an operator's step.

use std::cmp::Ordering;

use snowmint_core::UnixMillis;

use super::{Extend, Release, SlotRow, mark_label, slot_label};
use crate::error::{Error, Result};
use crate::ids::{Incarnation, Mark, Term};
use crate::model::pool::counts;

/// Effect of an extend on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendStep {
    /// Set mark and request number.
    Move,
    /// The same request was done before: return its result again, change nothing.
    Repeat,
}

/// Decides an extend from the slot's row and the time of the clock that the store uses.
///
/// # Errors
/// `Fenced`, `MarkMoved`, `ClockAhead`, `Invalid`; `StoreRolledBack` when the lease or its mark is
/// newer than the store, which must then be an old copy: under one term marks only rise.
pub fn decide_extend(row: &SlotRow, item: &Extend, now: UnixMillis) -> Result<ExtendStep> {
    check_held(row, &item.pool, item.term, item.holder)?;
    if item.to <= item.from || item.to > Mark::MAX {
        let label = |mark| mark_label(&item.pool, item.slot, mark);
        return Err(Error::invalid(format!(
            "extend from mark {} to {} is not forward or exceeds {}; correct the request",
            label(item.from),
            label(item.to),
            label(Mark::MAX)
        )));
    }
    if row.mark == item.to && row.extend_request == item.request && item.request != 0 {
        return Ok(ExtendStep::Repeat);
    }
    check_mark_seen(row, &item.pool, item.from)?;
    if let Some(limit_ms) = item.ahead_max_ms
        && now < item.allowed_from()
    {
        let ahead_ms = item.to.unix_millis().since(now);
        let message = format!(
            "mark to extend to is {ahead_ms} ms ahead of the store's time, limit {limit_ms} ms; \
             check the clock"
        );
        return Err(Error::clock_ahead(ahead_ms, limit_ms, message));
    }
    Ok(ExtendStep::Move)
}

/// Decides a release from the slot's row; returns the row after it, or `None` when this same
/// release was done before.
///
/// # Errors
/// `Fenced` and `StoreRolledBack` as for [`decide_extend`]; `MarkMoved` when the mark is above where
/// the caller saw it; `Invalid` when the new mark is outside the lease.
pub fn decide_release(
    row: &SlotRow,
    release: &Release,
    now: UnixMillis,
) -> Result<Option<SlotRow>> {
    if row.holder.is_none() && row.term == release.term.next() && row.mark == release.mark {
        return Ok(None);
    }
    check_held(row, &release.pool, release.term, release.holder)?;
    if let Some(seen) = release.from {
        check_mark_seen(row, &release.pool, seen)?;
    }
    if release.mark < row.floor || release.mark > row.mark {
        let label = |mark| mark_label(&release.pool, release.slot, mark);
        return Err(Error::invalid(format!(
            "{} cannot be released at mark {}, allowed are {} to {}; correct the request",
            slot_label(&release.pool, release.slot),
            label(release.mark),
            label(row.floor),
            label(row.mark)
        )));
    }
    Ok(Some(given_up(row, release.mark, now)))
}

/// Returns the row after its holder gave the slot up.
#[must_use]
pub fn given_up(row: &SlotRow, mark: Mark, now: UnixMillis) -> SlotRow {
    SlotRow { term: row.term.next(), mark, holder: None, given_up_at: now, ..row.clone() }
}

/// Returns the row after an operator moved the namespace forward. Its mark is at least `mark`. Its
/// term is one that no lease of a lost state can have, raised as far as the term of `ground`. Marks
/// of workers are times, which bound how far a lost state can have come. Marks of counters are
/// numbers, and rise by more than a lost state can have counted.
#[must_use]
pub fn fast_forwarded(pool: &str, row: &SlotRow, mark: Mark, ground: Term) -> SlotRow {
    let term = row.term.leap(ground.leaps());
    let leaps = term.leaps().saturating_sub(row.term.leaps());
    let mark = if counts(pool, row.slot) { row.mark.leapt(leaps) } else { row.mark.max(mark) };
    SlotRow {
        term,
        floor: mark,
        mark,
        holder: None,
        given_up_at: row.given_up_at.max(row.held_since),
        ..row.clone()
    }
}

/// Checks the mark of a lease against what its holder saw.
fn check_mark_seen(row: &SlotRow, pool: &str, expected: Mark) -> Result<()> {
    match row.mark.cmp(&expected) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(mark_moved(row, pool, expected)),
        Ordering::Less => {
            let evidence = format!("mark of {}", slot_label(pool, row.slot));
            Err(Error::contradiction(evidence, expected.get(), row.mark.get()))
        }
    }
}

fn mark_moved(row: &SlotRow, pool: &str, expected: Mark) -> Error {
    let slot = slot_label(pool, row.slot);
    let label = |mark| mark_label(pool, row.slot, mark);
    let message = format!(
        "mark of {slot} is {}, expected {}; another call moved it, claim again",
        label(row.mark),
        label(expected)
    );
    Error::mark_moved(expected, row.mark, message)
}

fn check_held(row: &SlotRow, pool: &str, held: Term, holder: Option<Incarnation>) -> Result<()> {
    let (held, newest) = (held.get(), row.term.get());
    if held > newest {
        let evidence = format!("term of {}", slot_label(pool, row.slot));
        return Err(Error::contradiction(evidence, held, newest));
    }
    if held < newest {
        return Err(Error::fenced(format!(
            "lease on {} lost: term {held}, newest {newest}; claim it again",
            slot_label(pool, row.slot)
        )));
    }
    // A released slot has no holder, and the release raised its term.
    if holder.is_some() && holder != row.holder {
        return Err(Error::fenced(format!(
            "lease on {} belongs to another member; claim it again",
            slot_label(pool, row.slot)
        )));
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
        decide_extend(&row(), item, UnixMillis::new(210)).map_err(|error| error.kind().code())
    }

    #[test]
    fn only_the_newest_term_moves_the_mark_from_exactly_where_it_is() {
        assert_eq!(decide(&extend(5, 200, 250, 11)), Ok(ExtendStep::Move));
        assert_eq!(decide(&extend(4, 200, 250, 11)), Err("fenced"));
        assert_eq!(decide(&extend(6, 200, 250, 11)), Err("store_rolled_back"));
        assert_eq!(decide(&extend(5, 199, 250, 11)), Err("mark_moved"));
        assert_eq!(decide(&extend(5, 201, 250, 11)), Err("store_rolled_back"));
        assert_eq!(decide(&extend(5, 200, 200, 11)), Err("invalid"));
        assert_eq!(decide(&extend(5, 200, u64::MAX, 11)), Err("invalid"));
    }

    /// Operators compare it with clocks, and `--mark` takes a time.
    #[test]
    fn mark_in_a_message_is_a_time_except_of_counters() {
        let message = |pool: &str, from| {
            let row = SlotRow { mark: Mark::new(1_795_952_102_485), ..row() };
            let item = Extend { pool: pool.into(), ..extend(5, from, u64::MAX >> 1, 11) };
            decide_extend(&row, &item, UnixMillis::new(210)).unwrap_err().message().into_owned()
        };
        let moved = message("workers-10", 1_795_952_102_484);
        assert!(moved.contains(" is 2026-11-29T11:35:02.485Z, expected 2026-"), "{moved}");
        let counters = message("sections", 1_795_952_102_484);
        assert!(counters.contains(" is 1795952102485, expected 1795952102484;"), "{counters}");
        let back = message("workers-10", u64::MAX >> 1);
        assert!(back.contains(" mark the end of time to the end of time is "), "{back}");
        let release = Release {
            pool: "workers-10".into(),
            slot: 3,
            term: Term::new(5),
            holder: Some(Incarnation::new(1)),
            from: None,
            mark: Mark::new(1_795_952_102_485),
        };
        let outside = decide_release(&row(), &release, UnixMillis::new(210)).unwrap_err();
        assert!(outside.message().contains(" at mark 2026-11-29T11:35:02.485Z, "), "{outside}");
    }

    #[test]
    fn repeated_extend_is_known_by_request_and_target() {
        assert_eq!(decide(&extend(5, 150, 200, 9)), Ok(ExtendStep::Repeat));
        assert_eq!(decide(&extend(5, 150, 200, 8)), Err("mark_moved"));
        assert_eq!(decide(&extend(5, 150, 199, 9)), Err("mark_moved"));
        assert_eq!(decide(&extend(4, 150, 200, 9)), Err("fenced"));
        // Before the first extend of a term, the row has no request.
        let fresh = SlotRow { extend_request: 0, ..row() };
        let decided = decide_extend(&fresh, &extend(5, 150, 200, 0), UnixMillis::new(210));
        assert_eq!(decided.unwrap_err().kind().code(), "mark_moved");
    }

    #[test]
    fn lease_of_another_holder_is_rejected() {
        let now = UnixMillis::new(300);
        let given_up = given_up(&row(), Mark::new(150), now);
        let extend_as = |holder| Extend { holder, ..extend(5, 200, 210, 11) };
        let release_as = |row: &SlotRow, holder| {
            let release = Release {
                pool: "p".into(),
                slot: 3,
                term: row.term,
                holder,
                mark: row.mark,
                from: None,
            };
            decide_release(row, &release, now).map(drop).map_err(|error| error.kind().code())
        };
        for (holder, wanted) in [(None, Ok(())), (Some(1), Ok(())), (Some(2), Err("fenced"))] {
            let holder = holder.map(Incarnation::new);
            assert_eq!(decide(&extend_as(holder)).map(drop), wanted);
            assert_eq!(release_as(&row(), holder), wanted);
            // After the release no member holds the slot.
            let wanted = holder.map_or(Ok(()), |_| Err("fenced"));
            assert_eq!(release_as(&given_up, holder), wanted);
        }
    }

    #[test]
    fn the_limit_ahead_is_inclusive() {
        assert_eq!(decide(&extend(5, 200, 260, 11)), Ok(ExtendStep::Move));
        assert_eq!(decide(&extend(5, 200, 261, 11)), Err("clock_ahead"));
        let unlimited = Extend { ahead_max_ms: None, ..extend(5, 200, 1 << 62, 11) };
        assert_eq!(decide(&unlimited), Ok(ExtendStep::Move));
    }

    /// The lost state may have used the slot later than this row shows.
    #[test]
    fn a_fast_forward_ends_the_lease_at_its_mark() {
        let after = fast_forwarded("workers-10", &row(), Mark::new(900), Term::new(3 << 32));
        assert_eq!((after.floor, after.mark, after.holder), (Mark::new(900), Mark::new(900), None));
        assert_eq!(after.term, Term::new((3 << 32) + 5));
        assert_eq!(after.given_up_at, row().held_since, "it was held");
        // A counter's section moves as often as the defaults did.
        let section = fast_forwarded("sections", &row(), Mark::new(900), Term::new(3 << 32));
        assert_eq!(section.mark, Mark::new((3 << 40) + 200));
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
            assert_eq!(refused.kind().code(), "invalid");
        }
        let code = |row: &SlotRow, release: &Release| {
            decide_release(row, release, now).unwrap_err().kind().code()
        };
        assert_eq!(code(&row(), &release(4, 150)), "fenced");
        let after = decide_release(&row(), &release(5, 100), now).unwrap().unwrap();
        assert_eq!((after.term, after.mark, after.holder), (Term::new(6), Mark::new(100), None));
        assert_eq!(after.given_up_at, now);
        assert_eq!(decide_release(&after, &release(5, 100), now).unwrap(), None);
        assert_eq!(code(&after, &release(5, 101)), "fenced");
        assert_eq!(code(&after, &release(4, 100)), "fenced");
        for (from, wanted) in [(199, "mark_moved"), (201, "store_rolled_back"), (200, "released")] {
            let release = Release { from: Some(Mark::new(from)), ..release(5, 150) };
            let decided = decide_release(&row(), &release, now);
            let decided = decided.as_ref().map_or_else(|error| error.kind().code(), |_| "released");
            assert_eq!(decided, wanted);
        }
    }
}
