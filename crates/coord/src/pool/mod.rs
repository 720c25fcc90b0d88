//! Pools of slots, and the single rule by which a claim chooses among them.

mod check;
mod holders;
mod sections;
mod view;
mod workers;

use std::collections::HashMap;

use snowmint_core::UnixMillis;

use crate::catalog::check_name;
use crate::error::{Error, ErrorKind, Result};
use crate::external::is_external;
use crate::lease::{ClaimRequest, Lease, Mark, SlotRow, Term, leapt};
use crate::member::{MemberInfo, not_joined};
use crate::store::FastForward;
pub use check::{check_claim, check_group, check_request};
pub use holders::asks_for_holders;
pub use sections::SECTIONS;
pub(crate) use sections::{SECTIONS_POOL, counts, sections_pool};
use view::PoolView;
pub use workers::{is_worker_pool, pool_of};

/// All slots of one worker width and reuse rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name of the pool, which tells its shape: `workers-10`, `workers-7-clock-3`.
    pub name: String,
    /// Number of slots: a multiple of `group`.
    pub slots: u64,
    /// Number of slots that a claim takes together: 1, or for a clock-sequence layout all the clock
    /// values of one worker. Group `g` has the slots from `g * group` on.
    pub group: u32,
    /// Rule for the reuse of a slot.
    pub reuse: Reuse,
}

/// Rule for the reuse of a slot that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The slot can be claimed again.
    Recycle,
    /// The slot is never reused: every claim gets a number never used before (Baidu's assigner).
    Never,
    /// One member after another uses the slot, in the order of time: slots are acquired, not
    /// claimed ([`exclusive`](crate::exclusive)).
    Ordered,
}

/// Defaults for all slots of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotDefaults {
    /// Mark of slots without a row: zero, unless an operator moved the namespace forward.
    pub mark: Mark,
    /// Term of slots without a row: zero, unless an operator moved the namespace forward.
    pub term: Term,
    /// Highest mark allowed to every claim, external leases excepted, whatever its own limit: an
    /// operator has accepted that IDs lead the clocks this far. Zero at first.
    pub accepted_lead: Mark,
}

impl SlotDefaults {
    /// Returns the defaults after an operator moved the namespace forward.
    #[must_use]
    pub fn fast_forwarded(self, forward: &FastForward) -> Self {
        let recoveries = forward.recoveries_at_least.saturating_add(1);
        let mark = self.mark.max(forward.marks_at_least);
        Self { mark, term: self.term.leap(recoveries), ..self }
    }

    /// Returns term and mark of a slot never used. Marks of counters are numbers, unrelated to
    /// time. They begin above the lost numbers, one leap for each time that an operator moved the
    /// namespace forward.
    pub(crate) fn of(self, pool: &str, slot: u64) -> (Term, Mark) {
        let mark =
            if counts(pool, slot) { leapt(Mark::ZERO, self.term.leaps()) } else { self.mark };
        (self.term, mark)
    }
}

/// Effect of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The same request was done before: return these rows, change nothing.
    Repeat(Vec<SlotRow>),
    /// Write these rows and return them.
    Claim {
        /// Rows of the slots after the claim, in order.
        rows: Vec<SlotRow>,
        /// In a pool without reuse: the first number never used, after the claim.
        next: u64,
        /// In a pool without reuse: rows of numbers long given up, to be deleted.
        forget: Vec<u64>,
    },
}

/// Number of given-up rows that a pool without reuse remembers. They serve listings only: a holder
/// without a row gets an error that it must claim again.
pub const NEVER_ROWS_KEPT: usize = 256;
/// Maximum number of groups of one claim.
pub const CLAIM_COUNT_MAX: u32 = 16_384;
/// Maximum number of holders in the error of a full pool.
pub const HOLDERS_SHOWN: usize = 5;

impl Pool {
    /// Returns the number of groups in the pool.
    #[must_use]
    pub fn groups(&self) -> u64 {
        self.slots / u64::from(self.group.max(1))
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_name("pool", &self.name)?;
        let group = u64::from(self.group);
        if group == 0
            || self.slots == 0
            || self.slots > Mark::MAX.get()
            || !self.slots.is_multiple_of(group)
        {
            return Err(Error::invalid(format!(
                "pool {:?} has {} slots in groups of {group}, allowed are 1 to {} slots and a \
                 multiple of the group; correct it",
                self.name,
                self.slots,
                Mark::MAX
            )));
        }
        Ok(())
    }

