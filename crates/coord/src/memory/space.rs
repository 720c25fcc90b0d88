//! One namespace in memory: the rows, and what each verb does to them under the lock.

use std::collections::{BTreeMap, HashSet};

use snowmint_core::UnixMillis;

use super::{Step, changed, unchanged};
use crate::avoid::{Avoid, check_avoid, decide_avoid};
use crate::catalog::{CatalogStep, Definition, existing, usable};
use crate::error::ErrorKind;
use crate::history::Standing;
use crate::lease::{
    ClaimRequest, Extend, ExtendStep, Lease, Mark, Release, SlotRow, decide_extend, decide_release,
    forwarded, given_up, never_claimed,
};
use crate::member::{self, Incarnation, Member, MemberInfo, MemberRow, MemberStatus, Presence};
use crate::ordered::{
    LetGo, Take, TakeStep, Taken, check_joined, check_take, decide_let_go, decide_take, gone,
};
use crate::pool::{Choice, Ground, Pool, choose, leases};
use crate::segment::{GiveBack, Reserve, Segment, SegmentRow, decide_give_back};
use crate::slot::{SlotInfo, slot_info};
use crate::store::FastForward;

#[derive(Clone, Default)]
pub(super) struct Space {
    members: BTreeMap<Incarnation, MemberRow>,
    pools: BTreeMap<String, PoolRows>,
    ground: Ground,
    pub(super) standing: Standing,
    pub(super) catalog_version: u64,
    pub(super) definitions: BTreeMap<String, Definition>,
}

#[derive(Clone)]
struct PoolRows {
    pool: Pool,
    /// In a pool without reuse, the first number that nobody had.
    next: u64,
    rows: BTreeMap<u64, SlotRow>,
}

impl PoolRows {
    fn new(pool: &Pool) -> Self {
        Self { pool: pool.clone(), next: 0, rows: BTreeMap::new() }
    }
}

impl Space {
    pub(super) fn join(&mut self, member: &Member, presence: Presence, now: UnixMillis) {
        let new = MemberRow::new(member.clone(), presence, now);
        let row = match self.members.get(&member.incarnation) {
            None => Some(new),
            Some(known) => {
                let member = member.clone();
                known.renewed(presence, now).map(|row| MemberRow { member, ..row })
            }
        };
        self.members.extend(row.map(|row| (member.incarnation, row)));
        let rows = self.pools.values().flat_map(|pool| pool.rows.values());
        let holders: HashSet<Incarnation> = rows.filter_map(|row| row.holder).collect();
        self.members
            .retain(|incarnation, row| holders.contains(incarnation) || !row.forgettable(now));
    }

    /// Answers whether it was not late.
    pub(super) fn renew(
        &mut self,
        incarnation: Incarnation,
        presence: Presence,
        now: UnixMillis,
    ) -> Result<bool, ErrorKind> {
        let row =
            self.members.get_mut(&incarnation).ok_or_else(|| member::not_joined(incarnation))?;
        let renewed = row.renewed(presence, now);
        Ok(renewed.map(|renewed| *row = renewed).is_some())
    }

    /// Answers whether there was anything to do.
    /// Answers whether it was not late.
    pub(super) fn announce(
        &mut self,
        incarnation: Incarnation,
        status: &MemberStatus,
    ) -> Result<bool, ErrorKind> {
        let row =
            self.members.get_mut(&incarnation).ok_or_else(|| member::not_joined(incarnation))?;
        let announced = row.announced(status);
        Ok(announced.map(|announced| *row = announced).is_some())
    }

    pub(super) fn leave(&mut self, member: Incarnation, now: UnixMillis) -> bool {
        for row in self.pools.values_mut().flat_map(|pool| pool.rows.values_mut()) {
            if row.holder == Some(member) {
                *row = given_up(row, row.mark, now);
            }
        }
        self.members.remove(&member).is_some()
    }

    pub(super) fn row(&self, pool: &str, slot: u64) -> Option<&SlotRow> {
        self.pools.get(pool)?.rows.get(&slot)
    }

    pub(super) fn slots_mut(&mut self) -> impl Iterator<Item = (&str, &mut SlotRow)> {
        self.pools
            .iter_mut()
            .flat_map(|(name, pool)| pool.rows.values_mut().map(move |row| (name.as_str(), row)))
    }

