//! External leases ([`external`](crate::model::external)): worker numbers for processes that mint by
//! themselves.
//!
//! An external client knows no terms, so the servers' clocks decide here. A server with a clock too
//! far from the store's neither grants, keeps nor takes back external leases.

use snowmint_core::UnixMillis;

use super::external_cache::CachedSlot;
use super::state::{Node, NodeState};
use crate::error::{Error, ErrorKind, Result, Verb, chain};
use crate::ids::{Incarnation, Mark, Term};
use crate::model::exclusive::Relinquish;
use crate::model::external::{
    ExternalClient, ExternalLease, ExternalLeaseStatus, KEEP_MS_MAX, external_count, external_pool,
    is_external, is_external_in,
};
use crate::model::lease::{Extend, Release};
use crate::model::pool::{ClaimRequest, Pool, Preference};
use crate::model::slot::SlotInfo;
use crate::platform::random;
use crate::platform::timer::within;

/// Attempts to find a client's slots while other servers win.
const TRIES: u32 = 5;

/// Longest wait for a node that has not joined the store, and the interval of checks.
const JOIN_WAIT_MS: u64 = 1_000;
const JOIN_POLL_MS: u64 = 20;

impl Node {
    /// Grants an external lease on a number of `width` bits. The client has it until `keep_ms`
    /// after its last call. A client that has one gets the same number. When `most` numbers were
    /// granted in the scope and in the scopes that count `with` it, no new number is added: only
    /// one that is free again is granted. (Servers that grant at the same moment may exceed the
    /// limit by one each.)
    ///
    /// # Errors
    /// `PoolFull`; `LimitExceeded` beyond `most`; `Invalid`; `ClockAhead` or `ClockBehind` for a
    /// clock that is not to be trusted; `Unavailable` for the store, or while other servers win.
    pub async fn lease_external(
        &self,
        client: &ExternalClient,
        width: u32,
        keep_ms: u64,
        most: u64,
        with: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<ExternalLease> {
        let member = self.leasing_member(client).await?;
        let pool = external_pool(&client.scope, width)?;
        let core = self.core();
        let now = core.ctx.checked_time().await?;
        let until = core.until(now, keep_ms);
        let in_pool =
            |held: &[CachedSlot]| held.iter().find(|held| held.pool == pool.name).map(|it| it.slot);
        // A client that calls again may have minted until now.
        let again = |number| ExternalLease { number, after: now };
        if let Some(known) = core.external_leases.moving(client, until)
            && let Some(number) = in_pool(&known)
            && core.prolong(client, known, now, until).await?
        {
            return Ok(again(number));
        }
        let _turn = core.turn().await?;
        for _ in 0..TRIES {
            let all = core.all_external(now).await?;
            let leased = external_count(&client.scope, &all, with);
            let slots = core.of_scope(all, &client.scope, member, now).await;
            let own = slots_of(client, &slots);
            if let Some(number) = in_pool(&own) {
                if core.prolong(client, own, now, until).await? {
                    return Ok(again(number));
                }
                continue;
            }
            let wanted = preference(client, (slots.as_slice(), leased), &pool, now, most)?;
            let is_any = wanted == Preference::Any;
            match core.grant_new(member, client, pool.clone(), wanted, now, until).await {
                // Another server has granted the one that was free.
                Err(error) if !is_any && matches!(error.kind(), ErrorKind::PoolFull(_)) => {}
                granted => return granted,
            }
        }
        Err(overtaken(client))
    }

    /// Extends a client's external lease by another period.
    ///
    /// # Errors
    /// Those of [`Node::lease_external`], except `PoolFull`.
    pub async fn renew_external(
        &self,
        client: &ExternalClient,
        keep_ms: u64,
    ) -> Result<ExternalLeaseStatus> {
        let member = self.leasing_member(client).await?;
        let core = self.core();
        let now = core.ctx.checked_time().await?;
        let until = core.until(now, keep_ms);
        let had_one = core.external_leases.of(client).is_some();
        if let Some(known) = core.external_leases.moving(client, until)
            && core.prolong(client, known, now, until).await?
        {
            return Ok(ExternalLeaseStatus::Held);
        }
        let _turn = core.turn().await?;
        for _ in 0..TRIES {
            let own = slots_of(client, &core.external_in(&client.scope, member, now).await?);
            if own.is_empty() {
                core.external_leases.forget(client);
                return Ok(if had_one {
                    ExternalLeaseStatus::Lost
                } else {
                    ExternalLeaseStatus::Unknown
                });
            }
            if core.prolong(client, own, now, until).await? {
                return Ok(ExternalLeaseStatus::Held);
            }
        }
        Err(overtaken(client))
    }

    /// Releases a client's external lease. Other clients can have the number once all clocks of
    /// the namespace have passed this moment, as far apart as they may be. Returns whether the
    /// client had a number.
    ///
    /// # Errors
    /// `Unavailable` while the store is unavailable, `ClockAhead` or `ClockBehind` when our clock
    /// is not to be trusted; the number is then kept until its mark has passed.
    pub async fn release_external(&self, client: &ExternalClient) -> Result<bool> {
        let member = self.leasing_member(client).await?;
        let core = self.core();
        let now = core.ctx.checked_time().await?;
        core.external_leases.forget(client);
        let _turn = core.turn().await?;
        let end = Mark::from(now.saturating_add(core.apart_ms()));
        let mut had_one = false;
        for _ in 0..TRIES {
            let own = slots_of(client, &core.external_in(&client.scope, member, now).await?);
            had_one |= !own.is_empty();
            if core.lowered(own, now, end).await? {
                return Ok(had_one);
            }
        }
        Err(overtaken(client))
    }

    /// Returns the member under which this node grants external leases. Waits for a node that has
    /// just started; one that has not joined cannot know whether the store is still the same.
    async fn leasing_member(&self, client: &ExternalClient) -> Result<Incarnation> {
        client.check()?;
        let timer = &self.core().ctx.timer;
        let until = timer.elapsed().saturating_add(JOIN_WAIT_MS);
        loop {
            self.core().ctx.doubts.check()?;
            if let Some(own) = self.incarnation() {
                return Ok(own);
            }
            if timer.elapsed() >= until {
                return Err(Error::unavailable("store is not joined yet; retry"));
            }
            timer.sleep_ms(JOIN_POLL_MS).await;
        }
    }
}

impl NodeState {
    /// Returns the largest distance between two clocks of the namespace, in milliseconds.
    fn apart_ms(&self) -> u64 {
        self.settings.off_ms(self.ctx.store.capabilities().clock).saturating_mul(2)
    }

