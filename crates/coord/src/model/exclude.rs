//! Excluded slots: slots never assigned, because another system may still mint from them.
//!
//! The right to mint is the range above a slot's mark. A slot with its mark at the end of all
//! numbers ([`Mark::MAX`]) gives no right: no claim takes it and no extend can move its mark. Only
//! its row records the exclusion. Worker numbers of another system are excluded in this way,
//! forever or, where its processes have surely ended, until a time that none of its IDs has
//! reached.

use snowmint_core::UnixMillis;

use crate::error::{Error, Result};
use crate::ids::{Mark, Term};
use crate::model::lease::{SlotRow, check_mark, slot_label};
use crate::model::member::MemberInfo;
use crate::model::name::check_label;
use crate::model::pool::{Pool, Reuse, SlotDefaults};

/// Maximum length of the label of excluded slots, in bytes.
pub const LABEL_BYTES_MAX: usize = 200;

/// A request to exclude slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclude {
    /// Pool of the slots; never a pool of exclusive slots.
    pub pool: Pool,
    /// Slots to exclude. In a pool without reuse, all slots below the highest are excluded with it.
    pub slots: Vec<u64>,
    /// Mark below which everything belongs to the other system. [`Mark::MAX`] means forever.
    pub until: Mark,
    /// Name of the other system, for lists.
    pub label: String,
}

/// Result of an exclude: the values to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    /// Rows that change.
    pub rows: Vec<SlotRow>,
    /// In a pool without reuse: the first number never assigned, after the exclude.
    pub next: u64,
}

/// Checks the pool, mark, label and slots of a request.
///
/// # Errors
/// `Invalid` when one of them is out of bounds.
pub fn check_exclude(exclude: &Exclude) -> Result<()> {
    let Exclude { pool, slots, until, label } = exclude;
    pool.check()?;
    check_mark(*until)?;
    if pool.reuse == Reuse::Ordered {
        return Err(Error::invalid(format!(
            "pool {:?} has exclusive slots, which cannot be excluded; name a pool of worker \
             numbers",
            pool.name
        )));
    }
    check_label("holder", label, LABEL_BYTES_MAX)?;
    pool.check_slots(slots)
}

/// Decides an exclude from the rows that exist for the slots, all members, and the pool's next
/// number. Slots that are excluded already stay unchanged.
///
/// # Errors
/// `Conflict` when a live member holds one of the slots.
pub fn decide_exclude(
    exclude: &Exclude,
    found: Vec<(u64, Option<SlotRow>)>,
    members: &[MemberInfo],
    ground: SlotDefaults,
    next: u64,
    now: UnixMillis,
) -> Result<Excluded> {
    let highest = exclude.slots.iter().max().map_or(0, |slot| slot.saturating_add(1));
    let group = u64::from(exclude.pool.group.max(1));
    let next = match exclude.pool.reuse {
        Reuse::Never => Ord::max(next, highest.div_ceil(group).saturating_mul(group)),
        Reuse::Recycle | Reuse::Ordered => next,
    };
    let mut rows = Vec::new();
    for (slot, row) in found {
        if let Some(row) = &row {
            check_free(&exclude.pool.name, row, members)?;
        }
        rows.extend(kept_away(exclude, slot, row, ground, now));
    }
    Ok(Excluded { rows, next })
}

fn check_free(pool: &str, row: &SlotRow, members: &[MemberInfo]) -> Result<()> {
    let holder =
        members.iter().find(|info| info.live && Some(info.member.incarnation) == row.holder);
    let Some(info) = holder else { return Ok(()) };
    Err(Error::conflict(format!(
        "{} is held by {:?} on host {:?}; stop that process, then exclude the number",
        slot_label(pool, row.slot),
        row.owner,
        info.member.host
    )))
}

/// Returns the row of a slot with nothing left to mint below `until`, or `None` if it is in that
/// state already.
fn kept_away(
    exclude: &Exclude,
    slot: u64,
    row: Option<SlotRow>,
    ground: SlotDefaults,
    now: UnixMillis,
) -> Option<SlotRow> {
    if row.as_ref().is_some_and(|row| row.mark >= exclude.until) {
        return None;
    }
    let (term, mark) = row.as_ref().map_or((ground.term, ground.mark), |row| (row.term, row.mark));
    let mark = mark.max(exclude.until);
    let held_since = row.map_or(now, |row| row.held_since);
    Some(SlotRow {
        slot,
        // The new term fences a former holder that returns late.
        term: Term::next(term),
        floor: mark,
        mark,
        holder: None,
        owner: exclude.label.clone(),
        claim_request: 0,
        extend_request: 0,
        held_since,
        given_up_at: now,
    })
}
