//! Reads of a store on behalf of callers, which are many and arrive at any time.
//!
//! The problem: a store serves one call after the other, or few at a time. A client that requests a
//! long list over a thousand connections queues a thousand calls there. The node's own urgent
//! calls, such as for a window, wait behind them.
//!
//! The solution: of each kind of read one call is in flight, for [all callers with the same
//! query](flight). Writes go straight to the store. The node's own reads bypass this: they wait
//! only for their own results.

mod flight;

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_core::UnixMillis;
use tokio::runtime::Handle;

use self::flight::{AsOf, Flights, Query};
use crate::error::{Error, Result, Verb};
use crate::ids::{Incarnation, Mark};
use crate::model::catalog::{Catalog, Definition, NewDefinition, Restripe, SourceState, existing};
use crate::model::exclude::Exclude;
use crate::model::exclusive::{Acquire, Acquired, Relinquish};
use crate::model::fast_forward::FastForward;
use crate::model::history::{
    Doubt, Evidence, JournalInfo, Known, Recalled, Standing, StoreIdentity,
};
use crate::model::lease::{Extend, Extended, Lease, Release};
use crate::model::member::{Member, MemberInfo, MemberStatus, Presence};
use crate::model::pool::{ClaimRequest, SlotDefaults};
use crate::model::reclaim::{Reclaim, Reclaimed};
use crate::model::segment::{GiveBack, Reserve, Segment};
use crate::model::slot::SlotInfo;
use crate::platform::fork_guard::ForkGuard;
use crate::platform::timer::Timer;
use crate::store::Store;

/// Maximum number of definitions that wait to be read one by one. More are read together, with the
/// whole catalog.
const DEFINITIONS_MAX: usize = 4;

/// A store with reads shared by all concurrent callers.
#[derive(Debug)]
pub(crate) struct SharedReads {
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    runtime: Handle,
    /// Fork guard of the process in which the runtime runs.
    fork_guard: ForkGuard,
    /// Maximum duration of a call, in milliseconds.
    call_ms: u64,
    /// Held while a caller copies a result, which may be long. All callers are woken at the same
    /// moment, and together would keep other tasks from running for as long as they copy.
    turn: tokio::sync::Mutex<()>,
    times: Flights<(), Option<UnixMillis>>,
    identities: Flights<(), StoreIdentity>,
    recalls: Flights<(String, StoreIdentity), Recalled>,
    standings: Flights<(), Standing>,
    members: Flights<AsOf, Vec<MemberInfo>>,
    workers: Flights<AsOf, Vec<SlotInfo>>,
    definitions: Flights<String, Definition>,
    catalogs: Flights<(), Catalog>,
    grounds: Flights<(), SlotDefaults>,
}

impl SharedReads {
    /// Creates shared reads of this store; each call ends in time.
    pub(crate) fn of(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        (runtime, fork_guard): (Handle, ForkGuard),
        call_ms: u64,
    ) -> Self {
        Self {
            store,
            timer,
            runtime,
            fork_guard,
            call_ms,
            turn: tokio::sync::Mutex::default(),
            times: Flights::default(),
            identities: Flights::default(),
            recalls: Flights::default(),
            standings: Flights::default(),
            members: Flights::default(),
            workers: Flights::default(),
            definitions: Flights::default(),
            catalogs: Flights::default(),
            grounds: Flights::default(),
        }
    }

