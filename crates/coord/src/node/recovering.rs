//! Recovery of the store of a running node.

use std::collections::BTreeMap;

use super::state::Node;
use crate::error::{Error, Result, Verb, chain};
use crate::journal::inspect_set_aside;
use crate::model::fast_forward::FastForward;
use crate::model::history::StoreIdentity;
use crate::node::recovery::{Configured, Recovery, Reports, accept_other_server};
use crate::spec::SourceSpec;

/// Longest time for a store to move all of its rows: some tens of thousands at most.
const MOVE_MS_MAX: u64 = 60_000;
/// Interval of checks whether the node has noticed the doubt about its store.
const POLL_MS: u64 = 50;

impl Node {
    /// Returns what is known of the store, before it is moved forward. `sources` are those of the
    /// configuration, `without` the lost journals. Changes nothing. Waits for each server to report
    /// again, ten seconds at most.
    ///
    /// # Errors
    /// Those of [`Reports::repeated`] and [`Recovery::look`]; `Unsupported` where the store is
    /// reached through servers.
    pub async fn recovery(
        &self,
        sources: &BTreeMap<String, SourceSpec>,
        without: &[String],
    ) -> Result<Recovery> {
        let recovery = match self.look_at_store(sources, without).await {
            // A recovery has just moved the store, of which this handle learns once.
            Err(error) if error.kind().is_rolled_back() => {
                self.look_at_store(sources, without).await?
            }
            looked => looked?,
        };
        // A journal that cannot be read is missing, and an operator may leave it out.
        let unread = |error: &Error| {
            tracing::warn!(error = %chain(error), "a journal set aside cannot be read, and counts as missing");
        };
        let aside = match &self.core().settings.data_dir {
            Some(dir) => inspect_set_aside(dir, unread).unwrap_or_else(|error| {
                unread(&error);
                Vec::new()
            }),
            None => Vec::new(),
        };
        Ok(recovery.with_set_aside(aside))
    }

    async fn look_at_store(
        &self,
        sources: &BTreeMap<String, SourceSpec>,
        without: &[String],
    ) -> Result<Recovery> {
        let core = self.core();
        let (store, now) = (self.store().as_ref(), core.ctx.clock.unix_ms());
        let (settings, namespace) = (&core.settings, store.namespace());
        let configured = Configured { sources, settings, namespace };
        let reports = Reports::repeated(store, &*core.ctx.timer);
        let reports = core.ctx.record_doubts(reports).await?;
        let look = Recovery::look(Some(store), reports, Vec::new(), without, configured, now);
        core.ctx.store_call(Verb::Standing, look).await
    }

    /// Accepts the server that has the store now, on an operator's word that the former one takes
    /// no more writes, and puts the store in doubt. Changes nothing where the server has not
    /// changed.
    ///
    /// # Errors
    /// `StoreMismatch` where the store is not the one that this node knows; those of
    /// [`accept_other_server`].
    pub async fn accept_other_server(&self) -> Result<()> {
        let accepting = accept_other_server(self.store().as_ref());
        self.core().ctx.store_call(Verb::Doubt, accepting).await
    }

    /// Moves a store in doubt forward, and ends the doubt: nodes that wait for this continue, this
    /// one too. The caller must first wait for [`noticed_doubt`](Self::noticed_doubt), and ask
    /// about what [`Recovery::unsaid`] reports. May be repeated.
    ///
    /// # Errors
    /// `Unavailable` when the store has changed since the plan was made, and when the call takes
    /// longer than a minute; any other error of the store.
    pub async fn recover(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let ctx = &self.core().ctx;
        let late = || {
            Error::unavailable(format!(
                "recovery did not end within {MOVE_MS_MAX} ms; it may have been applied, look again"
            ))
        };
        let moved = ctx.store.fast_forward(forward);
        ctx.metered(Verb::FastForward, ctx.with_timeout(MOVE_MS_MAX, late, moved)).await
    }

    /// Waits until this node has noticed that its store is in doubt, and mints nothing any more:
    /// numbers from the lost state would be used in addition to those of the recovered store.
    ///
    /// # Errors
    /// `Unavailable` when the node has not noticed within its presence's time; it usually takes a
    /// third of that.
    pub async fn noticed_doubt(&self) -> Result<()> {
        let ctx = &self.core().ctx;
        let (timer, wait_ms) = (&ctx.timer, self.core().settings.presence_ttl_ms);
        let begun = timer.elapsed();
        while self.incarnation().is_some() || ctx.doubts.rolled_back().is_none() {
            if timer.elapsed().since(begun) > wait_ms {
                return Err(Error::unavailable(format!(
                    "server has not seen within {wait_ms} ms that its store is in doubt; retry"
                )));
            }
            timer.sleep_ms(POLL_MS).await;
        }
        Ok(())
    }
}
