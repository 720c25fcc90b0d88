//! Pools of slots, and the one rule by which a claim chooses among them.

mod check;
mod holders;
mod sections;
mod view;
mod workers;

use std::collections::HashMap;

use snowmint_core::UnixMillis;

use crate::catalog::check_name;
use crate::error::ErrorKind;
use crate::lease::{ClaimRequest, Lease, Mark, SlotRow, Term, leapt};
use crate::lend::is_lent;
use crate::member::{MemberInfo, not_joined};
use crate::store::FastForward;
pub use check::{check_claim, check_group};
pub use holders::asks_for_holders;
pub use sections::SECTIONS;
pub(crate) use sections::{SECTIONS_POOL, counts, sections_pool};
use view::View;
pub use workers::{is_worker_pool, pool_of};

/// The slots of one worker width and reuse rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its name, which says its shape: `workers-10`, `workers-7-clock-3`.
    pub name: String,
    /// How many slots: a multiple of `group`.
    pub slots: u64,
    /// How many slots a claim takes together: 1, or for a clock-sequence layout all the clock
    /// values of one worker. Group `g` is the slots from `g * group` on.
    pub group: u32,
    /// Whether a slot can be claimed again.
    pub reuse: Reuse,
}

/// Whether a slot can be claimed again once it was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Yes.
    Recycle,
    /// Never: every claim gets a number that nobody had before (Baidu's assigner).
    Never,
    /// By one member after another, in the order of time: taken, not claimed
    /// ([`ordered`](crate::ordered)).
    Ordered,
}

/// What holds for the slots of a namespace as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// The mark of those that have no row yet: zero, unless an operator moved the namespace forward.
    pub mark: Mark,
    /// Their term: zero, unless an operator moved the namespace forward.
    pub term: Term,
    /// Marks up to here are allowed to every claim of numbers that are not lent, whatever its own limit:
    /// an operator has accepted that IDs lead the clocks so far. Zero at first.
    pub lead_until: Mark,
}

impl Ground {
    /// After an operator moved the namespace forward.
    #[must_use]
    pub fn forwarded(self, forward: &FastForward) -> Self {
        let recoveries = forward.recoveries_at_least.saturating_add(1);
        let mark = self.mark.max(forward.marks_at_least);
        Self { mark, term: self.term.leap(recoveries), ..self }
    }

    /// Term and mark of a slot that nobody had. Those of counters are numbers, which no time says anything of: they
    /// begin above what was lost, once for each time that an operator moved the namespace forward.
    pub(crate) fn of(self, pool: &str, slot: u64) -> (Term, Mark) {
        let mark =
            if counts(pool, slot) { leapt(Mark::ZERO, self.term.leaps()) } else { self.mark };
        (self.term, mark)
    }
}

/// What a claim does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It was done before: answer these rows, change nothing.
    Repeat(Vec<SlotRow>),
    /// Write these rows and answer them.
    Take {
        /// The slots' rows as they are after the claim, in order.
        rows: Vec<SlotRow>,
        /// In a pool without reuse: the first number that nobody had, after the claim.
        next: u64,
        /// In a pool without reuse: rows of numbers long given up, to be deleted.
        forget: Vec<u64>,
    },
}

/// How many given-up rows a pool without reuse remembers. They serve listings only: a holder whose
/// row is gone is told to claim again.
pub const NEVER_ROWS_KEPT: usize = 256;
/// How many groups one claim may take.
pub const CLAIM_COUNT_MAX: u32 = 16_384;
/// How many holders the error of a full pool names.
pub const HOLDERS_SHOWN: usize = 5;

impl Pool {
    /// How many groups the pool has.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.slots / u64::from(self.group.max(1))
    }

    pub(crate) fn check(&self) -> Result<(), ErrorKind> {
        check_name("pool", &self.name)?;
        let group = u64::from(self.group);
        if group == 0
            || self.slots == 0
            || self.slots > Mark::MAX.get()
            || !self.slots.is_multiple_of(group)
        {
            return Err(ErrorKind::Invalid {
                what: format!(
                    "pool {} of {} slots in groups of {group}: the slots are 1 to {} and a multiple \
                     of the group",
                    self.name,
                    self.slots,
                    Mark::MAX
                ),
            });
        }
        Ok(())
    }

    /// Checks that a stored pool of this name has the same shape.
    ///
    /// # Errors
    /// `Conflict`.
    pub fn check_same(&self, stored: &Self) -> Result<(), ErrorKind> {
        if self == stored {
            return Ok(());
        }
        let shape = |pool: &Self| {
            format!("{} slots in groups of {}, reuse {:?}", pool.slots, pool.group, pool.reuse)
        };
        let what = if self.reuse == stored.reuse {
            "another shape"
        } else {
            "another rule for reuse, which stays, and is the same for all members (worker.reuse)"
        };
        Err(ErrorKind::Conflict {
            what: format!("pool {} has {what}", self.name),
            stored: shape(stored),
            wanted: shape(self),
        })
    }
}