    /// Returns a mark that no clock of the namespace has passed before `keep_ms` are over.
    fn until(&self, now: UnixMillis, keep_ms: u64) -> Mark {
        let keep_ms = Ord::min(keep_ms, KEEP_MS_MAX).saturating_add(self.apart_ms());
        Mark::from(now.saturating_add(keep_ms))
    }

    /// Waits for the turn to read all slots, which is the costly part. Clients that call at the
    /// same time, or make up names, load the store no more than one client does.
    async fn turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>> {
        let turn = self.external_leases.turn.lock();
        let turn = within(&*self.ctx.timer, self.ctx.store_call_ms, turn).await;
        let busy = || Error::unavailable("external leases are busy with other calls; retry");
        turn.ok_or_else(busy)
    }

    /// Returns the slots of present and past external leases, in all scopes.
    async fn all_external(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let ctx = &self.ctx;
        let mut slots = ctx.store_call(Verb::Workers, self.reads.workers(now)).await?;
        slots.retain(|slot| is_external(&slot.pool) && !slot.is_excluded());
        Ok(slots)
    }

    /// Returns those of one scope.
    async fn external_in(
        &self,
        scope: &str,
        member: Incarnation,
        now: UnixMillis,
    ) -> Result<Vec<SlotInfo>> {
        let all = self.all_external(now).await?;
        Ok(self.of_scope(all, scope, member, now).await)
    }

    /// Returns the slots of a scope. The holder of the turn grants nothing else meanwhile, so slots
    /// that this node holds are leftovers, and are relinquished.
    async fn of_scope(
        &self,
        mut slots: Vec<SlotInfo>,
        scope: &str,
        member: Incarnation,
        now: UnixMillis,
    ) -> Vec<SlotInfo> {
        slots.retain(|slot| is_external_in(&slot.pool, scope));
        for slot in slots.iter_mut().filter(|slot| slot.holder == Some(member)) {
            if !self.relinquish(member, &slot.pool, slot.slot, slot.term, now).await {
                break;
            }
            (slot.holder, slot.term) = (None, slot.term.next());
        }
        slots
    }

    /// Relinquishes a number that its mark protects: a held slot would not become free when the
    /// mark has passed. It is not [released](Release), which lowers the mark: a release may arrive
    /// late, after the mark was moved.
    async fn relinquish(
        &self,
        member: Incarnation,
        pool: &str,
        slot: u64,
        term: Term,
        now: UnixMillis,
    ) -> bool {
        let (ctx, store) = (&self.ctx, &self.ctx.store);
        let relinquish = Relinquish { pool: pool.to_owned(), member, slots: vec![(slot, term)] };
        let result = ctx.store_call(Verb::Relinquish, store.relinquish(&relinquish, now)).await;
        if let Err(error) = &result {
            tracing::warn!(pool, slot, error = %chain(error), "failed to relinquish the slot of an external lease");
        }
        result.is_ok()
    }

