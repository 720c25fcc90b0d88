//! The store trait, verb by verb.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use snowmint_core::UnixMillis;

use super::exclude::ExcludeVerb;
use super::forward::{AcceptLead, Forward, LooksAtGround, Walk};
use super::history::{AcceptsServer, Doubts, Recalls, Reports, Stands};
use super::members::{Announce, Join, Leave, Members, Renew};
use super::ordered::{AcquireVerb, RelinquishVerb};
use super::reclaim::Reclaims;
use super::slots::{Claim, Extends, Releases, Workers};
use super::sources::{Change, Changed, Get, GivesBack, List, Reserves, Restripes};
use super::{Access, Backend, Rows, RunVerb, Step, StoreOver, Verb};
use crate::beside::StorePlace;
use crate::capability::{Capabilities, ClockOf};
use crate::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState};
use crate::clock_witness::ClockWitness;
use crate::error::{ErrorKind, Result};
use crate::exclude::Exclude;
use crate::history::{Doubt, Evidence, JournalInfo, Known, Recalled, Standing};
use crate::lease::{ClaimRequest, Extend, Extended, Lease, Mark, Release};
use crate::member::{Incarnation, Member, MemberInfo, MemberStatus, Presence};
use crate::ordered::{Acquire, Acquired, Relinquish};
use crate::owners::Owners;
use crate::pool::{Ground, check_group};
use crate::random;
use crate::reclaim::{Reclaim, Reclaimed};
use crate::segment::{GiveBack, Reserve, Segment};
use crate::slot::SlotInfo;
use crate::store::{FastForward, Store, StoreIdentity};

struct Identity;

#[async_trait]
impl RunVerb for Identity {
    type Answer = StoreIdentity;
    const ACCESS: Access = Access::Read;

    fn verb(&self) -> Verb {
        Verb::Identity
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, StoreIdentity> {
        Ok((rows.identity().clone(), false))
    }
}

struct Now;

#[async_trait]
impl RunVerb for Now {
    type Answer = Option<UnixMillis>;
    const ACCESS: Access = Access::Read;

    fn verb(&self) -> Verb {
        Verb::Now
    }

    async fn run<R: Rows>(&self, rows: &mut R) -> Step<R, Option<UnixMillis>> {
        Ok((rows.clock(), false))
    }
}

impl<B: Backend> StoreOver<B> {
    async fn check_settings(&self, verb: Verb) -> Result<()> {
        self.backend.check_settings().await.map_err(|failure| self.error(verb, failure))
    }

    async fn answer<V: RunVerb>(&self, verb: V) -> Result<V::Answer> {
        Ok(self.run(verb).await?.0)
    }
}

/// Splits the slots into parts that one step can write, with room for the records of members.
/// Returns at least one part, so that invalid requests are rejected.
fn in_steps<B: Backend, T>(slots: &[T]) -> impl Iterator<Item = &[T]> {
    let chunks = slots.chunks((<B::Rows as Rows>::WRITES_MAX / 2).max(1));
    chunks.chain(slots.is_empty().then_some(slots))
}

#[async_trait]
impl<B: Backend> Store for StoreOver<B> {
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

    fn owners(&self) -> Option<Arc<dyn Owners>> {
        None
    }

    fn beside(&self, _: &str) -> Option<Arc<dyn StorePlace>> {
        None
    }

    fn clock_witness(&self) -> Option<Arc<dyn ClockWitness>> {
        None
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.lineage.seen().as_deref().cloned()
    }

    fn remember(&self, seen: &StoreIdentity) {
        self.lineage.remember(seen);
    }

