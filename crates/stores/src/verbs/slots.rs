//! The verbs on slots.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use snowmint_coord::lease::{ExtendStep, decide_extend, decide_release, never_claimed, slot_info};
use snowmint_coord::pool::{Choice, check_claim, choose, leases};
use snowmint_coord::{
    ClaimRequest, Error, ErrorKind, Extend, Incarnation, Lease, Mark, MemberInfo, Release, Result,
    SlotInfo, SlotRow, random,
};
use snowmint_core::UnixMillis;

use super::members::infos;
use super::{Access, Answer, Failure, Rows, Step, Verb};

pub(super) struct Claim<'a> {
    request: &'a ClaimRequest,
    /// How many groups an earlier step of the same request has taken.
    before: u32,
    now: UnixMillis,
    /// How often it was tried.
    tries: AtomicU32,
}

/// How many numbers a claim that was overtaken chooses among, after one lost try and at most. It grows
/// fourfold with each.
const PASS_FIRST: u32 = 4;
const PASS_MAX: u32 = 1024;

/// What one step of a claim has taken.
pub(super) struct Claimed {
    pub(super) leases: Vec<Lease>,
    /// How many groups did not fit into the step.
    pub(super) left: u32,
}

#[async_trait]
impl Verb for Claim<'_> {
    type Answer = Claimed;
    const OP: &'static str = "claim";

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Claimed> {
        let pool = &self.request.pool;
        check_claim(self.request)?;
        let now = rows.time(self.now);
        let next = match rows.pool(&pool.name).await? {
            Some((stored, next)) => {
                pool.check_same(&stored)?;
                next
            }
            None => 0,
        };
        let before = rows.slots(&pool.name).await?;
        let members = infos(rows, now).await?;
        let ground = rows.namespace().await?.ground;
        let (request, left) = self.fitting(R::WRITES_MAX);
        match choose(&request, &before, &members, ground, next, now, self.pass()?)? {
            Choice::Repeat(taken) => {
                Ok((Claimed { leases: leases(&pool.name, &taken), left: 0 }, false))
            }
            Choice::Take { rows: mut taken, next, mut forget } => {
                for row in &mut taken {
                    row.claim_request = self.request.request;
                }
                forget.truncate(R::WRITES_MAX.saturating_sub(taken.len()));
                rows.hold_member(self.request.member).await?;
                rows.put_pool(pool, next).await?;
                rows.remove_slots(&pool.name, &forget).await?;
                rows.put_slots(&pool.name, &taken).await?;
                Ok((Claimed { leases: leases(&pool.name, &taken), left }, true))
            }
        }
    }
}

impl<'a> Claim<'a> {
    pub(super) const fn new(request: &'a ClaimRequest, before: u32, now: UnixMillis) -> Self {
        Self { request, before, now, tries: AtomicU32::new(0) }
    }

    /// How many numbers to pass over in this try: those who lost to each other take different ones.
    fn pass(&self) -> Result<usize, ErrorKind> {
        let Some(lost) = self.tries.fetch_add(1, Ordering::Relaxed).checked_sub(1) else {
            return Ok(0);
        };
        let among = PASS_FIRST.saturating_mul(4_u32.saturating_pow(lost)).min(PASS_MAX);
        let number = random::number().map_err(|error| error.kind().clone())?;
        Ok(usize::try_from(number % u64::from(among)).unwrap_or(0))
    }

    /// The request for what is still wanted and fits into one step, and how many groups do not fit.
    fn fitting(&self, writes_max: usize) -> (ClaimRequest, u32) {
        let mut request = self.request.clone();
        if self.before > 0 {
            // What the steps before have taken is no repeat.
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

pub(super) struct Extends<'a> {
    pub(super) items: &'a [Extend],
    pub(super) now: UnixMillis,
}

#[async_trait]
impl Verb for Extends<'_> {
    /// The marks, and the version of the catalog.
    type Answer = (Vec<Result<Mark>>, u64);
    const OP: &'static str = "extend";

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Self::Answer> {
        let now = rows.time(self.now);
        let mut any_moved = false;
        let mut marks = Vec::with_capacity(self.items.len());
        for item in self.items {
            marks.push(match extend(rows, item, now).await {
                Ok((mark, moved)) => {
                    any_moved |= moved;
                    Ok(mark)
                }
                Err(Failure::Refused(kind)) => Err(Error::new(Self::OP, kind)),
                Err(failure) => return Err(failure),
            });
        }
        let catalog_version = rows.namespace().await?.catalog_version;
        Ok(((marks, catalog_version), any_moved))
    }
}

async fn extend<R: Rows>(rows: &mut R, item: &Extend, now: UnixMillis) -> Step<R, Mark> {
    let row = slot(rows, &item.pool, item.slot).await?;
    let moved = decide_extend(&row, item, now)? == ExtendStep::Move;
    if moved {
        let after = SlotRow { mark: item.to, extend_request: item.request, ..row };
        rows.put_slots(&item.pool, &[after]).await?;
    }
    Ok((item.to, moved))
}

async fn slot<R: Rows>(rows: &mut R, pool: &str, slot: u64) -> Answer<R, SlotRow> {
    // A number that no mark can have was never claimed.
    let row = if slot > Mark::MAX.get() { None } else { rows.slot(pool, slot).await? };
    row.ok_or_else(|| never_claimed(pool, slot).into())
}

pub(super) struct Releases<'a> {
    pub(super) release: &'a Release,
    pub(super) now: UnixMillis,
}

#[async_trait]
impl Verb for Releases<'_> {
    type Answer = ();
    const OP: &'static str = "release";

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, ()> {
        let Release { pool, slot: number, .. } = self.release;
        let row = slot(rows, pool, *number).await?;
        let after = decide_release(&row, self.release, rows.time(self.now))?;
        if let Some(after) = &after {
            rows.put_slots(pool, std::slice::from_ref(after)).await?;
        }
        Ok(((), after.is_some()))
    }
}

pub(super) struct Workers {
    pub(super) now: UnixMillis,
}

#[async_trait]
impl Verb for Workers {
    type Answer = Vec<SlotInfo>;
    const OP: &'static str = "workers";
    const ACCESS: Access = Access::Read;

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Vec<SlotInfo>> {
        let now = rows.time(self.now);
        let members: HashMap<Incarnation, MemberInfo> = infos(rows, now)
            .await?
            .into_iter()
            .map(|info| (info.member.incarnation, info))
            .collect();
        let mut slots = rows.all_slots().await?;
        slots.sort_by(|(pool, row), (other, than)| (pool, row.slot).cmp(&(other, than.slot)));
        let info = |(pool, row): &(String, SlotRow)| {
            slot_info(pool, row, row.holder.and_then(|holder| members.get(&holder)))
        };
        Ok((slots.iter().map(info).collect(), false))
    }
}
