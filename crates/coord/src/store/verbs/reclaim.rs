//! Reclaim of worker numbers by an operator.

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::members::infos;
use super::rows::{Backend, Failure, Rows, RowsResult, VerbResult};
use super::run_verb::{RunVerb, in_steps};
use crate::error::{Error, Result, Verb};
use crate::ids::{Mark, Term};
use crate::model::reclaim::{Reclaim, Reclaimed, decide_reclaim};

/// Reclaims some of the slots of a request: as many as one step can write.
struct ReclaimVerb<'a> {
    reclaim: &'a Reclaim,
    slots: &'a [(u64, Term)],
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for ReclaimVerb<'_> {
    type Output = Vec<Reclaimed>;
    const VERB: Verb = Verb::Reclaim;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Vec<Reclaimed>> {
        let Reclaim { pool, .. } = self.reclaim;
        self.reclaim.check()?;
        self.check_pool(rows).await?;
        let now = rows.time(self.now);
        let numbers: Vec<u64> = self.slots.iter().map(|(slot, _)| *slot).collect();
        // Slots are read before members: if the reads are not at one moment, every holder found
        // here is among the members.
        let found = rows.named_slots(pool, &numbers).await?;
        let members = infos(rows, now).await?;
        let ground = rows.namespace().await?.ground;
        // The limit uses the later of both clocks, as a recovery does.
        let to = self.reclaim.to(ground, now.max(self.now));
        let (mut changed, mut reclaimed) = (Vec::new(), Vec::new());
        for seen in self.slots {
            let row =
                found.iter().find(|(slot, _)| *slot == seen.0).and_then(|(_, row)| row.as_ref());
            let Some(after) = decide_reclaim(self.reclaim, *seen, row, &members, to, now)? else {
                continue;
            };
            let from = row.map_or(Mark::ZERO, |row| row.mark);
            reclaimed.push(Reclaimed { slot: seen.0, from, to: after.mark, term: after.term });
            changed.push(after);
        }
        if changed.is_empty() {
            return Ok((reclaimed, false));
        }
        rows.put_slots(pool, &changed).await?;
        Ok((reclaimed, true))
    }
}

impl ReclaimVerb<'_> {
    async fn check_pool<R: Rows>(&self, rows: &mut R) -> RowsResult<R, ()> {
        let name = &self.reclaim.pool;
        let Some((pool, _)) = rows.pool(name).await? else {
            return Err(Failure::from(Error::not_found(format!(
                "pool {name:?} does not exist; list pools with snowmint worker list"
            ))));
        };
        self.reclaim.check_pool(&pool)?;
        if let Some((slot, _)) = self.slots.iter().find(|(slot, _)| *slot >= pool.slots) {
            let last = pool.slots.saturating_sub(1);
            return Err(Failure::from(Error::invalid(format!(
                "slot {slot} of pool {name:?} is out of range, maximum {last}; correct the number"
            ))));
        }
        Ok(())
    }
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn reclaim(
        &self,
        reclaim: &Reclaim,
        now: UnixMillis,
    ) -> Result<Vec<Reclaimed>> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut reclaimed = Vec::new();
        for slots in in_steps::<B, _>(&reclaim.slots) {
            reclaimed.append(&mut self.output_of(ReclaimVerb { reclaim, slots, now }).await?);
        }
        Ok(reclaimed)
    }
}