    /// Returns the result that all concurrent callers with this query share.
    async fn shared<Q, T, F>(
        &self,
        (flights, verb): (&Flights<Q, T>, Verb),
        query: Q,
        call: impl Fn(Arc<dyn Store>, Q) -> F + Send + Sync + 'static,
    ) -> Result<Arc<T>>
    where
        Q: Query,
        T: std::fmt::Debug + Send + Sync + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        // In a forked child spawned tasks do not run: the store itself returns the error.
        if !self.fork_guard.is_here() {
            return call(Arc::clone(&self.store), query).await.map(Arc::new);
        }
        let (store, timer, call_ms) =
            (Arc::clone(&self.store), Arc::clone(&self.timer), self.call_ms);
        let call = move |query| {
            with_timeout(Arc::clone(&timer), call_ms, verb, call(Arc::clone(&store), query))
        };
        flights.ask(&self.runtime, query, call).await
    }

    /// Returns the caller's own copy of the shared result.
    async fn own<Q, T, F>(
        &self,
        kind: (&Flights<Q, T>, Verb),
        query: Q,
        call: impl Fn(Arc<dyn Store>, Q) -> F + Send + Sync + 'static,
    ) -> Result<T>
    where
        Q: Query,
        T: Clone + std::fmt::Debug + Send + Sync + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let result = self.shared(kind, query, call).await?;
        let _turn = self.turn.lock().await;
        Ok(T::clone(&result))
    }

    async fn catalog(&self) -> Result<Arc<Catalog>> {
        let call = |store: Arc<dyn Store>, ()| async move { store.list().await };
        self.shared((&self.catalogs, Verb::List), (), call).await
    }
}

/// Runs a call with a time limit, independent of the callers that wait for it.
async fn with_timeout<T>(
    timer: Arc<dyn Timer>,
    call_ms: u64,
    verb: Verb,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        result = call => result,
        () = timer.sleep_ms(call_ms) => {
            let error = Error::unavailable(format!("store did not respond within {call_ms} ms; retry"));
            Err(error.with_verb(verb))
        }
    }
}

#[async_trait]
impl Store for SharedReads {
    crate::as_inner!(store);

    async fn now(&self) -> Result<Option<UnixMillis>> {
        let call = |store: Arc<dyn Store>, ()| async move { store.now().await };
        self.own((&self.times, Verb::Now), (), call).await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        let call = |store: Arc<dyn Store>, ()| async move { store.identity().await };
        self.own((&self.identities, Verb::Identity), (), call).await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        let call = |store: Arc<dyn Store>, (who, seen): (String, StoreIdentity)| async move {
            store.recall(&who, &seen).await
        };
        self.own((&self.recalls, Verb::Recall), (who.to_owned(), seen.clone()), call).await
    }

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        self.store.doubt(doubt, evidence).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.store.report(journal, known).await
    }

    async fn standing(&self) -> Result<Standing> {
        let call = |store: Arc<dyn Store>, ()| async move { store.standing().await };
        self.own((&self.standings, Verb::Standing), (), call).await
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
        let call = |store: Arc<dyn Store>, at: AsOf| async move { store.members(at.now).await };
        self.own((&self.members, Verb::Members), AsOf::new(now), call).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        self.store.claim(request, now).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        self.store.extend(items, now).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.store.release(release, now).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        self.store.acquire(acquire, now).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.store.relinquish(relinquish, now).await
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        self.store.exclude(exclude, now).await
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        self.store.reclaim(reclaim, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        let call = |store: Arc<dyn Store>, at: AsOf| async move { store.workers(at.now).await };
        self.own((&self.workers, Verb::Workers), AsOf::new(now), call).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        self.store.reserve(reserve).await
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
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
        if self.definitions.waiting() < DEFINITIONS_MAX {
            let call = |store: Arc<dyn Store>, name: String| async move { store.get(&name).await };
            return self.own((&self.definitions, Verb::Get), name.to_owned(), call).await;
        }
        let catalog = self.catalog().await?;
        let stored = catalog.definitions.iter().find(|stored| stored.name == name);
        let found = || -> Result<Definition> { Ok(existing(stored, name)?.clone()) };
        found().map_err(|error| error.with_verb(Verb::Get))
    }

    async fn list(&self) -> Result<Catalog> {
        let catalog = self.catalog().await?;
        let _turn = self.turn.lock().await;
        Ok(Catalog::clone(&catalog))
    }

    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        self.store.fast_forward(forward).await
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.store.accept_lead(until).await
    }

    async fn ground(&self) -> Result<SlotDefaults> {
        let call = |store: Arc<dyn Store>, ()| async move { store.ground().await };
        self.own((&self.grounds, Verb::Ground), (), call).await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
