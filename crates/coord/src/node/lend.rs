//! Numbers for processes that mint by themselves ([`lend`](crate::lend)): given, kept, taken back.
//!
//! Here the servers' clocks decide whose a number is, since a borrower knows no terms. So whoever finds his
//! own too far from the store's lends nothing, keeps nothing and takes nothing back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use snowmint_core::UnixMillis;

use super::{Core, Node};
use crate::capability::ClockOf;
use crate::error::{Error, ErrorKind, Result};
use crate::lease::{ClaimRequest, Extend, Lease, Mark, Release, SlotInfo, Term, Wish};
use crate::lend::{Borrower, KEEP_MS_MAX, Kept, Lent, lent_pool};
use crate::member::Incarnation;
use crate::pool::Pool;
use crate::random;

/// How often a borrower's slots are looked for when others are faster.
const TRIES: u32 = 5;

/// A slot that is lent, as it was seen last.
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

/// What was lent through this node, so that keeping it takes one write and no search. It may be out of
/// date: the store knows.
#[derive(Debug, Default)]
pub(super) struct Lendings(Mutex<HashMap<Borrower, Vec<Held>>>);

impl Lendings {
    fn of(&self, borrower: &Borrower) -> Option<Vec<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(borrower).cloned()
    }

    fn know(&self, borrower: &Borrower, held: Vec<Held>, now: UnixMillis) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(borrower) {
            // Borrowers that came no more must not fill the memory.
            known.retain(|_, held| held.iter().any(|held| held.mark.unix_millis() > now));
        }
        known.insert(borrower.clone(), held);
    }

    fn forget(&self, borrower: &Borrower) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(borrower);
    }
}

impl Node {
    /// Lends a number of `width` bits, which is the borrower's until `keep_ms` after it was last heard
    /// of. Who has one already is told the same.
    ///
    /// # Errors
    /// `PoolFull`; `Invalid`; `ClockAhead` or `ClockBehind` when our clock is not to be trusted;
    /// `Unavailable` while the store is away, or others are faster.
    pub async fn lend(&self, borrower: &Borrower, width: u32, keep_ms: u64) -> Result<Lent> {
        let member = self.lender(borrower)?;
        let pool = lent_pool(&borrower.space, width).map_err(|kind| Error::new("lend", kind))?;
        let core = self.core();
        let now = core.around.checked_time().await?;
        let until = core.until(now, keep_ms);
        for _ in 0..TRIES {
            let own = core.lent_to(borrower, now).await?;
            let Some(number) = own.iter().find(|held| held.pool == pool.name) else {
                return core.lend_anew(member, borrower, pool, now, until).await;
            };
            let number = number.slot;
            if core.prolong(borrower, own, now, until).await? {
                // Whoever asks again may have minted until now.
                return Ok(Lent { number, after: now });
            }
        }
        Err(overtaken("lend"))
    }

    /// A borrower is still there: what it has is kept for another while.
    ///
    /// # Errors
    /// As [`Node::lend`], but for `PoolFull`.
    pub async fn keep_lent(&self, borrower: &Borrower, keep_ms: u64) -> Result<Kept> {
        self.lender(borrower)?;
        let core = self.core();
        let now = core.around.checked_time().await?;
        let until = core.until(now, keep_ms);
        let known = core.lendings.of(borrower);
        let had_one = known.is_some();
        // What need not be moved would be believed without asking the store.
        let moves = |held: &Vec<Held>| held.iter().all(|held| held.mark < until);
        if let Some(known) = known.filter(moves)
            && core.prolong(borrower, known, now, until).await?
        {
            return Ok(Kept::Yes);
        }
        for _ in 0..TRIES {
            let own = core.lent_to(borrower, now).await?;
            if own.is_empty() {
                core.lendings.forget(borrower);
                return Ok(if had_one { Kept::Lost } else { Kept::Unknown });
            }
            if core.prolong(borrower, own, now, until).await? {
                return Ok(Kept::Yes);
            }
        }
        Err(overtaken("keep lent"))
    }

    /// A borrower gives back what it has. Others can have it once clocks that differ as far as they may
    /// have all passed this moment. Answers whether it had anything.
    ///
    /// # Errors
    /// `Unavailable` while the store is away, `ClockAhead` or `ClockBehind` when our clock is not to be
    /// trusted; the number is kept then, until its mark has passed.
    pub async fn take_back(&self, borrower: &Borrower) -> Result<bool> {
        self.lender(borrower)?;
        let core = self.core();
        let around = &core.around;
        let now = around.checked_time().await?;
        core.lendings.forget(borrower);
        let own = core.lent_to(borrower, now).await?;
        let end = Mark::from(now.saturating_add(core.apart_ms()));
        let had_one = !own.is_empty();
        for Held { pool, slot, term, mark } in own {
            let release = Release { pool, slot, term, mark: Ord::min(mark, end) };
            match around.call("release", around.store.release(&release, now)).await {
                // Somebody else gave it back, or has it since.
                Err(error) if matches!(error.kind(), ErrorKind::Fenced { .. }) => {}
                released => released?,
            }
        }
        Ok(had_one)
    }

