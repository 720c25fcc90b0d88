//! The single rule by which a claim chooses among the slots of a pool.

use std::collections::HashMap;

use snowmint_core::UnixMillis;

use super::check::check_claim;
use super::view::PoolView;
use super::{ClaimRequest, Reuse, SlotDefaults};
use crate::error::{Error, ErrorKind, Result};
use crate::model::external::is_external;
use crate::model::lease::{Lease, SlotRow, granted};
use crate::model::member::{MemberInfo, not_joined};

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
/// ([`Preference::Configured`](crate::model::pool::Preference::Configured)) do not count. If no group is
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
        .map(|slot| {
            let before =
                by_slot.get(&slot).map_or((ground.term, ground.mark), |row| (row.term, row.mark));
            granted(slot, before, request.member, request.owner.clone(), request.request, now)
        })
        .collect();
    let next = match request.pool.reuse {
        Reuse::Never => groups.last().map_or(next, |last| (last + 1) * group),
        Reuse::Recycle | Reuse::Ordered => 0,
    };
    Ok(Choice::Claim { rows: claimed_rows, next, forget: view.forget() })
}
