//! Numbers for embedded clients, which request them through the node.

use super::client_stripes::ClientStripes;
use super::journal_budget::ReservedFor;
use super::node_context::NodeContext;
use crate::error::{Result, Verb};
use crate::model::catalog::usable;
use crate::model::segment::{Bounds, Reserve, Segment};
use crate::model::stripe::Stripe;
use crate::store::Store;

impl ClientStripes {
    /// Returns the stripe of the definition that an embedded client works by.
    ///
    /// # Errors
    /// Those with which the store would reject the client's call; those of the store.
    async fn by(&self, ctx: &NodeContext, store: &dyn Store, reserve: &Reserve) -> Result<Stripe> {
        let Reserve { source, definition_version, .. } = reserve;
        if let Some((version, stripe)) = self.known().get(source)
            && version == definition_version
        {
            return Ok(*stripe);
        }
        let stored = ctx.store_call(Verb::Get, store.get(source)).await?;
        let stored = usable(Some(&stored), source, *definition_version)?;
        let stripe = Stripe::of_text(&stored.spec).unwrap_or(Stripe::ALL);
        self.known().insert(source.clone(), (stored.version, stripe));
        Ok(stripe)
    }
}

impl NodeContext {
    /// Reserves numbers for an embedded client, and records them in the journal before it returns.
    /// The client may be absent when a store that lost them is recovered.
    ///
    /// # Errors
    /// Those of the store, and an open doubt; `Unavailable` and `Exhausted` of the journal, before
    /// anything is reserved.
    pub(crate) async fn reserve_for_client(
        &self,
        store: &dyn Store,
        reserve: &Reserve,
    ) -> Result<Segment> {
        // A recovery moves clock-based numbers past the time, whichever process took them.
        if matches!(reserve.within, Some(Bounds::Now(_))) {
            self.doubts.check()?;
            return self.record_doubts(store.reserve(reserve)).await;
        }
        let reserved_for = (reserve.source.as_str(), ReservedFor::Clients);
        self.doubts
            .in_one_history(async {
                let by = self.stripes.by(self, store, reserve).await?;
                self.journal_budget.check(reserved_for, by.renumbers(), self.timer.elapsed())?;
                let segment = self.record_doubts(store.reserve(reserve)).await?;
                self.saw(segment.catalog_version, segment.writes);
                self.journal(reserved_for, &segment, by).await?;
                Ok(segment)
            })
            .await
    }
}
