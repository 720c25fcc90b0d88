//! External leases ([`lend`](crate::lend)): worker numbers for processes that mint by themselves.
//!
//! An external client knows no terms, so the servers' clocks decide here. A server with a clock too
//! far from the store's neither grants, keeps nor takes back external leases.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use snowmint_core::UnixMillis;

use super::{Core, Node};
use crate::error::{Error, ErrorKind, Result, Verb, chain};
use crate::lease::{ClaimRequest, Extend, Lease, Mark, Preference, Release, Term};
use crate::lend::{Borrower, KEEP_MS_MAX, Lent, Loan, is_lent, is_lent_in, lent_pool, lent_with};
use crate::member::Incarnation;
use crate::ordered::Relinquish;
use crate::pool::Pool;
use crate::random;
use crate::slot::SlotInfo;

/// Attempts to find a client's slots while other servers win.
const TRIES: u32 = 5;

/// Slot of an external lease, as it was last seen.
#[derive(Clone, Debug)]
struct Held {
    pool: String,
    slot: u64,
    term: Term,
    mark: Mark,
}

impl From<SlotInfo> for Held {
    fn from(info: SlotInfo) -> Self {
        Self { pool: info.pool, slot: info.slot, term: info.term, mark: info.mark }
    }
}

impl From<Lease> for Held {
    fn from(lease: Lease) -> Self {
        Self { pool: lease.pool, slot: lease.slot, term: lease.term, mark: lease.mark }
    }
}

/// Cache of the external leases granted through this node, so that keeping one takes one write and
/// no search. It may be stale: the store knows.
#[derive(Debug, Default)]
pub(super) struct Lendings {
    known: Mutex<HashMap<Borrower, Vec<Held>>>,
    /// Lock that the one reader of all slots holds.
    turn: tokio::sync::Mutex<()>,
}

impl Lendings {
    fn known(&self) -> MutexGuard<'_, HashMap<Borrower, Vec<Held>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, borrower: &Borrower) -> Option<Vec<Held>> {
        self.known().get(borrower).cloned()
    }

    fn know(&self, borrower: &Borrower, held: Vec<Held>, now: UnixMillis) {
        let mut known = self.known();
        if !known.contains_key(borrower) {
            // Clients that do not return must not fill the memory.
            known.retain(|_, held| held.iter().any(|held| held.mark.unix_millis() > now));
        }
        known.insert(borrower.clone(), held);
    }

    /// Returns a client's known slots, if all marks must move to reach `until`. An unmoved mark
    /// would be trusted without asking the store.
    fn moving(&self, borrower: &Borrower, until: Mark) -> Option<Vec<Held>> {
        self.of(borrower).filter(|held| held.iter().all(|held| held.mark < until))
    }

    fn forget(&self, borrower: &Borrower) {
        self.known().remove(borrower);
    }
}

