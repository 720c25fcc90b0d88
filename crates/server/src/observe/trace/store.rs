//! A store with a span for each call.

use std::sync::Arc;

use async_trait::async_trait;
use opentelemetry::KeyValue;
use opentelemetry::trace::{FutureExt as _, Status, TraceContextExt as _};
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::{
    Acquire, Acquired, Catalog, ClaimRequest, Definition, Doubt, Evidence, Exclude, Extend,
    Extended, FastForward, GiveBack, Incarnation, JournalInfo, Known, Lease, Mark, Member,
    MemberInfo, MemberStatus, NewDefinition, Presence, Recalled, Reclaim, Reclaimed, Release,
    Relinquish, Reserve, Restripe, Result, Segment, SlotInfo, SourceState, Standing, Store,
    StoreIdentity, Verb,
};
use snowmint_core::UnixMillis;

use super::Traces;

impl Traces {
    /// Returns the same store, with a span for each call.
    #[must_use]
    pub fn store(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(TracedStore::new(store, self.clone()))
    }
}

/// A store, and the exporter of its spans.
#[derive(Debug)]
struct TracedStore {
    store: Arc<dyn Store>,
    traces: Traces,
}

impl TracedStore {
    fn new(store: Arc<dyn Store>, traces: Traces) -> Self {
        Self { store, traces }
    }

    /// Makes one call, in a span of its own.
    async fn call<T>(
        &self,
        verb: Verb,
        attributes: Vec<KeyValue>,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let span = self.traces.part(verb.span_name(), attributes);
        let result = call.with_context(span.clone()).await;
        if let Err(error) = &result {
            // The code alone: the back end's message may name hosts and users.
            span.span().set_status(Status::error(error.kind().code()));
        }
        span.span().end();
        result
    }
}

fn attribute(key: &'static str, value: &str) -> Vec<KeyValue> {
    vec![KeyValue::new(key, value.to_owned())]
}

fn source(name: &str) -> Vec<KeyValue> {
    attribute("snowmint.source", name)
}

fn pool(name: &str) -> Vec<KeyValue> {
    attribute("snowmint.pool", name)
}

fn pools(items: &[Extend]) -> Vec<KeyValue> {
    items.first().map_or_else(Vec::new, |item| pool(&item.pool))
}

#[async_trait]
impl Store for TracedStore {
    snowmint_coord::as_inner!(store);

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.call(Verb::Now, vec![], self.store.now()).await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.call(Verb::Identity, vec![], self.store.identity()).await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.call(Verb::Recall, vec![], self.store.recall(who, seen)).await
    }

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        self.call(Verb::Doubt, vec![], self.store.doubt(doubt, evidence)).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.call(Verb::Report, vec![], self.store.report(journal, known)).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.call(Verb::Standing, vec![], self.store.standing()).await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.call(Verb::Join, vec![], self.store.join(member, presence, now)).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        self.call(Verb::Renew, vec![], self.store.renew(member, presence, now)).await
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.call(Verb::Announce, vec![], self.store.announce(member, status)).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        self.call(Verb::Leave, vec![], self.store.leave(member, now)).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.call(Verb::Members, vec![], self.store.members(now)).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let attributes = pool(&request.pool.name);
        self.call(Verb::Claim, attributes, self.store.claim(request, now)).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        self.call(Verb::Extend, pools(items), self.store.extend(items, now)).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.call(Verb::Release, pool(&release.pool), self.store.release(release, now)).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        self.call(Verb::Acquire, pool(&acquire.pool.name), self.store.acquire(acquire, now)).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.call(Verb::Relinquish, pool(&relinquish.pool), self.store.relinquish(relinquish, now))
            .await
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        self.call(Verb::Exclude, pool(&exclude.pool.name), self.store.exclude(exclude, now)).await
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        self.call(Verb::Reclaim, pool(&reclaim.pool), self.store.reclaim(reclaim, now)).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.call(Verb::Workers, vec![], self.store.workers(now)).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        self.call(Verb::Reserve, source(&reserve.source), self.store.reserve(reserve)).await
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.call(Verb::GiveBack, source(&back.source), self.store.give_back(back)).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.call(Verb::Define, source(&new.name), self.store.define(new)).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.call(Verb::Alter, source(&new.name), self.store.alter(new, if_version)).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        let attributes = source(&restripe.new.name);
        self.call(Verb::Restripe, attributes, self.store.restripe(restripe)).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.call(Verb::SetState, source(name), self.store.set_state(name, state)).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.call(Verb::Get, source(name), self.store.get(name)).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.call(Verb::List, vec![], self.store.list()).await
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.call(Verb::FastForward, vec![], self.store.fast_forward(forward)).await
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.call(Verb::AcceptLead, vec![], self.store.accept_lead(until)).await
    }

    async fn ground(&self) -> Result<SlotDefaults> {
        self.call(Verb::Ground, vec![], self.store.ground()).await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
