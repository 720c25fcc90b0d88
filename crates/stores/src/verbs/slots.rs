//! The verbs on slots.

use std::collections::HashMap;

use async_trait::async_trait;
use snowmint_coord::lease::{
    ExtendStep, decide_extend, decide_release, forwarded, never_claimed, slot_info,
};
use snowmint_coord::pool::{Choice, choose, leases};
use snowmint_coord::{
    ClaimRequest, Error, ErrorKind, Extend, Extended, FastForward, Incarnation, Lease, Mark,
    MemberInfo, Release, Result, SlotInfo, SlotRow, StoreIdentity,
};
use snowmint_core::UnixMillis;

use super::members::infos;
use super::{Access, Answer, Failure, NamespaceRow, Rows, Step, Verb};

pub(super) struct Claim<'a> {
    pub(super) request: &'a ClaimRequest,
    pub(super) now: UnixMillis,
}

#[async_trait]
impl Verb for Claim<'_> {
    type Answer = Vec<Lease>;
    const OP: &'static str = "claim";

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Vec<Lease>> {
        let pool = &self.request.pool;
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
        match choose(self.request, &before, &members, ground, next, now)? {
            Choice::Repeat(taken) => Ok((leases(&pool.name, &taken), false)),
            Choice::Take { rows: taken, next, forget } => {
                rows.put_pool(pool, next).await?;
                rows.remove_slots(&pool.name, &forget).await?;
                rows.put_slots(&pool.name, &taken).await?;
                Ok((leases(&pool.name, &taken), true))
            }
        }
    }
}

pub(super) struct Extends<'a> {
    pub(super) items: &'a [Extend],
    pub(super) now: UnixMillis,
}

#[async_trait]
impl Verb for Extends<'_> {
    type Answer = Vec<Result<Extended>>;
    const OP: &'static str = "extend";

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Vec<Result<Extended>>> {
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
        let writes = if any_moved { rows.writes_after() } else { rows.identity().writes };
        let extended = |mark| Extended { mark, catalog_version, writes };
        Ok((marks.into_iter().map(|mark| mark.map(extended)).collect(), any_moved))
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

pub(super) struct Forward<'a> {
    pub(super) forward: &'a FastForward,
    /// What the store is called if it is to have a new identity.
    pub(super) new_id: String,
}

#[async_trait]
impl Verb for Forward<'_> {
    type Answer = StoreIdentity;
    const OP: &'static str = "fast_forward";
    const ACCESS: Access = Access::Forward;

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, StoreIdentity> {
        let forward = self.forward;
        forward.check()?;
        for (name, mark) in &forward.segments {
            let Some(mut stored) = rows.definition(name).await? else {
                return Err(ErrorKind::NotFound { what: format!("source {name:?}") }.into());
            };
            stored.segment = stored.segment.forwarded(*mark);
            rows.put_definition(&stored).await?;
        }
        for (pool, row) in rows.all_slots().await? {
            rows.put_slots(&pool, &[forwarded(&row, forward.marks_at_least)]).await?;
        }
        let namespace = rows.namespace().await?;
        let ground = namespace.ground.forwarded(forward.marks_at_least);
        rows.put_namespace(NamespaceRow { ground, ..namespace }).await?;
        let mut identity = rows.identity().clone();
        identity.writes = identity.writes.max(forward.writes_at_least);
        if forward.new_identity {
            identity.id.clone_from(&self.new_id);
        }
        rows.accept(identity.clone()).await?;
        identity.writes = rows.writes_after();
        Ok((identity, true))
    }
}