    /// Claims a free number, and leaves it to its mark.
    async fn grant_new(
        &self,
        member: Incarnation,
        client: &ExternalClient,
        pool: Pool,
        preference: Preference,
        now: UnixMillis,
        until: Mark,
    ) -> Result<ExternalLease> {
        let ctx = &self.ctx;
        let request = ClaimRequest {
            pool,
            member,
            owner: client.label.clone(),
            count: 1,
            preference,
            supersedes: None,
            mark_at_most: Mark::from(now),
            request: random::request()?,
        };
        let leases = ctx.store_call(Verb::Claim, ctx.store.claim(&request, now)).await?;
        let lease = leases.into_iter().next().ok_or_else(|| overtaken(client))?;
        let (number, after) = (lease.slot, lease.floor.unix_millis());
        let term = lease.term;
        let held = self.moved(vec![CachedSlot::from(lease)], now, until).await?;
        let Some(mut held) = held else { return Err(overtaken(client)) };
        // The mark protects it from here on. If the store does not confirm the relinquish, the next
        // read of the scope repeats it, or the end of this node does. Until then the term is not
        // known here, and is read when the client calls again.
        let mut given_up = true;
        for CachedSlot { pool, slot, .. } in &held {
            given_up &= self.relinquish(member, pool, *slot, term, now).await;
        }
        if given_up {
            held.iter_mut().for_each(|held| held.term = term.next());
            self.external_leases.know(client, held, now);
        }
        Ok(ExternalLease { number, after })
    }

    /// Moves the marks of a client's slots ahead. Returns false when another server moved or has
    /// one.
    async fn prolong(
        &self,
        client: &ExternalClient,
        held: Vec<CachedSlot>,
        now: UnixMillis,
        until: Mark,
    ) -> Result<bool> {
        let moved = self.moved(held, now, until).await?;
        let done = moved.is_some();
        if let Some(held) = moved {
            self.external_leases.know(client, held, now);
        }
        Ok(done)
    }

    /// Moves the marks of slots at least to `to`, and each one by at least 1: the mark then tells
    /// earlier requests that arrive later apart. Returns none when another server was faster.
    async fn moved(
        &self,
        mut held: Vec<CachedSlot>,
        now: UnixMillis,
        to: Mark,
    ) -> Result<Option<Vec<CachedSlot>>> {
        let ctx = &self.ctx;
        let mut items = Vec::with_capacity(held.len());
        for held in &mut held {
            let to = to.max(Mark::new(held.mark.get().saturating_add(1)));
            items.push(Extend {
                pool: held.pool.clone(),
                slot: held.slot,
                term: held.term,
                // The slot belongs to the external client, and has no member as its holder.
                holder: None,
                from: held.mark,
                to,
                request: random::request()?,
                ahead_max_ms: None,
            });
            held.mark = to;
        }
        for result in ctx.extend(&items, now).await? {
            match result {
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Fenced | ErrorKind::MarkMoved { .. } | ErrorKind::NotFound => {
                        return Ok(None);
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(Some(held))
    }

    /// Lowers the marks of slots to at most `end`. Returns false when one was extended meanwhile.
    async fn lowered(&self, held: Vec<CachedSlot>, now: UnixMillis, end: Mark) -> Result<bool> {
        let ctx = &self.ctx;
        for CachedSlot { pool, slot, term, mark } in held {
            // A client that gets it again has the same term. If this release arrives late, `from`
            // rejects it.
            let from = Some(mark);
            let (holder, mark) = (None, Ord::min(mark, end));
            let release = Release { pool, slot, term, holder, mark, from };
            match ctx.store_call(Verb::Release, ctx.store.release(&release, now)).await {
                // Another server gave it back, or has it since.
                Err(error) if matches!(error.kind(), ErrorKind::Fenced) => {}
                Err(error) if matches!(error.kind(), ErrorKind::MarkMoved { .. }) => {
                    return Ok(false);
                }
                released => released?,
            }
        }
        Ok(true)
    }
}

/// Returns the slots of a scope that a client has, or was the last to have.
fn slots_of(client: &ExternalClient, slots: &[SlotInfo]) -> Vec<CachedSlot> {
    slots.iter().filter(|slot| client.had_last(slot)).cloned().map(CachedSlot::from).collect()
}

/// Returns the preference for a client without a number: any number, while fewer than `most` are
/// granted; else the one of the pool that has been free for longest.
fn preference(
    client: &ExternalClient,
    (slots, leased): (&[SlotInfo], u64),
    pool: &Pool,
    now: UnixMillis,
    most: u64,
) -> Result<Preference> {
    if leased < most {
        return Ok(Preference::Any);
    }
    let is_free = |slot: &&SlotInfo| {
        slot.pool == pool.name && slot.holder.is_none() && slot.mark <= Mark::from(now)
    };
    match slots.iter().filter(is_free).min_by_key(|slot| slot.mark) {
        Some(slot) => Ok(Preference::Exactly(slot.slot)),
        None => Err(Error::limit_exceeded(format!(
            "one more external lease in scope {:?} makes {}, limit {most} \
             (compat.cosid.machines_max, counted over all namespaces of the token); raise it, or \
             grant reserve over fewer namespaces",
            client.scope,
            leased.saturating_add(1)
        ))),
    }
}

fn overtaken(ExternalClient { label, .. }: &ExternalClient) -> Error {
    Error::unavailable(format!("other servers changed the external lease of {label:?}; retry"))
}
