//! Exclusive slots: rights with one user at a time, so that responses from them are in order for
//! all callers.
//!
//! A worker slot may change hands as soon as its holder looks gone, because the mark keeps the
//! numbers of the two apart. An exclusive slot may not: the old holder would continue to return
//! smaller numbers while the new one returns greater ones. So the slot changes hands only in two
//! cases. Either the holder gave it up, or the new member itself saw, on its own elapsed clock,
//! that the holder's count of renewals stood still for the holder's lease and a margin. No wall
//! clock affects this, not even the store's.
//!
//! The holder's part: its lease ends [`Presence::ttl_ms`](crate::Presence) after it *sent* the last
//! renewal that arrived. It checks the lease after it has taken a number and before it responds.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::{ElapsedMillis, UnixMillis};

use crate::error::{Error, Result};
use crate::ids::{Incarnation, Mark, Term};
use crate::model::lease::{Lease, SlotRow, given_up, granted};
use crate::model::member::{MemberInfo, not_joined};
use crate::model::pool::{Pool, Reuse, SlotDefaults};

/// Minimum margin, in milliseconds, by which a count must stand still longer than its member's
/// lease, because clocks run at different rates. The margin is one eighth of the lease, or this if
/// that is less.
pub const MARGIN_MS_MIN: u64 = 500;

/// Longest window of an acquire: 2^53. A mark has room for a thousand of them.
pub const LENGTH_MAX: u64 = 1 << 53;

/// A stalled member: its count of renewals stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StalledMember {
    /// The member.
    pub member: Incarnation,
    /// Its count of renewals. A higher count in the store proves that it lives.
    pub renewals: u64,
}

/// A request to acquire exclusive slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acquire {
    /// Pool of the slots, with the reuse rule [`Reuse::Ordered`].
    pub pool: Pool,
    /// Member that acquires; it must have joined.
    pub member: Incarnation,
    /// Label of the member.
    pub owner: String,
    /// Slots to acquire.
    pub slots: Vec<u64>,
    /// Holders that the member has watched for long enough. The same step removes those that are
    /// still stalled, so that their late renewals are rejected.
    pub stalled: Vec<StalledMember>,
    /// Earlier incarnation of this member, which has surely stopped responding.
    pub supersedes: Option<Incarnation>,
    /// Distance by which the same step moves the mark of each slot above its floor: at most
    /// [`LENGTH_MAX`].
    pub length: u64,
    /// A random number. A repeat with the same number, by the same member, returns the same leases.
    pub request: u64,
}

/// Result of an acquire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acquired {
    /// Slots that the member now holds.
    pub leases: Vec<Lease>,
    /// Slots held by other members, with their holders.
    pub held: Vec<(u64, Incarnation)>,
}

/// A request to relinquish exclusive slots. Stop responding from them first. Their marks stay
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relinquish {
    /// Name of the pool.
    pub pool: String,
    /// Member that relinquishes.
    pub member: Incarnation,
    /// Slots, each with the term by which it is held. A slot that the member does not hold by this
    /// term is skipped: a late message must not relinquish a slot that was acquired again since.
    pub slots: Vec<(u64, Term)>,
}

/// Checks that an acquire is valid, whatever the state of the store.
///
/// # Errors
/// `Invalid` for a wrong pool, slot or length.
pub fn check_acquire(acquire: &Acquire) -> Result<()> {
    let pool = &acquire.pool;
    pool.check()?;
    let Pool { name, reuse, group, .. } = pool;
    if *reuse != Reuse::Ordered || *group != 1 {
        let message = format!("pool {name:?} has no exclusive slots; claim from it");
        return Err(Error::invalid(message));
    }
    if acquire.slots.is_empty() {
        let message = format!("acquire from pool {name:?} lists 0 slots, minimum 1; list a slot");
        return Err(Error::invalid(message));
    }
    if acquire.length > LENGTH_MAX {
        return Err(Error::invalid(format!(
            "acquire moves marks by {}, maximum {LENGTH_MAX}; lower it",
            acquire.length
        )));
    }
    pool.check_slots(&acquire.slots)
}

/// Checks that the acquiring member has joined.
///
/// # Errors
/// `NotFound` if it has not.
pub fn check_joined(acquire: &Acquire, members: &[MemberInfo]) -> Result<()> {
    let is_taker = |info: &MemberInfo| info.member.incarnation == acquire.member;
    if members.iter().any(is_taker) { Ok(()) } else { Err(not_joined(acquire.member)) }
}

/// Returns the members that are as stalled as the request states: their records are removed.
pub fn gone(acquire: &Acquire, members: &[MemberInfo]) -> Vec<Incarnation> {
    let still = |stalled: &&StalledMember| {
        stalled.member != acquire.member
            && members.iter().any(|info| {
                info.member.incarnation == stalled.member
                    && info.presence.renewals == stalled.renewals
            })
    };
    acquire.stalled.iter().filter(still).map(|stalled| stalled.member).collect()
}

