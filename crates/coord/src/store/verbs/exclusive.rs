//! The verbs on exclusive slots.

use std::collections::BTreeMap;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::members::infos;
use super::rows::{Backend, Rows, VerbResult};
use super::run_verb::{RunVerb, in_steps};
use crate::error::{Result, Verb};
use crate::ids::Term;
use crate::model::exclusive::{
    Acquire, AcquireStep, Acquired, Relinquish, check_acquire, check_joined, decide_acquire,
    decide_relinquish, gone,
};
use crate::model::lease::SlotRow;
use crate::model::pool::leases;

/// Acquires some of the slots of a request: as many as one step can write.
struct AcquireVerb<'a> {
    acquire: &'a Acquire,
    /// Slots of this step.
    slots: &'a [u64],
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for AcquireVerb<'_> {
    type Output = Acquired;
    const VERB: Verb = Verb::Acquire;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Acquired> {
        check_acquire(self.acquire)?;
        let pool = &self.acquire.pool;
        let stored = rows.pool(&pool.name).await?;
        // Slots are read before members: if the reads are not at one moment, every holder found
        // here is among the members.
        let found = rows.named_slots(&pool.name, self.slots).await?;
        let now = rows.time(self.now);
        let members = infos(rows, now).await?;
        check_joined(self.acquire, &members)?;
        match stored {
            Some((stored, _)) => pool.check_same(&stored)?,
            None => rows.put_pool(pool, 0).await?,
        }
        let ground = rows.namespace().await?.ground;
        let mut gone = gone(self.acquire, &members);
        gone.truncate(R::WRITES_MAX / 2);
        let mut acquired = Acquired::default();
        let mut granted = Vec::new();
        for (slot, row) in found {
            match decide_acquire(row.as_ref(), slot, self.acquire, &members, &gone, ground, now) {
                AcquireStep::Held(holder) => acquired.held.push((slot, holder)),
                AcquireStep::Repeat(row) => acquired.leases.extend(leases(&pool.name, &[row])),
                AcquireStep::Grant(row) => granted.push(row),
            }
        }
        acquired.leases.extend(leases(&pool.name, &granted));
        let changes = !granted.is_empty() || !gone.is_empty();
        if changes {
            rows.hold_member(self.acquire.member).await?;
            for member in gone {
                rows.remove_member(member).await?;
            }
            rows.put_slots(&pool.name, &granted).await?;
        }
        Ok((acquired, changes))
    }
}

/// Relinquishes some of the slots of a request: as many as one step can write.
struct RelinquishVerb<'a> {
    relinquish: &'a Relinquish,
    slots: &'a [(u64, Term)],
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for RelinquishVerb<'_> {
    type Output = ();
    const VERB: Verb = Verb::Relinquish;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        let now = rows.time(self.now);
        let (pool, member) = (&self.relinquish.pool, self.relinquish.member);
        let terms: BTreeMap<u64, Term> = self.slots.iter().copied().collect();
        let slots: Vec<u64> = terms.keys().copied().collect();
        let held = rows.named_slots(pool, &slots).await?;
        let decide = |(slot, row): &(u64, Option<SlotRow>)| {
            decide_relinquish(row.as_ref()?, member, *terms.get(slot)?, now)
        };
        let after: Vec<SlotRow> = held.iter().filter_map(decide).collect();
        rows.put_slots(pool, &after).await?;
        Ok(((), !after.is_empty()))
    }
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut acquired = Acquired::default();
        for slots in in_steps::<B, _>(&acquire.slots) {
            let mut more = self.output_of(AcquireVerb { acquire, slots, now }).await?;
            acquired.leases.append(&mut more.leases);
            acquired.held.append(&mut more.held);
        }
        Ok(acquired)
    }

    pub(super) async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        for slots in in_steps::<B, _>(&relinquish.slots) {
            self.output_of(RelinquishVerb { relinquish, slots, now }).await?;
        }
        Ok(())
    }
}