    pub(super) fn members(&self, now: UnixMillis) -> Vec<MemberInfo> {
        self.members.values().map(|row| row.info(now)).collect()
    }

    pub(super) fn claim(&mut self, request: &ClaimRequest, now: UnixMillis) -> Step<Vec<Lease>> {
        let name = &request.pool.name;
        let stored = self.pools.get(name);
        if let Some(stored) = stored {
            request.pool.check_same(&stored.pool)?;
        }
        let rows: Vec<SlotRow> =
            stored.map_or_else(Vec::new, |pool| pool.rows.values().cloned().collect());
        let next = stored.map_or(0, |pool| pool.next);
        match choose(request, &rows, &self.members(now), self.ground, next, now, 0)? {
            Choice::Repeat(rows) => unchanged(leases(name, &rows)),
            Choice::Take { rows, next, forget } => {
                let pool =
                    self.pools.entry(name.clone()).or_insert_with(|| PoolRows::new(&request.pool));
                pool.next = next;
                pool.rows.retain(|slot, _| !forget.contains(slot));
                let leases = leases(name, &rows);
                pool.rows.extend(rows.into_iter().map(|row| (row.slot, row)));
                changed(leases)
            }
        }
    }

    fn slot(&mut self, pool: &str, slot: u64) -> Result<&mut SlotRow, ErrorKind> {
        self.pools
            .get_mut(pool)
            .and_then(|pool| pool.rows.get_mut(&slot))
            .ok_or_else(|| never_claimed(pool, slot))
    }

    /// Answers each item, and whether any mark moved.
    pub(super) fn extend(
        &mut self,
        items: &[Extend],
        now: UnixMillis,
    ) -> (Vec<Result<Mark, ErrorKind>>, bool) {
        let mut any_moved = false;
        let mut extend_one = |item: &Extend| {
            let row = self.slot(&item.pool, item.slot)?;
            if decide_extend(row, item, now)? == ExtendStep::Move {
                row.mark = item.to;
                row.extend_request = item.request;
                any_moved = true;
            }
            Ok(row.mark)
        };
        let marks = items.iter().map(&mut extend_one).collect();
        (marks, any_moved)
    }

    /// Answers whether it was not done before.
    pub(super) fn release(
        &mut self,
        release: &Release,
        now: UnixMillis,
    ) -> Result<bool, ErrorKind> {
        let row = self.slot(&release.pool, release.slot)?;
        let after = decide_release(row, release, now)?;
        Ok(after.map(|after| *row = after).is_some())
    }

    pub(super) fn take(&mut self, take: &Take, now: UnixMillis) -> Step<Taken> {
        let name = &take.pool.name;
        let members = self.members(now);
        check_take(take)?;
        check_joined(take, &members)?;
        if let Some(stored) = self.pools.get(name) {
            take.pool.check_same(&stored.pool)?;
        }
        let gone = gone(take, &members);
        let mut taken = Taken::default();
        let mut granted = Vec::new();
        for slot in &take.slots {
            let row = self.pools.get(name).and_then(|pool| pool.rows.get(slot));
            match decide_take(row, *slot, take, &members, &gone, self.ground, now) {
                TakeStep::Held(holder) => taken.held.push((*slot, holder)),
                TakeStep::Repeat(row) => taken.leases.extend(leases(name, &[row])),
                TakeStep::Grant(row) => {
                    taken.leases.extend(leases(name, std::slice::from_ref(&row)));
                    granted.push(row);
                }
            }
        }
        if granted.is_empty() && gone.is_empty() {
            return unchanged(taken);
        }
        self.members.retain(|member, _| !gone.contains(member));
        let pool = self.pools.entry(name.clone()).or_insert_with(|| PoolRows::new(&take.pool));
        pool.rows.extend(granted.into_iter().map(|row| (row.slot, row)));
        changed(taken)
    }

    /// Answers whether there was anything to do.
    pub(super) fn let_go(&mut self, let_go: &LetGo, now: UnixMillis) -> bool {
        let Some(pool) = self.pools.get_mut(&let_go.pool) else { return false };
        let mut any = false;
        for (slot, term) in &let_go.slots {
            if let Some(row) = pool.rows.get_mut(slot)
                && let Some(after) = decide_let_go(row, let_go.member, *term, now)
            {
                *row = after;
                any = true;
            }
        }
        any
    }

