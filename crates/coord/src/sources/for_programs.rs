//! Numbers for programs that mint by themselves, and ask for them through the node.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Surroundings;
use super::reports::For;
use crate::catalog::usable;
use crate::error::{Error, Result};
use crate::segment::{Bounds, Reserve, Segment};
use crate::spec::Stripe;
use crate::store::Store;

/// By which stripes programs mint: of each source the last one that was asked for, with the version of its definition.
#[derive(Debug, Default)]
pub(super) struct ProgramStripes(Mutex<BTreeMap<String, (u64, Stripe)>>);

impl ProgramStripes {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, (u64, Stripe)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of versions may be other definitions' from now on.
    pub(super) fn forget(&self) {
        self.known().clear();
    }

    /// The stripe of the definition that a program works by.
    ///
    /// # Errors
    /// As the store would refuse the program; as it says.
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
        let stored = around.call("get source", store.get(source)).await?;
        let stored = usable(Some(&stored), source, *definition_version)
            .map_err(|kind| Error::new("reserve", kind))?;
        let stripe = Stripe::of_text(&stored.spec).unwrap_or(Stripe::ALL);
        self.known().insert(source.clone(), (stored.version, stripe));
        Ok(stripe)
    }
}

impl Surroundings {
    /// Takes numbers for a program, and has the journal remember them before they are answered: the program need not be
    /// there when a store that lost them is recovered.
    ///
    /// # Errors
    /// As the store says, and why it is not believed; `Unavailable` and `Exhausted` as the journal says, before anything
    /// is taken.
    pub(crate) async fn reserve_for_program(
        &self,
        store: &dyn Store,
        reserve: &Reserve,
    ) -> Result<Segment> {
        // A recovery moves what goes by the clock past the time, whoever took it.
        if matches!(reserve.within, Some(Bounds::Now(_))) {
            self.doubts.check()?;
            return self.heard(store.reserve(reserve)).await;
        }
        let whose = (reserve.source.as_str(), For::Programs);
        self.doubts
            .in_one_history("reserve", async {
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