/// The leases that rows stand for.
#[must_use]
pub fn leases(pool: &str, rows: &[SlotRow]) -> Vec<Lease> {
    let lease = |row: &SlotRow| Lease {
        pool: pool.to_owned(),
        slot: row.slot,
        term: row.term,
        holder: row.holder,
        floor: row.floor,
        mark: row.mark,
    };
    rows.iter().map(lease).collect()
}

/// Chooses the slots of a claim, given all rows of the pool, all members, the first number that
/// nobody had (`next`, for pools without reuse) and the time of the clock that the store goes by.
///
/// A group is usable if no live member other than the superseded one holds any of its slots, and at
/// least one of its slots has a mark that the request allows; if there is none, one that an operator
/// has allowed ([`Ground::lead_until`]). Of the usable: the one that this
/// owner had last, if wished; else the smallest that was never used; else the one longest given up.
/// A claim that was overtaken by others passes over up to `pass` of these, so that those who met
/// once do not all meet again at the next; the first try of a claim passes none (0).
///
/// # Errors
/// `PoolFull` with limit, holders and the earliest usable time; `Exhausted` for a pool without
/// reuse; `NotFound` when the claimer has not joined; `Fenced` for a request that was done before, and whose
/// slots were given up since: it has come twice, or late; `Invalid`.
pub fn choose(
    request: &ClaimRequest,
    rows: &[SlotRow],
    members: &[MemberInfo],
    ground: Ground,
    next: u64,
    now: UnixMillis,
    pass: usize,
) -> Result<Choice, ErrorKind> {
    check_claim(request)?;
    if !members.iter().any(|info| info.member.incarnation == request.member) {
        return Err(not_joined(request.member));
    }
    if request.request != 0 {
        let is_repeat = |row: &&SlotRow| {
            row.holder == Some(request.member) && row.claim_request == request.request
        };
        let repeat: Vec<SlotRow> = rows.iter().filter(is_repeat).cloned().collect();
        if !repeat.is_empty() {
            return Ok(Choice::Repeat(repeat));
        }
        // What this would take nobody waits for: it would stay held for as long as the member lives.
        let given_up =
            |row: &&SlotRow| row.holder.is_none() && row.claim_request == request.request;
        if let Some(row) = rows.iter().find(given_up) {
            return Err(ErrorKind::Fenced {
                slot: format!("number {} of pool {}", row.slot, request.pool.name),
                held: Term::new(row.term.get().saturating_sub(1)),
                newest: row.term,
            });
        }
    }
    let mut view = View::new(request, rows, members, ground, now);
    let choose = |view: &View<'_>| match request.pool.reuse {
        Reuse::Never => view.fresh(next),
        // Refused before.
        Reuse::Recycle | Reuse::Ordered => view.recycled(pass),
    };
    let groups = match choose(&view) {
        // Only when there is nothing else: IDs that lead the clock are second best.
        Err(ErrorKind::PoolFull(_))
            if ground.lead_until > request.mark_at_most && !is_lent(&request.pool.name) =>
        {
            view.mark_at_most = ground.lead_until;
            choose(&view)?
        }
        chosen => chosen?,
    };
    let group = u64::from(request.pool.group);
    let by_slot: HashMap<u64, &SlotRow> = rows.iter().map(|row| (row.slot, row)).collect();
    let taken: Vec<SlotRow> = groups
        .iter()
        .flat_map(|number| number * group..(number + 1) * group)
        .map(|slot| claimed(by_slot.get(&slot).copied(), slot, request, ground, now))
        .collect();
    let next = match request.pool.reuse {
        Reuse::Never => groups.last().map_or(next, |last| (last + 1) * group),
        Reuse::Recycle | Reuse::Ordered => 0,
    };
    Ok(Choice::Take { rows: taken, next, forget: view.forget() })
}

/// The row of a slot after the claim.
fn claimed(
    before: Option<&SlotRow>,
    slot: u64,
    request: &ClaimRequest,
    ground: Ground,
    now: UnixMillis,
) -> SlotRow {
    let (term, mark) = before.map_or((ground.term, ground.mark), |row| (row.term, row.mark));
    SlotRow {
        slot,
        term: term.next(),
        floor: mark,
        mark,
        holder: Some(request.member),
        owner: request.owner.clone(),
        claim_request: request.request,
        extend_request: 0,
        held_since: now,
        given_up_at: UnixMillis::ZERO,
    }
}

#[cfg(test)]
mod tests;