    pub(super) fn avoid(&mut self, avoid: &Avoid, now: UnixMillis) -> Step<()> {
        check_avoid(avoid)?;
        let name = &avoid.pool.name;
        let stored = self.pools.get(name);
        if let Some(stored) = stored {
            avoid.pool.check_same(&stored.pool)?;
        }
        let before = stored.map_or(0, |pool| pool.next);
        let row = |slot: &u64| (*slot, stored.and_then(|pool| pool.rows.get(slot)).cloned());
        let found = avoid.slots.iter().map(row).collect();
        let avoided = decide_avoid(avoid, found, &self.members(now), self.ground, before, now)?;
        if avoided.rows.is_empty() && avoided.next == before {
            return unchanged(());
        }
        let pool = self.pools.entry(name.clone()).or_insert_with(|| PoolRows::new(&avoid.pool));
        pool.next = avoided.next;
        pool.rows.extend(avoided.rows.into_iter().map(|row| (row.slot, row)));
        changed(())
    }

    pub(super) fn workers(&self, now: UnixMillis) -> Vec<SlotInfo> {
        let of_pool = |(name, pool): (&String, &PoolRows)| {
            let of_row = |row: &SlotRow| {
                let holder = row.holder.and_then(|holder| self.members.get(&holder));
                slot_info(name, row, holder.map(|row| row.info(now)).as_ref())
            };
            pool.rows.values().map(of_row).collect::<Vec<_>>()
        };
        self.pools.iter().flat_map(of_pool).collect()
    }

    pub(super) fn reserve(
        &mut self,
        reserve: &Reserve,
        clock: Option<UnixMillis>,
        writes: u64,
    ) -> Result<Segment, ErrorKind> {
        let name = &reserve.source;
        let stored = usable(self.definitions.get(name), name, reserve.definition_version)?;
        let (after, segment) = reserve.decide(&stored.segment, clock, self.catalog_version)?;
        self.write_segment(name, after);
        Ok(Segment { writes, ..segment })
    }

    pub(super) fn give_back(&mut self, back: &GiveBack) -> Result<u64, ErrorKind> {
        let stored = existing(self.definitions.get(&back.source), &back.source)?;
        let after = decide_give_back(&stored.segment, back)?;
        self.write_segment(&back.source, after);
        Ok(after.version)
    }

    fn write_segment(&mut self, name: &str, row: SegmentRow) {
        if let Some(stored) = self.definitions.get_mut(name) {
            stored.segment = row;
        }
    }

    pub(super) fn apply(&mut self, name: &str, step: CatalogStep) -> Step<Definition> {
        let stored = self.definitions.get(name);
        match (step, stored) {
            (CatalogStep::Same, Some(stored)) => unchanged(stored.clone()),
            (CatalogStep::Same, None) => {
                Err(ErrorKind::Internal { what: format!("source {name} is the same as nothing") })
            }
            (CatalogStep::Write { spec, identity, state }, stored) => {
                let segment = stored.map_or(SegmentRow::NEW, |stored| stored.segment);
                let name = name.to_owned();
                changed(self.write(Definition { name, spec, identity, version: 0, state, segment }))
            }
        }
    }

    /// Writes a definition, with a version of its own.
    pub(super) fn write(&mut self, definition: Definition) -> Definition {
        self.catalog_version += 1;
        let definition = Definition { version: self.catalog_version, ..definition };
        self.definitions.insert(definition.name.clone(), definition.clone());
        definition
    }

    pub(super) fn ground(&self) -> Ground {
        self.ground
    }

    pub(super) fn accept_lead(&mut self, until: Mark) {
        self.ground.lead_until = until;
    }

    pub(super) fn fast_forward(&mut self, forward: &FastForward) {
        self.standing.end(forward);
        for (name, pool) in &mut self.pools {
            for row in pool.rows.values_mut() {
                *row = forwarded(name, row, forward.marks_at_least);
            }
        }
        self.ground = self.ground.forwarded(forward.marks_at_least);
        for (name, mark) in &forward.segments {
            let stored = self.definitions.remove(name);
            self.definitions.insert(name.clone(), Definition::forwarded(stored, name, *mark));
        }
    }
}