    /// As which member this node lends. One that is out of the store does not know whether it is the
    /// store that it knew.
    fn lender(&self, borrower: &Borrower) -> Result<Incarnation> {
        borrower.check().map_err(|kind| Error::new("lend", kind))?;
        self.incarnation().ok_or_else(|| {
            let what = "the store, which is not joined,".into();
            Error::new("lend", ErrorKind::Unavailable { what })
        })
    }
}

impl Core {
    /// How far two clocks of the namespace are apart at most.
    fn apart_ms(&self) -> u64 {
        let off_ms = self.settings.clock_skew_max_ms;
        let off_ms = match self.around.store.capabilities().clock {
            ClockOf::Store => off_ms,
            // What clocks are compared with is as old as a presence.
            ClockOf::Caller => off_ms.saturating_add(self.settings.presence_ttl_ms),
        };
        off_ms.saturating_mul(2)
    }

    /// So far that no clock of the namespace has passed it before `keep_ms` are over.
    fn until(&self, now: UnixMillis, keep_ms: u64) -> Mark {
        let keep_ms = Ord::min(keep_ms, KEEP_MS_MAX).saturating_add(self.apart_ms());
        Mark::from(now.saturating_add(keep_ms))
    }

    /// The slots that are a borrower's, or that it was the last to have.
    async fn lent_to(&self, borrower: &Borrower, now: UnixMillis) -> Result<Vec<Held>> {
        let around = &self.around;
        let slots = around.call("list workers", around.store.workers(now)).await?;
        Ok(slots.into_iter().filter(|slot| borrower.had_last(slot)).map(Held::from).collect())
    }

    /// Claims a number that is nobody's, and leaves it to its mark.
    async fn lend_anew(
        &self,
        member: Incarnation,
        borrower: &Borrower,
        pool: Pool,
        now: UnixMillis,
        until: Mark,
    ) -> Result<Lent> {
        let around = &self.around;
        let request = ClaimRequest {
            pool,
            member,
            owner: borrower.label.clone(),
            count: 1,
            wish: Wish::Any,
            supersedes: None,
            mark_at_most: Mark::from(now),
            request: random::request()?,
        };
        let leases = around.call("claim", around.store.claim(&request, now)).await?;
        let lease = leases.into_iter().next().ok_or_else(|| overtaken("lend"))?;
        let (number, after) = (lease.slot, lease.floor.unix_millis());
        let term = lease.term;
        let held = self.moved(vec![Held::from(lease)], now, until).await?;
        let Some(mut held) = held else { return Err(overtaken("lend")) };
        // The mark keeps it from here on. Held by a member besides, it would not be free when the mark has
        // passed. Where the store does not say that it is given up, it is when this node ends; and then its
        // term is not known here, but asked for when the borrower is heard of again.
        let mut given_up = true;
        for Held { pool, slot, mark, .. } in &held {
            let (pool, slot, mark) = (pool.clone(), *slot, *mark);
            let release = Release { pool, slot, term, mark };
            if let Err(error) = around.call("release", around.store.release(&release, now)).await {
                tracing::warn!(error = %error.kind(), "a number that is lent stays with this server, too");
                given_up = false;
            }
        }
        if given_up {
            held.iter_mut().for_each(|held| held.term = term.next());
            self.lendings.know(borrower, held, now);
        }
        Ok(Lent { number, after })
    }

    /// Moves the marks of a borrower's slots on. False: somebody else has moved one, or has one.
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

    /// Slots with their marks so far ahead; none when somebody else was faster.
    async fn moved(
        &self,
        mut held: Vec<Held>,
        now: UnixMillis,
        to: Mark,
    ) -> Result<Option<Vec<Held>>> {
        let around = &self.around;
        let mut items = Vec::with_capacity(held.len());
        for held in held.iter_mut().filter(|held| held.mark < to) {
            items.push(Extend {
                pool: held.pool.clone(),
                slot: held.slot,
                term: held.term,
                from: held.mark,
                to,
                request: random::request()?,
                ahead_max_ms: None,
            });
            held.mark = to;
        }
        if items.is_empty() {
            return Ok(Some(held));
        }
        for answer in around.call("extend", around.store.extend(&items, now)).await? {
            match answer {
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Fenced { .. }
                    | ErrorKind::MarkMoved { .. }
                    | ErrorKind::NotFound { .. } => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
        Ok(Some(held))
    }
}

fn overtaken(op: &'static str) -> Error {
    let what = "the number: others were faster, ask again; it".into();
    Error::new(op, ErrorKind::Unavailable { what })
}
