//! Limits on the worker numbers of programs, where tokens are required. They bound how far marks
//! may lie ahead, which pools exist for programs, and how many numbers the programs of one token
//! hold and name at once. A caller that may administer all sources is exempt, since it may move the
//! whole store.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use snowmint_coord::external::{check_external, scope_of};
use snowmint_coord::{
    ClaimRequest, Error as StoreError, ErrorKind, Extend, Extended, Lease, Member, PermittedPools,
    Pool, Preference, Presence, Relinquish, Result as StoreResult, SlotInfo, is_worker_pool, lock,
};
use snowmint_core::UnixMillis;
use snowmint_wire::error::Code;

use super::member_alias::MemberAlias;
use super::target_store::TargetStore;
use crate::error::Error;
use crate::service::{NotDone, Service};

/// Time for which a read of the permitted pools stays valid: the same as a node's.
const POOLS_READ_US: u64 = 1_000_000;

/// Multiple of `limits.workers_max` that a token may claim until the marks of its released numbers
/// have passed: a number whose mark lies ahead is unusable for a while. This leaves room for
/// programs that are replaced, or restart again and again. One call names as many numbers at most.
const CLAIMED_TIMES: usize = 4;

/// Multiple of `limits.workers_max` that a token may have as members: many of them may take ranges
/// alone, and hold no worker number.
const MEMBERS_TIMES: usize = 16;

/// A worker number: the secondary store, the pool, and the number.
type WorkerNumber = (String, String, u64);

/// Permitted pools of a store, and the time at which their read began.
type PoolsRead = Arc<tokio::sync::Mutex<Option<(u64, Arc<PermittedPools>)>>>;

/// Lock that one call of a token holds.
type TokenLock = Arc<tokio::sync::Mutex<()>>;

/// Limits on the members and worker numbers of each token's programs, and what counts against
/// them.
#[derive(Debug, Default)]
pub(crate) struct WorkerLimits {
    /// Last read of each store.
    pools_read: Mutex<HashMap<String, PoolsRead>>,
    /// Locks of a token's joins and claims at one store: a store that does not respond delays none
    /// at another.
    turns: Mutex<HashMap<(String, u32), TokenLock>>,
    /// Claims by token.
    claims: Mutex<HashMap<u32, Claims>>,
}

/// Recent claims of a token's programs here, and the time until which each may keep a number from
/// others. A claim whose result never arrived has no number.
#[derive(Debug, Default)]
struct Claims(Vec<(Option<WorkerNumber>, u64)>);

/// A claim: its caller and its store.
pub(crate) struct Claiming<'a> {
    pub(crate) at: &'a TargetStore,
    pub(crate) service: &'a Service,
    pub(crate) member_alias: &'a MemberAlias,
    pub(crate) now: UnixMillis,
    /// Most external leases in all scopes of a token.
    pub(crate) machines_max: u64,
}

impl WorkerLimits {
    /// Returns the pools that the definitions permit. A read parses all definitions, so there is
    /// one in [`POOLS_READ_US`] at most, for all callers. A pool of `pools` that the last read
    /// lacks may be new: its caller waits for the next.
    async fn permitted_pools(
        &self,
        at: &TargetStore,
        service: &Service,
        pools: &[&str],
    ) -> StoreResult<Arc<PermittedPools>> {
        let known =
            Arc::clone(lock(&self.pools_read).entry(at.secondary_store.clone()).or_default());
        let requested_us = service.now_us();
        loop {
            let next_us = {
                let mut known = known.lock().await;
                let now_us = service.now_us();
                let is_fresh = |read_us: u64| now_us.saturating_sub(read_us) < POOLS_READ_US;
                if let Some((read_us, permitted)) = &*known {
                    let has = |pool: &&str| !is_worker_pool(pool) || permitted.has(pool);
                    if *read_us > requested_us || is_fresh(*read_us) && pools.iter().all(has) {
                        return Ok(Arc::clone(permitted));
                    }
                }
                let last_us = known.as_ref().map(|(read_us, _)| *read_us);
                match last_us {
                    Some(last_us) if is_fresh(last_us) => last_us.saturating_add(POOLS_READ_US),
                    _ => {
                        let permitted = Arc::new(service.permitted_pools(&*at.store).await?);
                        *known = Some((now_us, Arc::clone(&permitted)));
                        return Ok(permitted);
                    }
                }
            };
            let wait_us = next_us.saturating_sub(service.now_us());
            service.peers().timer().sleep_ms(wait_us.div_ceil(1_000)).await;
        }
    }