    async fn now(&self) -> Result<Option<UnixMillis>> {
        match self.backend.capabilities().clock {
            ClockOf::Store => self.answer(Now).await,
            // The store has no clock to read.
            ClockOf::Caller => Ok(None),
        }
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.answer(Identity).await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.backend.catch_up().await.map_err(|failure| self.error(Verb::Recall, failure))?;
        let by_handle = self.lineage.by_handle();
        let recalls = Recalls { who, seen, by_handle: by_handle.as_ref() };
        let (recalled, found) = self.answer(recalls).await?;
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
            return self.answer(AcceptsServer { doubt, evidence, by_handle }).await;
        }
        self.answer(Doubts { doubt, evidence, by_handle }).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.answer(Reports { journal, known }).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.answer(Stands).await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.check_settings(Verb::Join).await?;
        self.answer(Join { member, presence, now }).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let renewal = async {
            if self.renew_at_once(member, presence, now).await? {
                return Ok(());
            }
            self.answer(Renew { member, presence, now }).await
        };
        // Both run at once: a late renewal costs more than a superfluous one.
        let (renewed, safe) = tokio::join!(renewal, self.check_settings(Verb::Renew));
        renewed.and(safe)
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.answer(Announce { member, status }).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        while self.answer(Leave { member, now }).await? {}
        Ok(())
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.answer(Members { now }).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        check_group(&request.pool, self.group_max())
            .map_err(|error| error.with_verb(Verb::Claim))?;
        // Concurrent claims of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut claimed = self.answer(Claim::new(&self.backend, request, 0, now)).await?;
        let mut leases = claimed.leases;
        while claimed.left > 0 {
            let before = request.count - claimed.left;
            claimed = match self.answer(Claim::new(&self.backend, request, before, now)).await {
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
            && let Some(extended) = self.extend_at_once(item, now).await?
        {
            return Ok(vec![Ok(extended)]);
        }
        let mut extended = Vec::with_capacity(items.len());
        for items in items.chunks(<B::Rows as Rows>::WRITES_MAX) {
            let ((marks, catalog_version), writes) = self.run(Extends { items, now }).await?;
            self.catalog_seen.store(catalog_version, Ordering::SeqCst);
            let answer = |mark| Extended { mark, catalog_version, writes };
            extended.extend(marks.into_iter().map(|mark| mark.map(answer)));
        }
        Ok(extended)
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.answer(Releases { release, now }).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut acquired = Acquired::default();
        for slots in in_steps::<B, _>(&acquire.slots) {
            let mut more = self.answer(AcquireVerb { acquire, slots, now }).await?;
            acquired.leases.append(&mut more.leases);
            acquired.held.append(&mut more.held);
        }
        Ok(acquired)
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        for slots in in_steps::<B, _>(&relinquish.slots) {
            self.answer(RelinquishVerb { relinquish, slots, now }).await?;
        }
        Ok(())
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        for slots in in_steps::<B, _>(&exclude.slots) {
            self.answer(ExcludeVerb { exclude, slots, now }).await?;
        }
        Ok(())
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        // Concurrent steps of one handle would only overtake each other.
        let _turn = self.claims.lock().await;
        let mut reclaimed = Vec::new();
        for slots in in_steps::<B, _>(&reclaim.slots) {
            reclaimed.append(&mut self.answer(Reclaims { reclaim, slots, now }).await?);
        }
        Ok(reclaimed)
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.answer(Workers { now }).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        if let Some(segment) = self.reserve_at_once(reserve).await? {
            return Ok(segment);
        }
        let (segment, writes) = self.run(Reserves { reserve }).await?;
        Ok(Segment { writes, ..segment })
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.answer(GivesBack { back }).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.answer(Change { name: &new.name, change: Changed::Define(new) }).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.answer(Change { name: &new.name, change: Changed::Alter(new, if_version) }).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.answer(Restripes { restripe }).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.answer(Change { name, change: Changed::State(state) }).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.answer(Get { name }).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.answer(List).await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let new_id = random::incarnation()?.to_string();
        let seen = self.lineage.seen().filter(|seen| seen.id == new_id || !forward.new_identity);
        let writes_seen = seen.map_or(0, |seen| seen.writes);
        let writes_at_least = forward.writes_at_least.max(writes_seen);
        let forward = &FastForward { writes_at_least, ..forward.clone() };
        let mut from = Walk::default();
        loop {
            match self.run(Forward { forward, new_id: &new_id, from }).await? {
                (Ok(id), writes) => return Ok(StoreIdentity { id, writes }),
                (Err(walk), _) => from = walk,
            }
        }
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.answer(AcceptLead { until }).await
    }

    async fn ground(&self) -> Result<Ground> {
        self.answer(LooksAtGround).await
    }

    async fn close(&self) -> Result<()> {
        self.backend.close().await
    }
}