/// Longest wait for a node that has not joined the store, and the interval of checks.
const JOIN_WAIT_MS: u64 = 1_000;
const JOIN_LOOK_MS: u64 = 20;

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
    pub async fn lend(
        &self,
        borrower: &Borrower,
        width: u32,
        keep_ms: u64,
        most: u64,
        with: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Lent> {
        let member = self.lender(borrower).await?;
        let pool = lent_pool(&borrower.space, width)?;
        let core = self.core();
        let now = core.around.checked_time().await?;
        let until = core.until(now, keep_ms);
        let in_pool =
            |held: &[Held]| held.iter().find(|held| held.pool == pool.name).map(|it| it.slot);
        // A client that calls again may have minted until now.
        let again = |number| Lent { number, after: now };
        if let Some(known) = core.lendings.moving(borrower, until)
            && let Some(number) = in_pool(&known)
            && core.prolong(borrower, known, now, until).await?
        {
            return Ok(again(number));
        }
        let _turn = core.turn().await?;
        for _ in 0..TRIES {
            let all = core.all_lent(now).await?;
            let lent = lent_with(&borrower.space, &all, with);
            let space = core.of_space(all, &borrower.space, member, now).await;
            let own = lent_to(borrower, &space);
            if let Some(number) = in_pool(&own) {
                if core.prolong(borrower, own, now, until).await? {
                    return Ok(again(number));
                }
                continue;
            }
            let wanted = preference(borrower, (space.as_slice(), lent), &pool, now, most)?;
            let is_any = wanted == Preference::Any;
            match core.lend_anew(member, borrower, pool.clone(), wanted, now, until).await {
                // Another server has granted the one that was free.
                Err(error) if !is_any && matches!(error.kind(), ErrorKind::PoolFull(_)) => {}
                lent => return lent,
            }
        }
        Err(overtaken(borrower))
    }

    /// Extends a client's external lease by another period.
    ///
    /// # Errors
    /// Those of [`Node::lend`], except `PoolFull`.
    pub async fn keep_lent(&self, borrower: &Borrower, keep_ms: u64) -> Result<Loan> {
        let member = self.lender(borrower).await?;
        let core = self.core();
        let now = core.around.checked_time().await?;
        let until = core.until(now, keep_ms);
        let had_one = core.lendings.of(borrower).is_some();
        if let Some(known) = core.lendings.moving(borrower, until)
            && core.prolong(borrower, known, now, until).await?
        {
            return Ok(Loan::Held);
        }
        let _turn = core.turn().await?;
        for _ in 0..TRIES {
            let own = lent_to(borrower, &core.lent_in(&borrower.space, member, now).await?);
            if own.is_empty() {
                core.lendings.forget(borrower);
                return Ok(if had_one { Loan::Lost } else { Loan::Unknown });
            }
            if core.prolong(borrower, own, now, until).await? {
                return Ok(Loan::Held);
            }
        }
        Err(overtaken(borrower))
    }

    /// Takes back a client's external lease. Other clients can have the number once all clocks of
    /// the namespace have passed this moment, as far apart as they may be. Returns whether the
    /// client had a number.
    ///
    /// # Errors
    /// `Unavailable` while the store is unavailable, `ClockAhead` or `ClockBehind` when our clock
    /// is not to be trusted; the number is then kept until its mark has passed.
    pub async fn take_back(&self, borrower: &Borrower) -> Result<bool> {
        let member = self.lender(borrower).await?;
        let core = self.core();
        let now = core.around.checked_time().await?;
        core.lendings.forget(borrower);
        let _turn = core.turn().await?;
        let end = Mark::from(now.saturating_add(core.apart_ms()));
        let mut had_one = false;
        for _ in 0..TRIES {
            let own = lent_to(borrower, &core.lent_in(&borrower.space, member, now).await?);
            had_one |= !own.is_empty();
            if core.lowered(own, now, end).await? {
                return Ok(had_one);
            }
        }
        Err(overtaken(borrower))
    }

    /// Returns the member under which this node grants external leases. Waits for a node that has
    /// just started; one that has not joined cannot know whether the store is still the same.
    async fn lender(&self, borrower: &Borrower) -> Result<Incarnation> {
        borrower.check()?;
        let timer = &self.core().around.timer;
        let until = timer.elapsed().saturating_add(JOIN_WAIT_MS);
        loop {
            if let Some(own) = self.incarnation() {
                return Ok(own);
            }
            if timer.elapsed() >= until {
                return Err(Error::unavailable("store is not joined yet; retry"));
            }
            timer.sleep_ms(JOIN_LOOK_MS).await;
        }
    }
}

impl Core {
    /// Returns the largest distance between two clocks of the namespace, in milliseconds.
    fn apart_ms(&self) -> u64 {
        self.settings.off_ms(self.around.store.capabilities().clock).saturating_mul(2)
    }

    /// Returns a mark that no clock of the namespace has passed before `keep_ms` are over.
    fn until(&self, now: UnixMillis, keep_ms: u64) -> Mark {
        let keep_ms = Ord::min(keep_ms, KEEP_MS_MAX).saturating_add(self.apart_ms());
        Mark::from(now.saturating_add(keep_ms))
    }

    /// Waits for the turn to read all slots, which is the costly part. Clients that call at the
    /// same time, or make up names, load the store no more than one client does.
    async fn turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>> {
        tokio::select! {
            biased;
            turn = self.lendings.turn.lock() => Ok(turn),
            () = self.around.timer.sleep_ms(self.around.store_call_ms) => {
                Err(Error::unavailable("external leases are busy with other calls; retry"))
            }
        }
    }

    /// Returns the slots of present and past external leases, in all scopes.
    async fn all_lent(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let around = &self.around;
        let mut slots = around.store_call(Verb::Workers, self.reads.workers(now)).await?;
        slots.retain(|slot| is_lent(&slot.pool) && !slot.is_excluded());
        Ok(slots)
    }

    /// Returns those of one scope.
    async fn lent_in(
        &self,
        space: &str,
        member: Incarnation,
        now: UnixMillis,
    ) -> Result<Vec<SlotInfo>> {
        let all = self.all_lent(now).await?;
        Ok(self.of_space(all, space, member, now).await)
    }

