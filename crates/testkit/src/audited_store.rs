//! A store that reports its promises to a sink: for processes with IDs that are checked from
//! outside.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::{
    Acquire, Acquired, Catalog, ClaimRequest, Definition, Doubt, Evidence, Exclude, Extend,
    Extended, FastForward, GiveBack, Incarnation, JournalInfo, Known, Lease, Mark, Member,
    MemberInfo, MemberStatus, NewDefinition, Presence, Recalled, Reclaim, Reclaimed, Release,
    Relinquish, Reserve, Restripe, Result, Segment, SlotInfo, SourceState, Standing, Store,
    StoreIdentity,
};
use snowmint_core::UnixMillis;

use crate::history::Resource;

/// Sink for the promises of a store.
pub trait PromiseSink: Send + Sync + fmt::Debug + 'static {
    /// Records that the store is about to be called for `[from, to)`: a process that is killed
    /// meanwhile may have it, and a journal continues from there.
    fn asks(&self, resource: &Resource, from: u64, to: u64);

    /// Records that the store has acknowledged `[from, to)`; the caller does not know it yet.
    fn granted(&self, resource: &Resource, from: u64, to: u64);

    /// Records that nothing at or above `mark` will be minted any more; the store does not know it
    /// yet.
    fn gives_up(&self, resource: &Resource, mark: u64);
}

/// A store that reports its promises to a sink.
#[derive(Debug)]
pub struct AuditedStore<W> {
    store: Arc<dyn Store>,
    sink: W,
}

impl<W: PromiseSink> AuditedStore<W> {
    /// Wraps a store, and reports its promises to the sink.
    pub fn new(store: Arc<dyn Store>, sink: W) -> Self {
        Self { store, sink }
    }
}

#[async_trait]
impl<W: PromiseSink> Store for AuditedStore<W> {
    snowmint_coord::as_inner!(store);

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.store.now().await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.store.identity().await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.store.recall(who, seen).await
    }

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        self.store.doubt(doubt, evidence).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.store.report(journal, known).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.store.standing().await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store.join(member, presence, now).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store.renew(member, presence, now).await
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.store.announce(member, status).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        self.store.leave(member, now).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.store.members(now).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        self.store.claim(request, now).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let resource = |item: &Extend| Resource::Slot(item.pool.clone(), item.slot);
        for item in items {
            self.sink.asks(&resource(item), item.from.get(), item.to.get());
        }
        let results = self.store.extend(items, now).await?;
        for (item, result) in items.iter().zip(&results) {
            if let Ok(extended) = result {
                let resource = resource(item);
                self.sink.granted(&resource, item.from.get(), extended.mark.get());
            }
        }
        Ok(results)
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let resource = Resource::Slot(release.pool.clone(), release.slot);
        self.sink.gives_up(&resource, release.mark.get());
        self.store.release(release, now).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        self.store.acquire(acquire, now).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.store.relinquish(relinquish, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.store.workers(now).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let segment = self.store.reserve(reserve).await?;
        let resource = Resource::Numbers(reserve.source.clone());
        self.sink.granted(&resource, segment.first, segment.last.saturating_add(1));
        Ok(segment)
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.sink.gives_up(&Resource::Numbers(back.source.clone()), back.first);
        self.store.give_back(back).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.store.define(new).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.store.alter(new, if_version).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.store.restripe(restripe).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.store.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.store.get(name).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.store.list().await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.store.fast_forward(forward).await
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        self.store.exclude(exclude, now).await
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        self.store.reclaim(reclaim, now).await
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.store.accept_lead(until).await
    }

    async fn ground(&self) -> Result<SlotDefaults> {
        self.store.ground().await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
