//! Groups of a pool that are available to a claim.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use snowmint_core::UnixMillis;

use super::{HOLDERS_SHOWN, NEVER_ROWS_KEPT, Reuse, SlotDefaults};
use crate::error::{Error, Holder, PoolFull, Result};
use crate::ids::{Incarnation, Mark};
use crate::model::lease::SlotRow;
use crate::model::member::{MemberInfo, Presence};
use crate::model::pool::{ClaimRequest, Preference};

/// A group that was claimed before.
struct Used {
    /// Lowest mark among its slots.
    mark: Mark,
    /// Live holder of the group.
    holder: Option<Holder>,
    /// Time at which it became free; meaningless while held.
    free_since: UnixMillis,
    /// Whether the claiming owner had it last.
    owned: bool,
    rows: u32,
}

/// A pool as seen by one claim: its available groups, or the reason why none is available.
pub(super) struct PoolView<'a> {
    request: &'a ClaimRequest,
    used: BTreeMap<u64, Used>,
    ground: SlotDefaults,
    pub(super) mark_at_most: Mark,
    now: UnixMillis,
}

impl<'a> PoolView<'a> {
    pub(super) fn new(
        request: &'a ClaimRequest,
        rows: &[SlotRow],
        members: &[MemberInfo],
        ground: SlotDefaults,
        now: UnixMillis,
    ) -> Self {
        let members: HashMap<Incarnation, &MemberInfo> =
            members.iter().map(|info| (info.member.incarnation, info)).collect();
        let mut used: BTreeMap<u64, Used> = BTreeMap::new();
        for row in rows {
            let (holder, free_since) = standing(row, &members, request, now);
            let owned = !request.owner.is_empty() && row.owner == request.owner;
            let group = used.entry(row.slot / u64::from(request.pool.group)).or_insert(Used {
                mark: row.mark,
                holder: None,
                free_since,
                owned,
                rows: 0,
            });
            group.mark = group.mark.min(row.mark);
            group.free_since = group.free_since.max(free_since);
            group.owned &= owned;
            group.rows += 1;
            if group.holder.is_none() {
                group.holder = holder;
            }
        }
        for group in used.values_mut().filter(|group| group.rows < request.pool.group) {
            group.mark = group.mark.min(ground.mark);
        }
        Self { request, used, ground, mark_at_most: request.mark_at_most, now }
    }

    const fn mark_allowed(&self, mark: Mark) -> bool {
        // A mark at the end of all numbers leaves nothing to mint.
        mark.get() <= self.mark_at_most.get() && mark.get() < Mark::MAX.get()
    }

    fn usable(&self, group: &Used) -> bool {
        group.holder.is_none() && self.mark_allowed(group.mark)
    }

    /// Chooses among the groups that may be used again and the groups never used.
    pub(super) fn recycled(&self, pass: usize) -> Result<Vec<u64>> {
        let count = usize::try_from(self.request.count).unwrap_or(usize::MAX);
        let usable = || self.used.iter().filter(|(_, group)| self.usable(group));
        // Where the mark of unused groups is not allowed, none is visited: there may be billions.
        let groups =
            if self.mark_allowed(self.ground.mark) { self.request.pool.groups() } else { 0 };
        let unused = (0..groups).filter(|number| !self.used.contains_key(number));

        let mut chosen = BTreeSet::new();
        if let Some(only) = self.request.preference.only() {
            let free = match self.used.get(&only) {
                Some(group) => self.usable(group),
                None => self.mark_allowed(self.ground.mark),
            };
            chosen.extend(free.then_some(only));
        } else {
            if self.request.preference == Preference::LastOfOwner {
                let mut owned: Vec<_> = usable().filter(|(_, group)| group.owned).collect();
                owned
                    .sort_by_key(|(number, group)| (std::cmp::Reverse(group.free_since), **number));
                chosen.extend(owned.into_iter().map(|(number, _)| *number).take(count));
            }
            let left = count - chosen.len();
            chosen.extend(passing(unused.take(left.saturating_add(pass)).collect(), left, pass));
            if chosen.len() < count {
                let mut oldest: Vec<_> = usable()
                    .filter(|(number, _)| !chosen.contains(*number))
                    .map(|(number, group)| (group.free_since, *number))
                    .collect();
                oldest.sort_unstable();
                let left = count - chosen.len();
                let oldest = oldest.into_iter().map(|(_, number)| number).collect();
                chosen.extend(passing(oldest, left, pass));
            }
        }
        if chosen.is_empty() { Err(self.full()) } else { Ok(chosen.into_iter().collect()) }
    }