    /// Joins a member, of those that the token may have.
    pub(crate) async fn join(
        &self,
        (at, service, member_alias): (&TargetStore, &Service, &MemberAlias),
        member: &Member,
        presence: Presence,
        now: UnixMillis,
    ) -> StoreResult<()> {
        let Some(token) = member_alias.token().filter(|_| service.caller().has_a_share()) else {
            return at.store.join(member, presence, now).await;
        };
        // Joins of a token come one after the other: each counts those before it.
        let _turn = self.turn(at, token).await;
        let mut members = at.store.members(now).await?;
        members.retain(|info| info.member.incarnation.token() == Some(token));
        let is_there = members.iter().any(|info| info.member.incarnation == member.incarnation);
        let max = most(service, MEMBERS_TIMES);
        if !is_there && members.len() >= max {
            // The store drops these rows when the next member joins.
            let now = at.store.now().await?.unwrap_or(now);
            members.retain(|info| !info.forgettable(now));
            if members.len() >= max {
                return Err(StoreError::limit_exceeded(format!(
                    "token {:?} has {} members, limit {max} ({MEMBERS_TIMES} times \
                     limits.workers_max); stop a program or raise it",
                    member_alias.name(),
                    members.len()
                )));
            }
        }
        at.store.join(member, presence, now).await
    }

    /// Extends marks of few numbers; no mark may lie further ahead than this server's own.
    pub(crate) async fn extend(
        &self,
        at: &TargetStore,
        service: &Service,
        mut items: Vec<Extend>,
        now: UnixMillis,
    ) -> StoreResult<Vec<StoreResult<Extended>>> {
        if !service.caller().has_a_share() {
            return at.store.extend(&items, now).await;
        }
        let pools: Vec<&str> = items.iter().map(|item| item.pool.as_str()).collect();
        let permitted = self.permitted_pools(at, service, &pools).await?;
        check_numbers(service, numbers(&pools, &permitted))?;
        let lower = |item: &mut Extend| {
            let own = permitted.ahead_max_ms(&item.pool, now);
            let is_lowered = item.ahead_max_ms.is_none_or(|requested| requested > own);
            item.ahead_max_ms = Some(item.ahead_max_ms.map_or(own, |requested| requested.min(own)));
            is_lowered
        };
        let lowered: Vec<bool> = items.iter_mut().map(lower).collect();
        let extended = at.store.extend(&items, now).await?;
        Ok(extended
            .into_iter()
            .zip(lowered)
            .map(|(result, lowered)| {
                result.map_err(|error| if lowered { explained(error) } else { error })
            })
            .collect())
    }

    /// Claims as many numbers as the token may have.
    pub(crate) async fn claim(
        &self,
        asking: &Claiming<'_>,
        mut claim: ClaimRequest,
    ) -> Result<Vec<Lease>, NotDone> {
        let Claiming { at, service, member_alias, now, .. } = *asking;
        let Some(token) = member_alias.token().filter(|_| service.caller().has_a_share()) else {
            return Ok(at.store.claim(&claim, now).await?);
        };
        let permitted = self.permitted_pools(at, service, &[claim.pool.name.as_str()]).await?;
        let is_external = scope_of(&claim.pool.name).is_some();
        check_pool(&claim.pool, &permitted)?;
        let _turn = self.turn(at, token).await;
        let slots = at.store.workers(now).await?;
        let ahead_us = permitted.ahead_max_ms(&claim.pool.name, now).saturating_mul(1_000);
        let until_us = service.now_us().saturating_add(ahead_us);
        if is_external {
            check_scope(asking, &claim, &slots)?;
            return Ok(at.store.claim(&claim, now).await?);
        }
        let held = held(at, token, &slots, &permitted);
        // A caller that does not wait for the response may have the numbers all the same.
        claim.count = self.claims_of(token, |claims| {
            let count = claims.left(asking, &claim, &held)?;
            claims.begin(count, until_us);
            Ok::<_, NotDone>(count)
        })?;
        let leases = at.store.claim(&claim, now).await;
        if !matches!(&leases, Err(error) if matches!(error.kind(), ErrorKind::Unavailable)) {
            self.claims_of(token, |claims| claims.end(claim.count, until_us));
        }
        let leases = leases?;
        let group = permitted.group(&claim.pool.name);
        let number =
            |lease: &Lease| (at.secondary_store.clone(), lease.pool.clone(), lease.slot / group);
        self.claims_of(token, |claims| claims.add(leases.iter().map(number), until_us));
        Ok(leases)
    }

