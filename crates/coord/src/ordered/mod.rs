//! Ordered slots: rights of which one member at a time makes use, so that what it answers is in order
//! for everybody.
//!
//! A worker slot may pass on as soon as its holder looks gone, because the mark keeps the numbers of
//! the two apart. An ordered slot may not: the old holder would go on answering smaller numbers while
//! the new one answers greater ones. So a slot passes on only when its holder gave it up, or when the
//! taker itself has seen, on its own elapsed clock, that the holder's count of renewals stood still for
//! the holder's lease and a margin. No wall clock has a say in it, the store's neither.
//!
//! The holder's side of the bargain: its lease ends [`Presence::ttl_ms`](crate::Presence) after it
//! *sent* the last renewal that arrived, and it looks after it has taken a number and before it answers.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_core::{ElapsedMillis, UnixMillis};

use crate::error::ErrorKind;
use crate::lease::{Lease, Mark, SlotRow, Term, given_up};
use crate::member::{Incarnation, MemberInfo, not_joined};
use crate::pool::{Ground, Pool, Reuse};

/// How much longer than the holder's lease its count must stand still: for clocks that do not run alike.
/// One part in eight of the lease, and at least this many milliseconds.
pub const MARGIN_MS_MIN: u64 = 500;

/// The longest window of a take: 2^53. A mark has room for a thousand of them.
pub const LENGTH_MAX: u64 = 1 << 53;

/// A member whose count of renewals stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// The member.
    pub member: Incarnation,
    /// Its count. A higher one in the store: it lives.
    pub renewals: u64,
}

/// A request to take ordered slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Where from; its reuse rule is [`Reuse::Ordered`].
    pub pool: Pool,
    /// Who takes; must have joined.
    pub member: Incarnation,
    /// Its label.
    pub owner: String,
    /// Which.
    pub slots: Vec<u64>,
    /// Holders that the taker has watched for long enough. Those that are silent still are forgotten
    /// by the same step: a renewal of theirs that comes late is refused.
    pub silent: Vec<Silent>,
    /// The member that the taker was before, which surely answers no more.
    pub supersedes: Option<Incarnation>,
    /// How far above its floor the mark of each is moved by the same step: at most [`LENGTH_MAX`].
    pub length: u64,
    /// A random number. A repeat with the same number, by the same member, answers the same leases.
    pub request: u64,
}

/// What a take has brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The slots that are the taker's now.
    pub leases: Vec<Lease>,
    /// The others, and who has them.
    pub held: Vec<(u64, Incarnation)>,
}

/// A request to give ordered slots up. Stop answering from them first. Their marks stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetGo {
    /// The pool's name.
    pub pool: String,
    /// Who gives up.
    pub member: Incarnation,
    /// Which, and by which term they are held: one that is not, or not any more, is passed over. A
    /// message that comes late must not give up what was taken anew since.
    pub slots: Vec<(u64, Term)>,
}

/// Checks that a take makes sense, whatever there is.
///
/// # Errors
/// `Invalid`.
pub fn check_take(take: &Take) -> Result<(), ErrorKind> {
    let pool = &take.pool;
    pool.check()?;
    let invalid = |what: String| Err(ErrorKind::Invalid { what });
    if pool.reuse != Reuse::Ordered || pool.group != 1 {
        return invalid(format!("pool {} has no ordered slots: claim from it", pool.name));
    }
    if take.slots.is_empty() {
        return invalid(format!("a take from pool {} names at least one slot", pool.name));
    }
    if take.length > LENGTH_MAX {
        return invalid(format!("a take moves marks by {LENGTH_MAX} at most, not {}", take.length));
    }
    if let Some(slot) = take.slots.iter().find(|slot| **slot >= pool.slots) {
        let last = pool.slots.saturating_sub(1);
        return invalid(format!("slot {slot} of pool {} is outside 0 to {last}", pool.name));
    }
    Ok(())
}

/// Checks that the member has joined who takes.
///
/// # Errors
/// `NotFound`.
pub fn check_joined(take: &Take, members: &[MemberInfo]) -> Result<(), ErrorKind> {
    let is_taker = |info: &MemberInfo| info.member.incarnation == take.member;
    if members.iter().any(is_taker) { Ok(()) } else { Err(not_joined(take.member)) }
}

/// The members that are as silent as the taker says: their records go.
pub fn gone(take: &Take, members: &[MemberInfo]) -> Vec<Incarnation> {
    let still = |silent: &&Silent| {
        silent.member != take.member
            && members.iter().any(|info| {
                info.member.incarnation == silent.member
                    && info.presence.renewals == silent.renewals
            })
    };
    take.silent.iter().filter(still).map(|silent| silent.member).collect()
}