    /// Returns the next groups never used.
    pub(super) fn fresh(&self, next: u64) -> Result<Vec<u64>> {
        let pool = &self.request.pool;
        let first = next / u64::from(pool.group);
        let last = pool.groups().min(first.saturating_add(u64::from(self.request.count)));
        if first >= last {
            return Err(Error::exhausted(format!(
                "pool {:?} has assigned all its {} numbers and reuses none; use a pool with more \
                 numbers",
                pool.name,
                pool.groups()
            )));
        }
        if !self.mark_allowed(self.ground.mark) {
            return Err(self.full());
        }
        Ok((first..last).collect())
    }

    /// Returns the given-up rows beyond those that are kept, in a pool without reuse.
    pub(super) fn forget(&self) -> Vec<u64> {
        if self.request.pool.reuse != Reuse::Never {
            return Vec::new();
        }
        let free: Vec<u64> = self
            .used
            .iter()
            .filter(|(_, group)| group.holder.is_none())
            .map(|(number, _)| *number)
            .collect();
        let group = u64::from(self.request.pool.group);
        let forgotten = free.len().saturating_sub(NEVER_ROWS_KEPT);
        free[..forgotten].iter().flat_map(|number| number * group..(number + 1) * group).collect()
    }

    fn full(&self) -> Error {
        let groups = self.request.pool.groups();
        let only = self.request.preference.only();
        let counted = |number: &u64| only.is_none_or(|only| only == *number);
        let considered: Vec<&Used> =
            self.used.iter().filter(|(number, _)| counted(number)).map(|(_, used)| used).collect();
        let considered_count = u64::try_from(considered.len()).unwrap_or(u64::MAX);
        let total = if only.is_some() { 1 } else { groups };
        let never_used = total.saturating_sub(considered_count);

        let wait_for_mark = |mark: Mark| {
            // The accepted lead is fixed and does not rise with time.
            let ahead = mark.get().saturating_sub(self.request.mark_at_most.get());
            self.now.saturating_add(if self.mark_allowed(mark) { 0 } else { ahead })
        };
        let usable_at = considered
            .iter()
            .filter(|used| used.mark < Mark::MAX)
            .map(|used| {
                let expired = used.holder.as_ref().map_or(self.now, |holder| holder.expires_at);
                expired.max(wait_for_mark(used.mark))
            })
            .chain((never_used > 0).then(|| wait_for_mark(self.ground.mark)))
            .min();
        let recovered_at = wait_for_mark(self.ground.mark);
        let held = considered.iter().filter(|used| used.holder.is_some()).count();
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        Error::pool_full(PoolFull {
            pool: self.request.pool.name.clone(),
            groups,
            only,
            held,
            marked_ahead: total.saturating_sub(held),
            holders: considered
                .iter()
                .filter_map(|used| used.holder.clone())
                .take(HOLDERS_SHOWN)
                .collect(),
            usable_at,
            usable_in_ms: usable_at.map(|at| at.since(self.now)),
            by_recovery: usable_at.is_some_and(|at| self.now < at && at <= recovered_at),
        })
    }
}

/// Returns the first `left` candidates after up to `pass` skipped ones; skips fewer where few
/// candidates exist.
fn passing(candidates: Vec<u64>, left: usize, pass: usize) -> impl Iterator<Item = u64> {
    let spare = candidates.len().saturating_sub(left);
    candidates.into_iter().skip(pass % (spare + 1)).take(left)
}

/// Returns the live holder of a slot that keeps it from this claim, and the time since which the
/// slot is free if there is none.
fn standing(
    row: &SlotRow,
    members: &HashMap<Incarnation, &MemberInfo>,
    request: &ClaimRequest,
    now: UnixMillis,
) -> (Option<Holder>, UnixMillis) {
    let Some(incarnation) = row.holder else {
        return (None, row.given_up_at);
    };
    let Some(info) = members.get(&incarnation) else {
        return (None, row.held_since);
    };
    let expires_at = Presence::expires_at(info.presence.ttl_ms, info.renewed_at);
    if info.live && !request.outranks(incarnation) {
        let owner = row.owner.clone();
        return (Some(Holder { slot: row.slot, incarnation, owner, expires_at }), now);
    }
    (None, expires_at.min(now))
}
