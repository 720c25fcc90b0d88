//! Numbers for embedded clients, which request them through the node.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Surroundings;
use super::reports::For;
use crate::catalog::usable;
use crate::error::{Result, Verb};
use crate::segment::{Bounds, Reserve, Segment};
use crate::spec::Stripe;
use crate::store::Store;

/// Stripes that embedded clients mint by: for each source the one requested last, with its
/// definition's version.
#[derive(Debug, Default)]
pub(super) struct ProgramStripes(Mutex<BTreeMap<String, (u64, Stripe)>>);

impl ProgramStripes {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, (u64, Stripe)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all stripes: version numbers may stand for other definitions from now on.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    /// Returns the stripe of the definition that an embedded client works by.
    ///
    /// # Errors
    /// Those with which the store would reject the client's call; those of the store.
    async fn by(
        &self,
        around: &Surroundings,
        store: &dyn Store,
        asked: &Reserve,
    ) -> Result<Stripe> {
        let Reserve { source, definition_version, .. } = asked;
        if let Some((version, stripe)) = self.known().get(source)
            && version == definition_version
        {
            return Ok(*stripe);
        }
        let stored = around.store_call(Verb::Get, store.get(source)).await?;
        let stored = usable(Some(&stored), source, *definition_version)?;
        let stripe = Stripe::of_text(&stored.spec).unwrap_or(Stripe::ALL);
        self.known().insert(source.clone(), (stored.version, stripe));
        Ok(stripe)
    }
}

impl Surroundings {
    /// Reserves numbers for an embedded client, and records them in the journal before it returns.
    /// The client may be absent when a store that lost them is recovered.
    ///
    /// # Errors
    /// Those of the store, and an open doubt; `Unavailable` and `Exhausted` of the journal, before
    /// anything is reserved.
    pub(crate) async fn reserve_for_program(
        &self,
        store: &dyn Store,
        reserve: &Reserve,
    ) -> Result<Segment> {
        // A recovery moves clock-based numbers past the time, whichever process took them.
        if matches!(reserve.within, Some(Bounds::Now(_))) {
            self.doubts.check()?;
            return self.heard(store.reserve(reserve)).await;
        }
        let whose = (reserve.source.as_str(), For::Programs);
        self.doubts
            .in_one_history(async {
                let by = self.stripes.by(self, store, reserve).await?;
                self.reports.check(whose, by.renumbers(), self.timer.elapsed())?;
                let segment = self.heard(store.reserve(reserve)).await?;
                self.saw(segment.catalog_version, segment.writes);
                self.journal(whose, &segment, by).await?;
                Ok(segment)
            })
            .await
    }
}