/// What a take does about one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeStep {
    /// Write this row: the slot is the taker's.
    Grant(SlotRow),
    /// It was done before: answer this row again.
    Repeat(SlotRow),
    /// Somebody has it.
    Held(Incarnation),
}

/// Decides a take of one slot, given its row if it was ever taken, all members, and those of them that
/// are [`gone`].
///
/// A holder that is no member is gone, too. So where rows and members are not read at one moment, rows are
/// read first: who joins after the members were read, and takes the slot, would look as if it were gone.
#[must_use]
pub fn decide_take(
    row: Option<&SlotRow>,
    slot: u64,
    take: &Take,
    members: &[MemberInfo],
    gone: &[Incarnation],
    ground: Ground,
    now: UnixMillis,
) -> TakeStep {
    if let Some(row) = row
        && let Some(holder) = row.holder
    {
        if holder == take.member && row.claim_request == take.request && take.request != 0 {
            return TakeStep::Repeat(row.clone());
        }
        let is_known = members.iter().any(|info| info.member.incarnation == holder);
        let passes = holder == take.member
            || take.supersedes == Some(holder)
            || !is_known
            || gone.contains(&holder);
        if !passes {
            return TakeStep::Held(holder);
        }
    }
    let (term, mark) =
        row.map_or_else(|| ground.of(&take.pool.name, slot), |row| (row.term, row.mark));
    TakeStep::Grant(SlotRow {
        slot,
        term: term.next(),
        floor: mark,
        mark: Mark::new(mark.get().saturating_add(take.length).min(Mark::MAX.get())),
        holder: Some(take.member),
        owner: take.owner.clone(),
        claim_request: take.request,
        extend_request: 0,
        held_since: now,
        given_up_at: UnixMillis::ZERO,
    })
}

/// Decides a let-go of one slot: the row after it, if the member holds it by this term.
#[must_use]
pub fn decide_let_go(
    row: &SlotRow,
    member: Incarnation,
    term: Term,
    now: UnixMillis,
) -> Option<SlotRow> {
    let is_held = row.holder == Some(member) && row.term == term;
    is_held.then(|| given_up(row, row.mark, now))
}

/// How long a count of renewals must stand still until its member's lease is surely over.
#[must_use]
pub const fn silence_ms(lease_ms: u64) -> u64 {
    let margin_ms = lease_ms / 8;
    let margin_ms = if margin_ms < MARGIN_MS_MIN { MARGIN_MS_MIN } else { margin_ms };
    lease_ms.saturating_add(margin_ms)
}

/// What a taker has seen of the other members, on its own elapsed clock.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    seen: BTreeMap<Incarnation, Seen>,
    /// Those that have surely ended, whatever their leases say.
    ended: BTreeSet<Incarnation>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    renewals: u64,
    /// The longest lease that it ever said to have.
    lease_ms: u64,
    since: ElapsedMillis,
}

impl Watch {
    /// Takes in all members as the store listed them to a question that was answered by `at`.
    pub fn look(&mut self, members: &[MemberInfo], at: ElapsedMillis) {
        let mut seen = BTreeMap::new();
        for info in members {
            let member = info.member.incarnation;
            let (renewals, lease_ms) = (info.presence.renewals, info.presence.ttl_ms);
            let new = match self.seen.get(&member) {
                Some(old) if old.renewals == renewals => {
                    Seen { lease_ms: old.lease_ms.max(lease_ms), ..*old }
                }
                Some(old) => Seen { renewals, lease_ms: old.lease_ms.max(lease_ms), since: at },
                None => Seen { renewals, lease_ms, since: at },
            };
            seen.insert(member, new);
        }
        self.seen = seen;
    }

    /// These have surely ended: nobody has to watch them stand still.
    pub fn ended(&mut self, members: impl IntoIterator<Item = Incarnation>) {
        self.ended.extend(members);
    }

    /// Those of the members listed last that have ended, or stood still for long enough, by `now`.
    #[must_use]
    pub fn silent(&self, now: ElapsedMillis) -> Vec<Silent> {
        let stood_still = |seen: &Seen| now.since(seen.since) >= silence_ms(seen.lease_ms);
        self.seen
            .iter()
            .filter(|(member, seen)| self.ended.contains(member) || stood_still(seen))
            .map(|(member, seen)| Silent { member: *member, renewals: seen.renewals })
            .collect()
    }

    /// Whether a member has ended, or stood still for long enough, by `now`.
    #[must_use]
    pub fn is_silent(&self, member: Incarnation, now: ElapsedMillis) -> bool {
        self.silent(now).iter().any(|silent| silent.member == member)
    }
}

#[cfg(test)]
mod tests;
