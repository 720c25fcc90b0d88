//! The verbs on slots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::members::infos;
use super::put::put_slots;
use super::rows::{Backend, FirstRow, Rows, RowsResult, VerbResult};
use super::run_verb::{RunVerb, step_slots, steps};
use crate::error::{ErrorKind, Result, Verb};
use crate::ids::{Incarnation, Mark};
use crate::model::lease::{
    Extend, ExtendStep, Extended, Lease, Release, SlotRow, decide_extend, decide_release,
    never_claimed,
};
use crate::model::member::MemberInfo;
use crate::model::pool::{
    Choice, ClaimRequest, asks_for_holders, check_claim, check_group, check_request, choose, leases,
};
use crate::model::slot::{SlotInfo, slot_info};
use crate::store::Store as _;

struct ClaimVerb<'a, B> {
    /// Source of random numbers.
    backend: &'a B,
    request: &'a ClaimRequest,
    /// Number of groups that earlier steps of the same request have claimed.
    before: u32,
    now: UnixMillis,
    /// Number of attempts.
    tries: AtomicU32,
}

/// Number of candidates among which an overtaken claim chooses, after one lost attempt and at most.
/// It grows fourfold with each attempt.
const PASS_FIRST: u32 = 4;
const PASS_MAX: u32 = 1024;

/// Result of one step of a claim.
struct Claimed {
    leases: Vec<Lease>,
    /// Number of groups that did not fit into the step.
    left: u32,
}

#[async_trait]
impl<B: Backend> RunVerb for ClaimVerb<'_, B> {
    type Output = Claimed;
    const VERB: Verb = Verb::Claim;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Claimed> {
        let pool = &self.request.pool;
        check_claim(self.request)?;
        check_request(self.request)?;
        let now = rows.time(self.now);
        let next = match rows.pool(&pool.name).await? {
            Some((stored, next)) => {
                pool.check_same(&stored)?;
                next
            }
            None => 0,
        };
        let before = rows.slots(&pool.name).await?;
        let ground = rows.namespace().await?.ground;
        let (request, left) = self.fitting(R::WRITES_MAX);
        let pass = self.pass()?;
        let members = if asks_for_holders(&request, &before, ground, pass) {
            infos(rows, now).await?
        } else {
            let claimer = rows.member(request.member).await?;
            claimer.iter().map(|row| row.info(now)).collect()
        };
        match choose(&request, &before, &members, ground, next, now, pass)? {
            Choice::Repeat(claimed_rows) => {
                Ok((Claimed { leases: leases(&pool.name, &claimed_rows), left: 0 }, false))
            }
            Choice::Claim { rows: mut claimed_rows, next, mut forget } => {
                for row in &mut claimed_rows {
                    row.claim_request = self.request.request;
                }
                forget.truncate(R::WRITES_MAX.saturating_sub(claimed_rows.len()));
                rows.hold_member(self.request.member).await?;
                rows.put_pool(pool, next).await?;
                rows.remove_slots(&pool.name, &forget).await?;
                rows.put_slots(&pool.name, &claimed_rows).await?;
                Ok((Claimed { leases: leases(&pool.name, &claimed_rows), left }, true))
            }
        }
    }
}

impl<'a, B: Backend> ClaimVerb<'a, B> {
    const fn new(backend: &'a B, request: &'a ClaimRequest, before: u32, now: UnixMillis) -> Self {
        Self { backend, request, before, now, tries: AtomicU32::new(0) }
    }

    /// Returns how many numbers this attempt skips: claims that collided choose different ones.
    fn pass(&self) -> Result<usize> {
        let Some(lost) = self.tries.fetch_add(1, Ordering::Relaxed).checked_sub(1) else {
            return Ok(0);
        };
        let among = PASS_FIRST.saturating_mul(4_u32.saturating_pow(lost)).min(PASS_MAX);
        let number = self.backend.random()?;
        Ok(usize::try_from(number % u64::from(among)).unwrap_or(0))
    }

    /// Returns the request for the remaining groups that fit into one step, and how many groups do
    /// not fit.
    fn fitting(&self, writes_max: usize) -> (ClaimRequest, u32) {
        let mut request = self.request.clone();
        if self.before > 0 {
            // The groups of the earlier steps must not be taken for a repeat.
            request.request = 0;
        }
        let wanted = request.count.saturating_sub(self.before);
        let groups =
            u64::try_from(writes_max).unwrap_or(u64::MAX) / u64::from(request.pool.group.max(1));
        request.count = wanted.min(u32::try_from(groups.max(1)).unwrap_or(u32::MAX));
        let left = wanted - request.count;
        (request, left)
    }
}

/// Moves marks, each from where it is.
#[derive(Debug)]
pub struct ExtendVerb<'a> {
    /// Slots, each with its new mark.
    pub items: &'a [Extend],
    /// Time of the caller.
    pub now: UnixMillis,
}

