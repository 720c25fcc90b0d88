//! The store trait, verb by verb.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use snowmint_core::UnixMillis;

use super::BackendStore;
use super::exclude::ExcludeVerb;
use super::exclusive::{AcquireVerb, RelinquishVerb};
use super::forward::{AcceptLeadVerb, FastForwardVerb, GroundVerb, RaiseVerb, Walk};
use super::history::{AcceptServerVerb, DoubtVerb, RecallVerb, ReportVerb, StandingVerb};
use super::members::{AnnounceVerb, JoinVerb, LeaveVerb, MembersVerb, RenewVerb};
use super::reclaim::ReclaimVerb;
use super::rows::{Access, Backend, Rows, VerbResult};
use super::run_verb::{RunVerb, step_slots};
use super::slots::{ClaimVerb, ExtendVerb, ReleaseVerb, WorkersVerb};
use super::sources::{
    ChangeVerb, Changed, GetVerb, GiveBackVerb, ListVerb, ReserveVerb, RestripeVerb,
};
use crate::error::{ErrorKind, Result, Verb};
use crate::ids::{Incarnation, Mark};
use crate::model::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
use crate::model::exclude::Exclude;
use crate::model::exclusive::{Acquire, Acquired, Relinquish};
use crate::model::fast_forward::FastForward;
use crate::model::history::{
    Doubt, Evidence, JournalInfo, Known, Recalled, Standing, StoreIdentity,
};
use crate::model::lease::{Extend, Extended, Lease, Release};
use crate::model::member::{Member, MemberInfo, MemberStatus, Presence};
use crate::model::pool::{ClaimRequest, SlotDefaults, check_group};
use crate::model::reclaim::{Reclaim, Reclaimed};
use crate::model::segment::{GiveBack, Reserve, Segment};
use crate::model::slot::SlotInfo;
use crate::platform::random;
use crate::store::capability::{Capabilities, ClockOf};
use crate::store::owner_client::OwnerClient;
use crate::store::time_reference::TimeReference;
use crate::store::{Store, StoreCall, StoreConnector, StoreReply, StoreVerbs};

struct IdentityVerb;

#[async_trait]
impl RunVerb for IdentityVerb {
    type Output = StoreIdentity;
    const ACCESS: Access = Access::Read;

    fn verb(&self) -> Verb {
        Verb::Identity
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, StoreIdentity> {
        Ok((rows.identity().clone(), false))
    }
}

struct NowVerb;

#[async_trait]
impl RunVerb for NowVerb {
    type Output = Option<UnixMillis>;
    const ACCESS: Access = Access::Read;

    fn verb(&self) -> Verb {
        Verb::Now
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Option<UnixMillis>> {
        Ok((rows.clock(), false))
    }
}

impl<B: Backend> BackendStore<B> {
    async fn check_settings(&self, verb: Verb) -> Result<()> {
        self.backend.check_settings().await.map_err(|failure| self.error(verb, failure))
    }

    async fn output_of<V: RunVerb>(&self, verb: V) -> Result<V::Output> {
        Ok(self.run(verb).await?.0)
    }
}

/// Splits the slots into parts that one step can write, with room for the records of members.
/// Returns at least one part, so that invalid requests are rejected.
fn in_steps<B: Backend, T>(slots: &[T]) -> impl Iterator<Item = &[T]> {
    let chunks = slots.chunks(step_slots(<B::Rows as Rows>::WRITES_MAX / 2).max(1));
    chunks.chain(slots.is_empty().then_some(slots))
}

impl<B: Backend> Store for BackendStore<B> {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn namespace(&self) -> &str {
        self.backend.namespace()
    }

    fn warnings(&self) -> Vec<String> {
        self.backend.warnings()
    }

    fn group_max(&self) -> u32 {
        u32::try_from(<B::Rows as Rows>::WRITES_MAX).unwrap_or(u32::MAX)
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        None
    }

    fn secondary_store(&self, _: &str) -> Option<Arc<dyn StoreConnector>> {
        None
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        None
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.lineage.seen().as_deref().cloned()
    }

    fn remember(&self, seen: &StoreIdentity) {
        self.lineage.remember(seen);
    }

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        self.dispatch(call)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.backend.close())
    }
}

