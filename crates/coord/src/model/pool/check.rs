//! A claim, and its checks that need no stored state.

use super::{CLAIM_COUNT_MAX, Pool, Reuse};
use crate::error::{Error, Result};
use crate::ids::{Incarnation, Mark};
use crate::model::name::{LABEL_BYTES_MAX, check_label};

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

/// Checks that a claim is valid, whatever the pool's state.
///
/// # Errors
/// `Invalid` for a wrong pool, owner, count or slot preference; `LimitExceeded` for too many
/// numbers.
pub fn check_claim(request: &ClaimRequest) -> Result<()> {
    request.pool.check()?;
    check_label("owner", &request.owner, LABEL_BYTES_MAX)?;
    let (name, count) = (&request.pool.name, request.count);
    if request.pool.reuse == Reuse::Ordered {
        let message = format!("pool {name:?} has exclusive slots; acquire them by number");
        return Err(Error::invalid(message));
    }
    if count == 0 {
        return Err(Error::invalid("claim asks for 0 numbers, minimum 1; ask for at least one"));
    }
    if count > CLAIM_COUNT_MAX {
        return Err(Error::limit_exceeded(format!(
            "claim asks for {count} numbers of pool {name:?}, maximum {CLAIM_COUNT_MAX}; ask for \
             fewer"
        )));
    }
    if let Some(number) = request.preference.only() {
        let groups = request.pool.groups();
        if number >= groups {
            return Err(Error::invalid(format!(
                "number {number} of pool {name:?} is out of range, maximum {}; correct it",
                groups - 1
            )));
        }
        if count > 1 {
            return Err(Error::invalid(format!(
                "claim asks for {count} numbers and names one; ask for 1"
            )));
        }
        if request.pool.reuse == Reuse::Never {
            return Err(Error::invalid(format!(
                "pool {name:?} never reuses numbers, so none can be named; claim any"
            )));
        }
    }
    Ok(())
}

/// Checks the request number of a claim. [`choose`](super::choose) accepts 0, which the later steps
/// of a large claim have; the rows keep the claim's own number.
///
/// # Errors
/// `Invalid` for 0: a claimed slot would look [excluded](crate::SlotRow::is_kept_away).
pub fn check_request(request: &ClaimRequest) -> Result<()> {
    if request.request == 0 {
        return Err(Error::invalid(format!(
            "claim of pool {:?} has request 0, minimum 1; send a random number",
            request.pool.name
        )));
    }
    Ok(())
}

/// Checks that a store can claim from a pool, if it takes at most `group_max` slots in one step.
///
/// # Errors
/// `Unsupported` if the pool's groups are larger.
pub fn check_group(pool: &Pool, group_max: u32) -> Result<()> {
    let Pool { name, group, .. } = pool;
    if *group <= group_max {
        return Ok(());
    }
    Err(Error::unsupported(match group_max.checked_ilog2() {
        Some(bits) => format!(
            "worker of pool {name:?} needs {group} clock values in one step, this store allows \
             {group_max}; use a layout with at most {bits} clock bits or another store"
        ),
        None => format!(
            "worker of pool {name:?} needs {group} clock values in one step, this store allows \
             none; use another store"
        ),
    }))
}
