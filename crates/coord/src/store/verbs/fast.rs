//! Fast verbs: the most frequent verbs in one step of the back end's own, where it has one, in one
//! round trip. Where such a step did nothing, the verb reads the rows, which give the reason.

use std::sync::atomic::Ordering;

use snowmint_core::{ElapsedMillis, UnixMillis};

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
        let Some((seen, began)) = self.seen() else { return Ok(None) };
        let reserved = self.backend.reserve(reserve, &seen).await;
        let reserved = reserved.map_err(|failure| self.error(Verb::Reserve, failure))?;
        if let Some(segment) = &reserved {
            self.lineage.counted(&seen.id, segment.writes);
            self.lineage.reached(began);
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
        let Some(base) = self.seen() else { return Ok(None) };
        let extended = self.backend.extend(item, now, &base.0).await;
        let written = self.written(Verb::Extend, &base, extended)?;
        let catalog_version = base.0.catalog_version;
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
        let Some(base) = self.seen() else { return Ok(false) };
        let renewed = self.backend.renew(member, presence, now, &base.0).await;
        Ok(self.written(Verb::Renew, &base, renewed)?.is_some())
    }

    /// Returns what this handle has seen, and the time; `None` before it has left a start.
    fn seen(&self) -> Option<(Seen, ElapsedMillis)> {
        let began = self.backend.timer().elapsed();
        self.lineage.time_in_touch(began);
        let StoreIdentity { id, writes } = (*self.lineage.begun()?).clone();
        let catalog_version = self.catalog_seen.load(Ordering::SeqCst);
        Some((Seen { id: id.into(), writes, catalog_version }, began))
    }

    /// Returns the count of writes after a step of the back end's own, if it was done.
    fn written(
        &self,
        verb: Verb,
        (seen, began): &(Seen, ElapsedMillis),
        step: RowsResult<B::Rows, Option<u64>>,
    ) -> Result<Option<u64>> {
        let written = step.map_err(|failure| self.error(verb, failure))?;
        if let Some(writes) = written {
            self.lineage.counted(&seen.id, writes);
            self.lineage.reached(*began);
        }
        Ok(written)
    }
}