impl<B: Backend> StoreVerbs for BackendStore<B> {
    async fn now(&self) -> Result<Option<UnixMillis>> {
        match self.backend.capabilities().clock {
            ClockOf::Store => self.output_of(NowVerb).await,
            // The store has no clock to read.
            ClockOf::Caller => Ok(None),
        }
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.output_of(IdentityVerb).await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.backend.catch_up().await.map_err(|failure| self.error(Verb::Recall, failure))?;
        let by_handle = self.lineage.by_handle();
        let recalls = RecallVerb { who, seen, by_handle: by_handle.as_ref() };
        let (recalled, found) = self.output_of(recalls).await?;
        // After a recovery the caller ensures that nothing of the lost state is used.
        let access = match recalled {
            Recalled::Recovered => Access::Forward,
            Recalled::Same => Access::Read,
        };
        if let Some(found) = found {
            self.lineage.saw(found, access, false);
        }
        Ok(recalled)
    }

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        let by_handle = self.lineage.by_handle();
        let by_handle = by_handle.as_ref();
        if evidence.other_server {
            return self.output_of(AcceptServerVerb { doubt, evidence, by_handle }).await;
        }
        self.output_of(DoubtVerb { doubt, evidence, by_handle }).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.output_of(ReportVerb { journal, known }).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.output_of(StandingVerb).await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.check_settings(Verb::Join).await?;
        self.output_of(JoinVerb { member, presence, now }).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let renewal = async {
            if self.try_fast_renew(member, presence, now).await? {
                return Ok(());
            }
            self.output_of(RenewVerb { member, presence, now }).await
        };
        // Both run at once: a late renewal costs more than a superfluous one.
        let (renewed, safe) = tokio::join!(renewal, self.check_settings(Verb::Renew));
        renewed.and(safe)
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.output_of(AnnounceVerb { member, status }).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        while self.output_of(LeaveVerb { member, now }).await? {}
        Ok(())
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.output_of(MembersVerb { now }).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        check_group(&request.pool, self.group_max())
            .map_err(|error| error.with_verb(Verb::Claim))?;
        // Concurrent claims of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut claimed = self.output_of(ClaimVerb::new(&self.backend, request, 0, now)).await?;
        let mut leases = claimed.leases;
        while claimed.left > 0 {
            let before = request.count - claimed.left;
            claimed =
                match self.output_of(ClaimVerb::new(&self.backend, request, before, now)).await {
                    Ok(claimed) => claimed,
                    // Fewer groups are free than requested.
                    Err(error) if matches!(error.kind(), ErrorKind::PoolFull(_)) => break,
                    Err(error) => return Err(error),
                };
            leases.append(&mut claimed.leases);
        }
        Ok(leases)
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        if let [item] = items
            && let Some(extended) = self.try_fast_extend(item, now).await?
        {
            return Ok(vec![Ok(extended)]);
        }
        let mut extended = Vec::with_capacity(items.len());
        for items in items.chunks(step_slots(<B::Rows as Rows>::WRITES_MAX)) {
            let ((marks, catalog_version), writes) = self.run(ExtendVerb { items, now }).await?;
            self.catalog_seen.store(catalog_version, Ordering::SeqCst);
            let with_mark = |mark| Extended { mark, catalog_version, writes };
            extended.extend(marks.into_iter().map(|mark| mark.map(with_mark)));
        }
        Ok(extended)
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.output_of(ReleaseVerb { release, now }).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
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

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        for slots in in_steps::<B, _>(&relinquish.slots) {
            self.output_of(RelinquishVerb { relinquish, slots, now }).await?;
        }
        Ok(())
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        for slots in in_steps::<B, _>(&exclude.slots) {
            self.output_of(ExcludeVerb { exclude, slots, now }).await?;
        }
        Ok(())
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut reclaimed = Vec::new();
        for slots in in_steps::<B, _>(&reclaim.slots) {
            reclaimed.append(&mut self.output_of(ReclaimVerb { reclaim, slots, now }).await?);
        }
        Ok(reclaimed)
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.output_of(WorkersVerb { now }).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        if let Some(segment) = self.try_fast_reserve(reserve).await? {
            return Ok(segment);
        }
        let (segment, writes) = self.run(ReserveVerb { reserve }).await?;
        Ok(Segment { writes, ..segment })
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.output_of(GiveBackVerb { back }).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.output_of(ChangeVerb { name: &new.name, change: Changed::Define(new) }).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.output_of(ChangeVerb { name: &new.name, change: Changed::Alter(new, if_version) })
            .await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.output_of(RestripeVerb { restripe }).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.output_of(ChangeVerb { name, change: Changed::State(state) }).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.output_of(GetVerb { name }).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.output_of(ListVerb).await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let new_id = random::incarnation()?.to_string();
        let seen = self.lineage.seen().filter(|seen| seen.id == new_id || !forward.new_identity);
        let writes_seen = seen.map_or(0, |seen| seen.writes);
        let writes_at_least = forward.writes_at_least.max(writes_seen);
        let forward = &FastForward { writes_at_least, ..forward.clone() };
        let mut from = Walk::default();
        loop {
            let step = FastForwardVerb { forward, new_id: &new_id, from };
            let moved = match forward.values_only {
                true => self.run(RaiseVerb(step)).await?,
                false => self.run(step).await?,
            };
            match moved {
                (Ok(id), writes) => return Ok(StoreIdentity { id, writes }),
                (Err(walk), _) => from = walk,
            }
        }
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.output_of(AcceptLeadVerb { until }).await
    }

    async fn ground(&self) -> Result<SlotDefaults> {
        self.output_of(GroundVerb).await
    }
}
