//! Fast verbs: the most frequent verbs in one step of the back end's own, where it has one, in one
//! round trip. Where such a step did nothing, the verb reads the rows, which give the reason.

use std::sync::atomic::Ordering;

use snowmint_core::UnixMillis;

use super::BackendStore;
use super::rows::{Backend, RowsResult, Seen};
use crate::error::{Result, Verb};
use crate::ids::{Incarnation, Mark};
use crate::model::history::StoreIdentity;
use crate::model::lease::{Extend, Extended};
use crate::model::member::{Presence, check_presence};
use crate::model::segment::{Reserve, Segment};

impl<B: Backend> BackendStore<B> {
    /// Reserves numbers in the back end's own step, if it has one that can.
    pub(super) async fn try_fast_reserve(&self, reserve: &Reserve) -> Result<Option<Segment>> {
        let Some(seen) = self.seen() else { return Ok(None) };
        let reserved = self.backend.reserve(reserve, &seen).await;
        let reserved = reserved.map_err(|failure| self.error(Verb::Reserve, failure))?;
        if let Some(segment) = &reserved {
            self.lineage.counted(&seen.id, segment.writes);
        }
        Ok(reserved)
    }

    /// Moves one mark in the back end's own step, if it has one that can.
    pub(super) async fn try_fast_extend(
        &self,
        item: &Extend,
        now: UnixMillis,
    ) -> Result<Option<Extended>> {
        // An impossible slot or a forbidden move: the verb over rows returns the error.
        if item.slot > Mark::MAX.get() || item.to <= item.from || item.to > Mark::MAX {
            return Ok(None);
        }
        let Some(seen) = self.seen() else { return Ok(None) };
        let written =
            self.written(Verb::Extend, &seen, self.backend.extend(item, now, &seen).await)?;
        let catalog_version = seen.catalog_version;
        Ok(written.map(|writes| Extended { mark: item.to, catalog_version, writes }))
    }

    /// Renews in the back end's own step, if it has one that can. Returns whether it did.
    pub(super) async fn try_fast_renew(
        &self,
        member: Incarnation,
        presence: Presence,
        now: UnixMillis,
    ) -> Result<bool> {
        if check_presence(presence).is_err() {
            return Ok(false);
        }
        let Some(seen) = self.seen() else { return Ok(false) };
        let renewed = self.backend.renew(member, presence, now, &seen).await;
        Ok(self.written(Verb::Renew, &seen, renewed)?.is_some())
    }

    /// Returns `None` before this handle has left a start.
    fn seen(&self) -> Option<Seen> {
        let StoreIdentity { id, writes } = (*self.lineage.begun()?).clone();
        let catalog_version = self.catalog_seen.load(Ordering::SeqCst);
        Some(Seen { id: id.into(), writes, catalog_version })
    }

    /// Returns the count of writes after a step of the back end's own, if it was done.
    fn written(
        &self,
        verb: Verb,
        seen: &Seen,
        step: RowsResult<B::Rows, Option<u64>>,
    ) -> Result<Option<u64>> {
        let written = step.map_err(|failure| self.error(verb, failure))?;
        if let Some(writes) = written {
            self.lineage.counted(&seen.id, writes);
        }
        Ok(written)
    }
}