/// Effect of an acquire on one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireStep {
    /// Write this row: the member holds the slot.
    Grant(SlotRow),
    /// The same request was done before: return this row again.
    Repeat(SlotRow),
    /// Another member holds the slot.
    Held(Incarnation),
}

/// Decides an acquire of one slot, from its row if it was ever acquired, all members, and the
/// members that are [`gone`].
///
/// A holder that is not a member is gone, too. So where rows and members are not read at one
/// moment, rows are read first: a member that joins after the members were read, and acquires the
/// slot, would otherwise look gone.
#[must_use]
pub fn decide_acquire(
    row: Option<&SlotRow>,
    slot: u64,
    acquire: &Acquire,
    members: &[MemberInfo],
    gone: &[Incarnation],
    ground: SlotDefaults,
    now: UnixMillis,
) -> AcquireStep {
    if let Some(row) = row
        && let Some(holder) = row.holder
    {
        if holder == acquire.member && row.claim_request == acquire.request && acquire.request != 0
        {
            return AcquireStep::Repeat(row.clone());
        }
        let is_known = members.iter().any(|info| info.member.incarnation == holder);
        let passes = holder == acquire.member
            || acquire.supersedes == Some(holder)
            || !is_known
            || gone.contains(&holder);
        if !passes {
            return AcquireStep::Held(holder);
        }
    }
    let before =
        row.map_or_else(|| ground.of(&acquire.pool.name, slot), |row| (row.term, row.mark));
    let mut row =
        granted(slot, before, acquire.member, acquire.owner.clone(), acquire.request, now);
    row.mark = Mark::new(row.floor.get().saturating_add(acquire.length).min(Mark::MAX.get()));
    AcquireStep::Grant(row)
}

/// Decides a relinquish of one slot; returns the row after it, if the member holds it by this term.
#[must_use]
pub fn decide_relinquish(
    row: &SlotRow,
    member: Incarnation,
    term: Term,
    now: UnixMillis,
) -> Option<SlotRow> {
    let is_held = row.holder == Some(member) && row.term == term;
    is_held.then(|| given_up(row, row.mark, now))
}

/// Returns the time in milliseconds that a count of renewals must stand still until its member's
/// lease is surely over.
#[must_use]
pub const fn stall_ms(lease_ms: u64) -> u64 {
    let margin_ms = lease_ms / 8;
    let margin_ms = if margin_ms < MARGIN_MS_MIN { MARGIN_MS_MIN } else { margin_ms };
    lease_ms.saturating_add(margin_ms)
}

/// Record of the other members' renewals, as seen on this member's own elapsed clock.
#[derive(Clone, Debug, Default)]
pub struct RenewalWatch {
    seen: BTreeMap<Incarnation, SeenRenewal>,
    /// Members that have surely ended, whatever their leases.
    ended: BTreeSet<Incarnation>,
}

#[derive(Clone, Copy, Debug)]
struct SeenRenewal {
    renewals: u64,
    /// The longest lease that the member ever announced, in milliseconds.
    lease_ms: u64,
    since: ElapsedMillis,
}

impl RenewalWatch {
    /// Records all members, as the store listed them in a response that had arrived by `at`.
    pub fn record(&mut self, members: &[MemberInfo], at: ElapsedMillis) {
        let mut seen = BTreeMap::new();
        for info in members {
            let member = info.member.incarnation;
            let (renewals, lease_ms) = (info.presence.renewals, info.presence.ttl_ms);
            let new = match self.seen.get(&member) {
                Some(old) if old.renewals == renewals => {
                    SeenRenewal { lease_ms: old.lease_ms.max(lease_ms), ..*old }
                }
                Some(old) => {
                    SeenRenewal { renewals, lease_ms: old.lease_ms.max(lease_ms), since: at }
                }
                None => SeenRenewal { renewals, lease_ms, since: at },
            };
            seen.insert(member, new);
        }
        self.seen = seen;
    }

    /// Records members that have surely ended, so that their counts need not stand still.
    pub fn ended(&mut self, members: impl IntoIterator<Item = Incarnation>) {
        self.ended.extend(members);
    }

    /// Returns the members of the last list that have ended, or stood still for long enough, by
    /// `now`.
    #[must_use]
    pub fn stalled(&self, now: ElapsedMillis) -> Vec<StalledMember> {
        let stood_still = |seen: &SeenRenewal| now.since(seen.since) >= stall_ms(seen.lease_ms);
        self.seen
            .iter()
            .filter(|(member, seen)| self.ended.contains(member) || stood_still(seen))
            .map(|(member, seen)| StalledMember { member: *member, renewals: seen.renewals })
            .collect()
    }

    /// Returns whether a member has ended, or stood still for long enough, by `now`.
    #[must_use]
    pub fn is_stalled(&self, member: Incarnation, now: ElapsedMillis) -> bool {
        self.stalled(now).iter().any(|stalled| stalled.member == member)
    }
}

#[cfg(test)]
mod tests;