#[async_trait]
impl RunVerb for ExtendVerb<'_> {
    /// Marks, and the version of the catalog.
    type Output = (Vec<Result<Mark>>, u64);
    const VERB: Verb = Verb::Extend;

    fn first_row(&self) -> Option<FirstRow<'_>> {
        match self.items {
            [item] if item.slot <= Mark::MAX.get() => Some(FirstRow::Slot(&item.pool, item.slot)),
            _ => None,
        }
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output> {
        let now = rows.time(self.now);
        let mut slots = self.slots(rows).await?;
        let mut moved = BTreeSet::new();
        let mut marks = Vec::with_capacity(self.items.len());
        for item in self.items {
            let name = (item.pool.as_str(), item.slot);
            let row = slots.get_mut(&name).ok_or_else(|| never_claimed(name.0, name.1));
            let step = row.and_then(|row| extend(row, item, now));
            if matches!(step, Ok(ExtendStep::Move)) {
                moved.insert(name);
            }
            let moved = step.map(|_| item.to);
            marks.push(moved.map_err(|error| error.with_verb(Verb::Extend)));
        }
        slots.retain(|name, _| moved.contains(name));
        put_slots(rows, slots.into_iter().map(|((pool, _), row)| (pool, row))).await?;
        let catalog_version = rows.namespace().await?.catalog_version;
        Ok(((marks, catalog_version), !moved.is_empty()))
    }
}

impl<'a> ExtendVerb<'a> {
    /// Returns the rows of all slots to extend, where they exist.
    async fn slots<R: Rows>(
        &self,
        rows: &mut R,
    ) -> RowsResult<R, BTreeMap<(&'a str, u64), SlotRow>> {
        let mut wanted: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        // A number above the highest mark was never claimed.
        for item in self.items.iter().filter(|item| item.slot <= Mark::MAX.get()) {
            wanted.entry(&item.pool).or_default().insert(item.slot);
        }
        let mut found = BTreeMap::new();
        for (pool, slots) in wanted {
            let slots: Vec<u64> = slots.into_iter().collect();
            for (slot, row) in rows.named_slots(pool, &slots).await? {
                found.extend(row.map(|row| ((pool, slot), row)));
            }
        }
        Ok(found)
    }
}

fn extend(row: &mut SlotRow, item: &Extend, now: UnixMillis) -> Result<ExtendStep> {
    let step = decide_extend(row, item, now)?;
    if step == ExtendStep::Move {
        (row.mark, row.extend_request) = (item.to, item.request);
    }
    Ok(step)
}

async fn slot<R: Rows>(rows: &mut R, pool: &str, slot: u64) -> RowsResult<R, SlotRow> {
    // A number above the highest mark was never claimed.
    let row = if slot > Mark::MAX.get() { None } else { rows.slot(pool, slot).await? };
    row.ok_or_else(|| never_claimed(pool, slot).into())
}

async fn release<R: Rows>(rows: &mut R, release: &Release, now: UnixMillis) -> VerbResult<R, ()> {
    let Release { pool, slot: number, .. } = release;
    let row = slot(rows, pool, *number).await?;
    let after = decide_release(&row, release, rows.time(now))?;
    if let Some(after) = &after {
        rows.put_slots(pool, std::slice::from_ref(after)).await?;
    }
    Ok(((), after.is_some()))
}

async fn workers<R: Rows>(rows: &mut R, now: UnixMillis) -> VerbResult<R, Vec<SlotInfo>> {
    let now = rows.time(now);
    let members: HashMap<Incarnation, MemberInfo> =
        infos(rows, now).await?.into_iter().map(|info| (info.member.incarnation, info)).collect();
    let mut slots = rows.all_slots().await?;
    slots.sort_by(|(pool, row), (other, than)| (pool, row.slot).cmp(&(other, than.slot)));
    let info = |(pool, row): &(String, SlotRow)| {
        slot_info(pool, row, row.holder.and_then(|holder| members.get(&holder)))
    };
    Ok((slots.iter().map(info).collect(), false))
}

steps! {
    Release: fn release(release: &'a Release, now: UnixMillis) -> ();
    Workers: fn workers(now: UnixMillis) -> Vec<SlotInfo>;
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn claim(
        &self,
        request: &ClaimRequest,
        now: UnixMillis,
    ) -> Result<Vec<Lease>> {
        check_group(&request.pool, self.group_max())
            .map_err(|error| error.with_verb(Verb::Claim))?;
        // Concurrent claims of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut claimed = self.output_of(ClaimVerb::new(&self.backend, request, 0, now)).await?;
        let mut leases = claimed.leases;
        while claimed.left > 0 {
            let before = request.count - claimed.left;
            claimed =
                match self.output_of(ClaimVerb::new(&self.backend, request, before, now)).await {
                    Ok(claimed) => claimed,
                    // Fewer groups are free than requested.
                    Err(error) if matches!(error.kind(), ErrorKind::PoolFull(_)) => break,
                    Err(error) => return Err(error),
                };
            leases.append(&mut claimed.leases);
        }
        Ok(leases)
    }

    pub(super) async fn extend(
        &self,
        items: &[Extend],
        now: UnixMillis,
    ) -> Result<Vec<Result<Extended>>> {
        if let [item] = items
            && let Some(extended) = self.try_fast_extend(item, now).await?
        {
            return Ok(vec![Ok(extended)]);
        }
        let mut extended = Vec::with_capacity(items.len());
        for items in items.chunks(step_slots(<B::Rows as Rows>::WRITES_MAX)) {
            let ((marks, catalog_version), writes) = self.run(ExtendVerb { items, now }).await?;
            self.catalog_seen.store(catalog_version, Ordering::SeqCst);
            let with_mark = |mark| Extended { mark, catalog_version, writes };
            extended.extend(marks.into_iter().map(|mark| mark.map(with_mark)));
        }
        Ok(extended)
    }
}
