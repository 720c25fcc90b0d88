//! Exclusion of slots.

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::members::infos;
use super::rows::{Backend, Rows, VerbResult};
use super::run_verb::{RunVerb, in_steps};
use crate::error::{Result, Verb};
use crate::model::exclude::{Exclude, check_exclude, decide_exclude};

/// Excludes some of the slots of a request: as many as one step can write.
struct ExcludeVerb<'a> {
    exclude: &'a Exclude,
    slots: &'a [u64],
    now: UnixMillis,
}

#[async_trait]
impl RunVerb for ExcludeVerb<'_> {
    type Output = ();
    const VERB: Verb = Verb::Exclude;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, ()> {
        let Exclude { pool, .. } = self.exclude;
        check_exclude(self.exclude)?;
        let now = rows.time(self.now);
        let stored = rows.pool(&pool.name).await?;
        if let Some((stored, _)) = &stored {
            pool.check_same(stored)?;
        }
        let before = stored.as_ref().map_or(0, |(_, next)| *next);
        // Slots are read before members: if the reads are not at one moment, every holder found
        // here is among the members.
        let found = rows.named_slots(&pool.name, self.slots).await?;
        let members = infos(rows, now).await?;
        let ground = rows.namespace().await?.ground;
        let excluded = decide_exclude(self.exclude, found, &members, ground, before, now)?;
        if excluded.rows.is_empty() && excluded.next == before {
            return Ok(((), false));
        }
        if stored.is_none() || excluded.next != before {
            rows.put_pool(pool, excluded.next).await?;
        }
        rows.put_slots(&pool.name, &excluded.rows).await?;
        Ok(((), true))
    }
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        for slots in in_steps::<B, _>(&exclude.slots) {
            self.output_of(ExcludeVerb { exclude, slots, now }).await?;
        }
        Ok(())
    }
}
