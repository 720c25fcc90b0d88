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
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use self::flight::{AsOf, Flights, Query};
use crate::error::{Error, Result, Verb, VerbKind};
use crate::model::catalog::existing;
use crate::model::history::StoreIdentity;
use crate::platform::fork_guard::ForkGuard;
use crate::platform::timer::Timer;
use crate::store::call::mismatch;
use crate::store::{Store, StoreCall, StoreReply};

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
    /// Set by each write that may hand something out to a caller.
    hands_out: Arc<AtomicBool>,
    /// Held while a caller copies a result, which may be long. All callers are woken at the same
    /// moment, and together would keep other tasks from running for as long as they copy.
    turn: tokio::sync::Mutex<()>,
    times: Flights<(), StoreReply>,
    identities: Flights<(), StoreReply>,
    recalls: Flights<(String, StoreIdentity), StoreReply>,
    standings: Flights<(), StoreReply>,
    members: Flights<AsOf, StoreReply>,
    workers: Flights<AsOf, StoreReply>,
    definitions: Flights<String, StoreReply>,
    catalogs: Flights<(), StoreReply>,
    grounds: Flights<(), StoreReply>,
}

impl SharedReads {
    /// Creates shared reads of this store; each call ends in time.
    pub(crate) fn of(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        (runtime, fork_guard): (Handle, ForkGuard),
        call_ms: u64,
        hands_out: Arc<AtomicBool>,
    ) -> Self {
        Self {
            store,
            timer,
            runtime,
            fork_guard,
            call_ms,
            hands_out,
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

    /// Returns the reply that all concurrent callers with this query share.
    async fn shared<Q: Query>(
        &self,
        flights: &Flights<Q, StoreReply>,
        query: Q,
        call: for<'q> fn(&'q Q) -> StoreCall<'q>,
    ) -> Result<Arc<StoreReply>> {
        // In a forked child spawned tasks do not run: the store itself returns the error.
        if !self.fork_guard.is_here() {
            return self.store.call(call(&query)).await.map(Arc::new);
        }
        let (store, timer, call_ms) =
            (Arc::clone(&self.store), Arc::clone(&self.timer), self.call_ms);
        let call = move |query| {
            let (store, timer) = (Arc::clone(&store), Arc::clone(&timer));
            async move { with_timeout(&*timer, call_ms, &*store, call(&query)).await }
        };
        flights.ask(&self.runtime, query, call).await
    }

    /// Returns the caller's own copy of the shared reply.
    async fn own<Q: Query>(
        &self,
        flights: &Flights<Q, StoreReply>,
        query: Q,
        call: for<'q> fn(&'q Q) -> StoreCall<'q>,
    ) -> Result<StoreReply> {
        let reply = self.shared(flights, query, call).await?;
        let _turn = self.turn.lock().await;
        Ok(StoreReply::clone(&reply))
    }

    /// Returns one definition. When many are waited for, it comes from the whole catalog.
    async fn definition(&self, name: &str) -> Result<StoreReply> {
        if self.definitions.waiting() < DEFINITIONS_MAX {
            let name = name.to_owned();
            return self.own(&self.definitions, name, |name| StoreCall::Get { name }).await;
        }
        let reply = self.shared(&self.catalogs, (), |()| StoreCall::List {}).await?;
        let StoreReply::List(catalog) = &*reply else {
            return Err(mismatch(Verb::List, reply.verb()));
        };
        let stored = catalog.definitions.iter().find(|stored| stored.name == name);
        let found = existing(stored, name).map_err(|error| error.with_verb(Verb::Get))?;
        Ok(StoreReply::Get(found.clone()))
    }
}

/// Makes a call with a time limit, independent of the callers that wait for it.
async fn with_timeout(
    timer: &dyn Timer,
    call_ms: u64,
    store: &dyn Store,
    call: StoreCall<'_>,
) -> Result<StoreReply> {
    tokio::select! {
        biased;
        result = store.call(call) => result,
        () = timer.sleep_ms(call_ms) => {
            let error = Error::unavailable(format!("store did not respond within {call_ms} ms; retry"));
            Err(error.with_verb(call.verb()))
        }
    }
}

impl Store for SharedReads {
    crate::as_inner!(store);

    /// Shares reads, and makes all other calls at once.
    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        use StoreCall as C;
        match call {
            C::Now {} => Box::pin(self.own(&self.times, (), |()| C::Now {})),
            C::Identity {} => Box::pin(self.own(&self.identities, (), |()| C::Identity {})),
            C::Recall { who, seen } => {
                let query = (who.to_owned(), seen.clone());
                Box::pin(self.own(&self.recalls, query, |(who, seen)| C::Recall { who, seen }))
            }
            C::Standing {} => Box::pin(self.own(&self.standings, (), |()| C::Standing {})),
            C::Members { now } => {
                let query = AsOf::new(now);
                Box::pin(self.own(&self.members, query, |at| C::Members { now: at.now }))
            }
            C::Workers { now } => {
                let query = AsOf::new(now);
                Box::pin(self.own(&self.workers, query, |at| C::Workers { now: at.now }))
            }
            C::Get { name } => Box::pin(self.definition(name)),
            C::List {} => Box::pin(self.own(&self.catalogs, (), |()| C::List {})),
            C::Ground {} => Box::pin(self.own(&self.grounds, (), |()| C::Ground {})),
            call => Box::pin(async move {
                let replied = self.store.call(call).await;
                if replied.is_ok() && call.verb().kind() == VerbKind::Grant {
                    self.hands_out.store(true, Ordering::Release);
                }
                replied
            }),
        }
    }
}