    /// Returns the slots of a scope. The holder of the turn grants nothing else meanwhile, so slots
    /// that this node holds are leftovers, and are relinquished.
    async fn of_space(
        &self,
        mut slots: Vec<SlotInfo>,
        space: &str,
        member: Incarnation,
        now: UnixMillis,
    ) -> Vec<SlotInfo> {
        slots.retain(|slot| is_lent_in(&slot.pool, space));
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
        let (around, store) = (&self.around, &self.around.store);
        let relinquish = Relinquish { pool: pool.to_owned(), member, slots: vec![(slot, term)] };
        let answer = around.store_call(Verb::Relinquish, store.relinquish(&relinquish, now)).await;
        if let Err(error) = &answer {
            tracing::warn!(pool, slot, error = %chain(error), "a number that is lent stays with this server, too");
        }
        answer.is_ok()
    }

    /// Claims a free number, and leaves it to its mark.
    async fn lend_anew(
        &self,
        member: Incarnation,
        borrower: &Borrower,
        pool: Pool,
        preference: Preference,
        now: UnixMillis,
        until: Mark,
    ) -> Result<Lent> {
        let around = &self.around;
        let request = ClaimRequest {
            pool,
            member,
            owner: borrower.label.clone(),
            count: 1,
            preference,
            supersedes: None,
            mark_at_most: Mark::from(now),
            request: random::request()?,
        };
        let leases = around.store_call(Verb::Claim, around.store.claim(&request, now)).await?;
        let lease = leases.into_iter().next().ok_or_else(|| overtaken(borrower))?;
        let (number, after) = (lease.slot, lease.floor.unix_millis());
        let term = lease.term;
        let held = self.moved(vec![Held::from(lease)], now, until).await?;
        let Some(mut held) = held else { return Err(overtaken(borrower)) };
        // The mark protects it from here on. If the store does not confirm the relinquish, the next
        // read of the scope repeats it, or the end of this node does. Until then the term is not
        // known here, and is read when the client calls again.
        let mut given_up = true;
        for Held { pool, slot, .. } in &held {
            given_up &= self.relinquish(member, pool, *slot, term, now).await;
        }
        if given_up {
            held.iter_mut().for_each(|held| held.term = term.next());
            self.lendings.know(borrower, held, now);
        }
        Ok(Lent { number, after })
    }

    /// Moves the marks of a client's slots ahead. Returns false when another server moved or has
    /// one.
    async fn prolong(
        &self,
        borrower: &Borrower,
        held: Vec<Held>,
        now: UnixMillis,
        until: Mark,
    ) -> Result<bool> {
        let moved = self.moved(held, now, until).await?;
        let done = moved.is_some();
        if let Some(held) = moved {
            self.lendings.know(borrower, held, now);
        }
        Ok(done)
    }

    /// Moves the marks of slots at least to `to`, and each one by at least 1: the mark then tells
    /// earlier requests that arrive later apart. Returns none when another server was faster.
    async fn moved(
        &self,
        mut held: Vec<Held>,
        now: UnixMillis,
        to: Mark,
    ) -> Result<Option<Vec<Held>>> {
        let around = &self.around;
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
        for answer in around.extend(&items, now).await? {
            match answer {
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
    async fn lowered(&self, held: Vec<Held>, now: UnixMillis, end: Mark) -> Result<bool> {
        let around = &self.around;
        for Held { pool, slot, term, mark } in held {
            // A client that gets it again has the same term. If this release arrives late, `from`
            // rejects it.
            let from = Some(mark);
            let (holder, mark) = (None, Ord::min(mark, end));
            let release = Release { pool, slot, term, holder, mark, from };
            match around.store_call(Verb::Release, around.store.release(&release, now)).await {
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
fn lent_to(borrower: &Borrower, space: &[SlotInfo]) -> Vec<Held> {
    space.iter().filter(|slot| borrower.had_last(slot)).cloned().map(Held::from).collect()
}

/// Returns the preference for a client without a number: any number, while fewer than `most` are
/// granted; else the one of the pool that has been free for longest.
fn preference(
    borrower: &Borrower,
    (space, lent): (&[SlotInfo], u64),
    pool: &Pool,
    now: UnixMillis,
    most: u64,
) -> Result<Preference> {
    if lent < most {
        return Ok(Preference::Any);
    }
    let is_free = |slot: &&SlotInfo| {
        slot.pool == pool.name && slot.holder.is_none() && slot.mark <= Mark::from(now)
    };
    match space.iter().filter(is_free).min_by_key(|slot| slot.mark) {
        Some(slot) => Ok(Preference::Exactly(slot.slot)),
        None => Err(Error::limit_exceeded(format!(
            "one more external lease in scope {:?} makes {}, limit {most} \
             (compat.cosid.machines_max, counted over all namespaces of the token); raise it, or \
             grant reserve over fewer namespaces",
            borrower.space,
            lent.saturating_add(1)
        ))),
    }
}

fn overtaken(Borrower { label, .. }: &Borrower) -> Error {
    Error::unavailable(format!("other servers changed the external lease of {label:?}; retry"))
}
