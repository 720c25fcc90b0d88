//! Recovering the store of a node that runs.

use std::collections::BTreeMap;

use super::Node;
use crate::error::{Error, ErrorKind, Result};
use crate::recovery::{Configured, Recovery};
use crate::spec::SourceSpec;
use crate::store::{FastForward, StoreIdentity};

/// How long a store may take to move everything that it has: some tens of thousands of rows at most.
const MOVE_MS_MAX: u64 = 60_000;
/// How often the node is looked at that has not noticed yet that its store is in doubt.
const LOOK_MS: u64 = 50;

impl Node {
    /// What is known of the store, before it is moved forward; `sources` are those of the configuration, `without` the
    /// journals that are lost. Changes nothing.
    ///
    /// # Errors
    /// As [`Recovery::look`]; `Unsupported` where the store is reached through servers.
    pub async fn recovery(
        &self,
        sources: &BTreeMap<String, SourceSpec>,
        without: &[String],
    ) -> Result<Recovery> {
        let core = self.core();
        let configured = Configured { sources, settings: &core.settings };
        let (store, now) = (self.store().as_ref(), core.around.clock.unix_ms());
        let look = Recovery::look(Some(store), Vec::new(), without, configured, now);
        core.around.call("look at journals", look).await
    }

    /// Moves a store in doubt forward, and ends the doubt: nodes that wait for it go on, this one too. What
    /// [`Recovery::unsaid`] says is the caller's to ask before, after [`noticed_doubt`](Self::noticed_doubt). May be
    /// repeated.
    ///
    /// # Errors
    /// `Unavailable` when the store does not stand any more as it did when this was planned, and when it takes longer
    /// than a minute; else as the store says.
    pub async fn recover(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let around = &self.core().around;
        tokio::select! {
            biased;
            moved = around.store.fast_forward(forward) => moved,
            () = around.timer.sleep_ms(MOVE_MS_MAX) => {
                let what = format!("an end of the recovery within {MOVE_MS_MAX} ms; ask again");
                Err(Error::new("recover", ErrorKind::Unavailable { what }))
            }
        }
    }

    /// Waits until this node has noticed that its store is in doubt, and mints nothing any more: what it has from the
    /// state that was lost would be used beside what the recovered store hands out.
    ///
    /// # Errors
    /// `Unavailable` when it has not noticed within its presence's time; as a rule it takes a third of that.
    pub async fn noticed_doubt(&self) -> Result<()> {
        let around = &self.core().around;
        let (timer, wait_ms) = (&around.timer, self.core().settings.presence_ttl_ms);
        let begun = timer.elapsed();
        while self.incarnation().is_some() || around.doubts.went_back().is_none() {
            if timer.elapsed().since(begun) > wait_ms {
                let what = format!(
                    "a recovery here: this server has not noticed within {wait_ms} ms that the store is in doubt; ask again"
                );
                return Err(Error::new("recover", ErrorKind::Unavailable { what }));
            }
            timer.sleep_ms(LOOK_MS).await;
        }
        Ok(())
    }
}