    /// Waits for a token's earlier joins and claims at a store.
    async fn turn(&self, at: &TargetStore, token: u32) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = lock(&self.turns);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry((at.secondary_store.clone(), token)).or_default())
        };
        turn.lock_owned().await
    }

    /// Calls `act` with the claims of a token. Those of tokens without any are forgotten.
    fn claims_of<T>(&self, token: u32, act: impl FnOnce(&mut Claims) -> T) -> T {
        let mut all = lock(&self.claims);
        let claims = all.entry(token).or_default();
        let done = act(claims);
        if claims.0.is_empty() {
            all.remove(&token);
        }
        done
    }
}

impl Claims {
    /// Returns how many numbers of a claim the token may have: `limits.workers_max` at once, and a
    /// bounded number in succession. A restarted program may claim a number that the token holds.
    fn left(
        &mut self,
        asking: &Claiming<'_>,
        claim: &ClaimRequest,
        held: &HashSet<WorkerNumber>,
    ) -> Result<u32, NotDone> {
        let Claiming { at, service, member_alias, .. } = *asking;
        let pool = &claim.pool.name;
        if let Preference::Exactly(number) = claim.preference
            && held.contains(&(at.secondary_store.clone(), pool.clone(), number))
        {
            // The caller chose the count, and as many claims are remembered here.
            let named_max = u32::try_from(most(service, CLAIMED_TIMES)).unwrap_or(u32::MAX);
            return Ok(claim.count.min(named_max));
        }
        let max = service.limits().workers_max;
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        let left = most.saturating_sub(held.len());
        if left == 0 {
            let message = format!(
                "token {:?} holds {} worker numbers, limit {max} (limits.workers_max); stop a \
                 program or raise it",
                member_alias.name(),
                held.len()
            );
            return Err(StoreError::limit_exceeded(message).into());
        }
        let now_us = service.now_us();
        self.0.retain(|(_, until_us)| *until_us > now_us);
        let known = self.0.iter().filter_map(|(number, _)| number.as_ref());
        let given_up = known.clone().filter(|number| !held.contains(*number)).count();
        let without_result = self.0.len() - known.count();
        let most_claimed = most.saturating_mul(CLAIMED_TIMES);
        let left_of_late = most_claimed.saturating_sub(held.len() + given_up + without_result);
        if left_of_late == 0 {
            let until_us = self.0.iter().map(|(_, until_us)| *until_us).min().unwrap_or(now_us);
            let wait_ms = until_us.saturating_sub(now_us).div_ceil(1_000).max(1);
            let message = format!(
                "programs of token {:?} claimed {most_claimed} worker numbers ({CLAIMED_TIMES} \
                 times limits.workers_max), and marks of released ones lie ahead; retry in \
                 {wait_ms} ms",
                member_alias.name()
            );
            return Err(Error::new(Code::RateLimited, message).retry_in_ms(wait_ms).into());
        }
        let left = u32::try_from(left.min(left_of_late)).unwrap_or(u32::MAX);
        Ok(claim.count.min(left))
    }

    /// Adds this many numbers that a claim may take.
    fn begin(&mut self, count: u32, until_us: u64) {
        self.0.extend((0..count).map(|_| (None, until_us)));
    }

    /// Removes them again: the store has responded.
    fn end(&mut self, count: u32, until_us: u64) {
        for _ in 0..count {
            let begun = self.0.iter().rposition(|claim| *claim == (None, until_us));
            if let Some(begun) = begun {
                self.0.remove(begun);
            }
        }
    }

    fn add(&mut self, numbers: impl Iterator<Item = WorkerNumber>, until_us: u64) {
        for number in numbers {
            self.0.retain(|(known, _)| known.as_ref() != Some(&number));
            self.0.push((Some(number), until_us));
        }
    }
}

/// Returns this multiple of `limits.workers_max`.
fn most(service: &Service, times: usize) -> usize {
    let max = usize::try_from(service.limits().workers_max).unwrap_or(usize::MAX);
    max.saturating_mul(times)
}

/// Relinquishes few external leases.
pub(crate) async fn relinquish(
    at: &TargetStore,
    service: &Service,
    relinquish: &Relinquish,
    now: UnixMillis,
) -> StoreResult<()> {
    check_numbers(service, relinquish.slots.len())?;
    at.store.relinquish(relinquish, now).await
}

/// Rejects a call that names too many numbers: it would be a long step of the store, for which all
/// others wait.
fn check_numbers(service: &Service, named: usize) -> StoreResult<()> {
    let max = most(service, CLAIMED_TIMES);
    if !service.caller().has_a_share() || named <= max {
        return Ok(());
    }
    Err(StoreError::limit_exceeded(format!(
        "call names {named} worker numbers or external leases, limit {max} ({CLAIMED_TIMES} times \
         limits.workers_max); send fewer at once"
    )))
}

