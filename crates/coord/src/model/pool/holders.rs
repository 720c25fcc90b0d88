//! Check whether a claim needs the state of the holders of a pool's numbers. A store has as many
//! members as processes, and when all of them start at once each would read all.

use std::collections::HashSet;

use crate::ids::Mark;
use crate::model::lease::SlotRow;
use crate::model::pool::{ClaimRequest, Preference};

use super::{Reuse, SlotDefaults};

/// Returns whether members other than the claimer affect the result of [`choose`](super::choose).
/// They do not while enough numbers were never used and the claimer prefers no number.
#[must_use]
pub fn asks_for_holders(
    request: &ClaimRequest,
    rows: &[SlotRow],
    ground: SlotDefaults,
    pass: usize,
) -> bool {
    let owned = |row: &SlotRow| !request.owner.is_empty() && row.owner == request.owner;
    let prefers = match request.preference {
        Preference::Any => false,
        Preference::LastOfOwner => rows.iter().any(owned),
        Preference::Exactly(_) | Preference::Configured(_) => true,
    };
    let group = u64::from(request.pool.group.max(1));
    let used: HashSet<u64> = rows.iter().map(|row| row.slot / group).collect();
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let unused = request.pool.groups().saturating_sub(count(used.len()));
    let wanted = u64::from(request.count).saturating_add(count(pass));
    let is_usable = ground.mark <= request.mark_at_most && ground.mark < Mark::MAX;
    prefers || request.pool.reuse == Reuse::Never || unused < wanted || !is_usable
}
