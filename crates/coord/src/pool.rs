//! Pools of slots, and the one rule by which a claim chooses among them.

mod check;
mod holders;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use snowmint_core::UnixMillis;

use crate::catalog::check_name;
use crate::error::{ErrorKind, Holder, PoolFull};
use crate::lease::{ClaimRequest, Lease, Mark, SlotRow, Term, Wish};
use crate::lend::is_lent;
use crate::member::{Incarnation, MemberInfo, Presence, not_joined};
pub use check::{check_claim, check_group};
pub use holders::asks_for_holders;

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
    pub fn forwarded(self, mark: Mark) -> Self {
        Self { mark: self.mark.max(mark), term: self.term.leap(), ..self }
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
/// reuse; `NotFound` when the claimer has not joined; `Invalid`.
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

/// One group that was claimed before.
struct Used {
    /// The lowest mark among its slots.
    mark: Mark,
    /// Its live holder.
    holder: Option<Holder>,
    /// When it became free; meaningless while held.
    free_since: UnixMillis,
    /// Whether the claiming owner had it last.
    owned: bool,
    rows: u32,
}

struct View<'a> {
    request: &'a ClaimRequest,
    used: BTreeMap<u64, Used>,
    ground: Ground,
    mark_at_most: Mark,
    now: UnixMillis,
}

impl<'a> View<'a> {
    fn new(
        request: &'a ClaimRequest,
        rows: &[SlotRow],
        members: &[MemberInfo],
        ground: Ground,
        now: UnixMillis,
    ) -> Self {
        let members: HashMap<Incarnation, &MemberInfo> =
            members.iter().map(|info| (info.member.incarnation, info)).collect();
        let mut used: BTreeMap<u64, Used> = BTreeMap::new();
        for row in rows {
            let (holder, free_since) = standing(row, &members, request.supersedes, now);
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
        // At the end of all numbers there is nothing to mint.
        mark.get() <= self.mark_at_most.get() && mark.get() < Mark::MAX.get()
    }

    fn usable(&self, group: &Used) -> bool {
        group.holder.is_none() && self.mark_allowed(group.mark)
    }

    fn recycled(&self, pass: usize) -> Result<Vec<u64>, ErrorKind> {
        let count = usize::try_from(self.request.count).unwrap_or(usize::MAX);
        let usable = || self.used.iter().filter(|(_, group)| self.usable(group));
        // None is looked at where none is allowed: there may be billions.
        let groups =
            if self.mark_allowed(self.ground.mark) { self.request.pool.groups() } else { 0 };
        let unused = (0..groups).filter(|number| !self.used.contains_key(number));

        let mut chosen = BTreeSet::new();
        if let Wish::Exactly(only) = self.request.wish {
            let free = match self.used.get(&only) {
                Some(group) => self.usable(group),
                None => self.mark_allowed(self.ground.mark),
            };
            chosen.extend(free.then_some(only));
        } else {
            if self.request.wish == Wish::LastOfOwner {
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

    fn fresh(&self, next: u64) -> Result<Vec<u64>, ErrorKind> {
        let pool = &self.request.pool;
        let first = next / u64::from(pool.group);
        let last = pool.groups().min(first.saturating_add(u64::from(self.request.count)));
        if first >= last {
            return Err(ErrorKind::Exhausted {
                what: format!("pool {}, which never reuses a number,", pool.name),
                limit: pool.groups(),
            });
        }
        if !self.mark_allowed(self.ground.mark) {
            return Err(self.full());
        }
        Ok((first..last).collect())
    }

    /// In a pool without reuse, the given-up rows beyond those that are kept.
    fn forget(&self) -> Vec<u64> {
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

    fn full(&self) -> ErrorKind {
        let groups = self.request.pool.groups();
        let only = match self.request.wish {
            Wish::Exactly(number) => Some(number),
            Wish::Any | Wish::LastOfOwner => None,
        };
        let counted = |number: &u64| only.is_none_or(|only| only == *number);
        let considered: Vec<&Used> =
            self.used.iter().filter(|(number, _)| counted(number)).map(|(_, used)| used).collect();
        let considered_count = u64::try_from(considered.len()).unwrap_or(u64::MAX);
        let total = if only.is_some() { 1 } else { groups };
        let never_used = total.saturating_sub(considered_count);

        let wait_for_mark = |mark: Mark| {
            // What an operator has accepted does not move on with the time.
            let ahead = mark.get().saturating_sub(self.request.mark_at_most.get());
            self.now.saturating_add(if self.mark_allowed(mark) { 0 } else { ahead })
        };
        let usable_at = considered
            .iter()
            .filter(|used| used.mark < Mark::MAX)
            .map(|used| {
                let lapsed = used.holder.as_ref().map_or(self.now, |holder| holder.lapses_at);
                lapsed.max(wait_for_mark(used.mark))
            })
            .chain((never_used > 0).then(|| wait_for_mark(self.ground.mark)))
            .min();
        let held = considered.iter().filter(|used| used.holder.is_some()).count();
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        ErrorKind::PoolFull(PoolFull {
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
        })
    }
}

/// The first `left` of the candidates after some that are passed over; all are enough if there are few.
fn passing(candidates: Vec<u64>, left: usize, pass: usize) -> impl Iterator<Item = u64> {
    let spare = candidates.len().saturating_sub(left);
    candidates.into_iter().skip(pass % (spare + 1)).take(left)
}

/// The live holder of a slot, and since when it is free if there is none.
fn standing(
    row: &SlotRow,
    members: &HashMap<Incarnation, &MemberInfo>,
    superseded: Option<Incarnation>,
    now: UnixMillis,
) -> (Option<Holder>, UnixMillis) {
    let Some(incarnation) = row.holder else {
        return (None, row.given_up_at);
    };
    let Some(info) = members.get(&incarnation) else {
        return (None, row.held_since);
    };
    let lapses_at = Presence::lapses_at(info.presence.ttl_ms, info.renewed_at);
    if info.live && superseded != Some(incarnation) {
        let owner = row.owner.clone();
        return (Some(Holder { slot: row.slot, incarnation, owner, lapses_at }), now);
    }
    (None, lapses_at.min(now))
}

#[cfg(test)]
mod tests;