/// Returns how many numbers the slots of these pools belong to, at least. A pool that no source has
/// counts like one without clock values.
fn numbers(pools: &[&str], permitted: &PermittedPools) -> usize {
    let mut slots: HashMap<&str, usize> = HashMap::new();
    for &pool in pools {
        *slots.entry(pool).or_default() += 1;
    }
    let group = |pool: &str| usize::try_from(permitted.group(pool)).unwrap_or(usize::MAX);
    slots.into_iter().map(|(pool, slots)| slots.div_ceil(group(pool))).sum()
}

/// Returns the numbers that live programs of a token hold.
fn held(
    at: &TargetStore,
    token: u32,
    slots: &[SlotInfo],
    permitted: &PermittedPools,
) -> HashSet<WorkerNumber> {
    let is_its = |slot: &&SlotInfo| {
        slot.live
            && is_worker_pool(&slot.pool)
            && slot.holder.is_some_and(|holder| holder.token() == Some(token))
    };
    let number = |slot: &SlotInfo| {
        (at.secondary_store.clone(), slot.pool.clone(), slot.slot / permitted.group(&slot.pool))
    };
    slots.iter().filter(is_its).map(number).collect()
}

/// Checks the shape of a pool: by its name, or by the definitions.
fn check_pool(pool: &Pool, permitted: &PermittedPools) -> StoreResult<()> {
    if scope_of(&pool.name).is_some() {
        check_external(pool)?;
    } else {
        permitted.check(pool)?;
    }
    Ok(())
}

/// Rejects more external leases than all scopes of the token may have, like the CosId API: then the
/// store leases only a number that is free again.
fn check_scope(
    asking: &Claiming<'_>,
    claim: &ClaimRequest,
    slots: &[SlotInfo],
) -> Result<(), NotDone> {
    let scope = scope_of(&claim.pool.name).unwrap_or_default();
    let counts = |other: &str| other == scope || asking.service.has_leases_in(other);
    let leased =
        slots.iter().filter(|slot| !slot.is_excluded() && scope_of(&slot.pool).is_some_and(counts));
    let is_there =
        |number| slots.iter().any(|slot| slot.pool == claim.pool.name && slot.slot == number);
    let wanted = count(leased.count()).saturating_add(claim.count.into());
    match claim.preference {
        Preference::Exactly(number) if is_there(number) => Ok(()),
        _ if wanted <= asking.machines_max => Ok(()),
        _ => {
            let message = format!(
                "one more external lease in scope {scope:?} makes {wanted}, limit {} \
                 (compat.cosid.machines_max, counted over all namespaces of the token); raise it, \
                 or grant reserve over fewer namespaces",
                asking.machines_max
            );
            Err(StoreError::limit_exceeded(message).into())
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Returns the error for a mark that the program itself would have permitted.
fn explained(error: StoreError) -> StoreError {
    match *error.kind() {
        ErrorKind::ClockAhead { ahead_ms, limit_ms } => {
            let message = format!(
                "program's mark is {ahead_ms} ms ahead of the store's time, limit {limit_ms} ms \
                 (worker.window, clock.skew_max and the pool's lead_max of this server); shorten \
                 the program's window"
            );
            StoreError::clock_ahead(ahead_ms, limit_ms, message)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use snowmint_coord::MemoryStore;

    use super::*;

    fn at(secondary_store: &str) -> TargetStore {
        let store = Arc::new(MemoryStore::new("test").unwrap());
        TargetStore { store, secondary_store: secondary_store.into(), in_full: false }
    }

    /// A token's claims come one after the other, at each store.
    #[test]
    fn claims_at_one_store_delay_none_at_another() {
        let limits = WorkerLimits::default();
        let (own, other) = (at(""), at("a"));
        let slow = limits.turn(&other, 1).now_or_never().unwrap();
        assert!(limits.turn(&other, 1).now_or_never().is_none());
        assert!(limits.turn(&own, 1).now_or_never().is_some());
        drop(slow);
        assert!(limits.turn(&other, 1).now_or_never().is_some());
        assert_eq!(limits.turns.lock().unwrap().len(), 1, "others are forgotten");
    }

    #[test]
    fn claims_in_flight_count_until_the_store_responds() {
        let limits = WorkerLimits::default();
        limits.claims_of(7, |claims| claims.begin(3, 50));
        limits.claims_of(7, |claims| claims.begin(2, 60));
        limits.claims_of(7, |claims| claims.end(3, 50));
        let left: Vec<(Option<WorkerNumber>, u64)> = vec![(None, 60); 2];
        assert_eq!(limits.claims_of(7, |claims| claims.0.clone()), left);
        limits.claims_of(7, |claims| claims.end(2, 60));
        assert!(limits.claims.lock().unwrap().is_empty(), "tokens without claims are forgotten");
    }
}