    /// Checks that a stored pool of this name has the same shape.
    ///
    /// # Errors
    /// `Conflict` if it differs.
    pub fn check_same(&self, stored: &Self) -> Result<()> {
        if self == stored {
            return Ok(());
        }
        let shape = |pool: &Self| {
            format!("{} slots in groups of {}, reuse {:?}", pool.slots, pool.group, pool.reuse)
        };
        let (name, found, wanted) = (&self.name, shape(stored), shape(self));
        Err(Error::conflict(if self.reuse == stored.reuse {
            format!("pool {name:?} has {found}, requested {wanted}; use the same layout")
        } else {
            format!(
                "pool {name:?} has {found}, requested {wanted}: reuse is fixed for all members; \
                 set worker.reuse to the stored one"
            )
        }))
    }
}

/// Returns the leases that the rows describe.
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

/// Chooses the slots of a claim from all rows of the pool, all members, and the first number never
/// used (`next`, for pools without reuse). `now` is the time of the clock that the store uses.
///
/// A group is usable if no live member holds any of its slots, and at least one of them has a mark
/// that the request allows. Members that the request supersedes or outranks
/// ([`Preference::Configured`](crate::lease::Preference::Configured)) do not count. If no group is
/// usable, marks that an operator has allowed ([`SlotDefaults::accepted_lead`]) count too. The
/// claim takes the usable group that this owner had last, if it prefers that one; otherwise the
/// smallest group never used; otherwise the group given up longest ago. A claim that was overtaken
/// by others skips up to `pass` of these, so that claims that collided once do not all collide
/// again. The first attempt of a claim skips none (0).
///
/// # Errors
/// `PoolFull` with limit, holders and the earliest usable time; `Exhausted` for a pool without
/// reuse; `NotFound` when the claimer has not joined. `Fenced` for a request that was done before,
/// if its slots were given up since: it has arrived twice, or late. `Invalid` for an invalid claim.
pub fn choose(
    request: &ClaimRequest,
    rows: &[SlotRow],
    members: &[MemberInfo],
    ground: SlotDefaults,
    next: u64,
    now: UnixMillis,
    pass: usize,
) -> Result<Choice> {
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
        // No caller waits for these slots: they would stay held for as long as the member lives.
        let given_up =
            |row: &&SlotRow| row.holder.is_none() && row.claim_request == request.request;
        if let Some(row) = rows.iter().find(given_up) {
            let newest = row.term.get();
            return Err(Error::fenced(format!(
                "number {} of pool {:?} was released: term {}, newest {newest}; claim with a new \
                 request",
                row.slot,
                request.pool.name,
                newest.saturating_sub(1)
            )));
        }
    }
    let mut view = PoolView::new(request, rows, members, ground, now);
    let choose = |view: &PoolView<'_>| match request.pool.reuse {
        Reuse::Never => view.fresh(next),
        // `Ordered` was rejected above.
        Reuse::Recycle | Reuse::Ordered => view.recycled(pass),
    };
    let groups = match choose(&view) {
        // Only when no other slot is left: IDs that lead the clock are the second choice.
        Err(error)
            if matches!(error.kind(), ErrorKind::PoolFull(_))
                && ground.accepted_lead > request.mark_at_most
                && !is_external(&request.pool.name) =>
        {
            view.mark_at_most = ground.accepted_lead;
            choose(&view)?
        }
        chosen => chosen?,
    };
    let group = u64::from(request.pool.group);
    let by_slot: HashMap<u64, &SlotRow> = rows.iter().map(|row| (row.slot, row)).collect();
    let claimed_rows: Vec<SlotRow> = groups
        .iter()
        .flat_map(|number| number * group..(number + 1) * group)
        .map(|slot| claimed(by_slot.get(&slot).copied(), slot, request, ground, now))
        .collect();
    let next = match request.pool.reuse {
        Reuse::Never => groups.last().map_or(next, |last| (last + 1) * group),
        Reuse::Recycle | Reuse::Ordered => 0,
    };
    Ok(Choice::Claim { rows: claimed_rows, next, forget: view.forget() })
}

/// Returns the row of a slot after the claim.
fn claimed(
    before: Option<&SlotRow>,
    slot: u64,
    request: &ClaimRequest,
    ground: SlotDefaults,
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
