//! Recording store: each call is executed, by the store or by one with a planted bug, and recorded.
//! A caller meets the checks of a real store's handle: the store is still the one that it has seen.
//! A caller may also see an older state, if servers respond from their own state.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::store::StoreConnector;
use snowmint_coord::{
    BoxFuture, Capabilities, Catalog, ClaimRequest, ClockOf, Error, ErrorKind, Extend, Extended,
    Lease, MemoryStore, OwnerClient, Recalled, Release, Reserve, Result, Segment, Store, StoreCall,
    StoreIdentity, StoreReply, TimeReference, VerbKind,
};
use snowmint_core::UnixMillis;

use super::network::{NetworkConditions, StoreLink};
use super::oracle::Oracle;
use super::planted::{self, Bug};
use super::random::SimRng;
use super::store::{SimStore, StoreContent};
use crate::history::{ProcessLife, Resource};

/// Process that remembers what a handle has seen, as errors name it.
const THIS_PROCESS: &str = "this process";

/// The store as one process calls it.
#[derive(Debug)]
pub(super) struct RecordingStore {
    pub(super) store: Arc<dyn SimStore>,
    /// Whether handles are on keys: these compare what they have seen, and the server, by
    /// themselves; their servers lag by themselves.
    pub(super) is_keyed: bool,
    pub(super) oracle: Oracle,
    pub(super) process_life: ProcessLife,
    pub(super) link: Arc<StoreLink>,
    pub(super) conditions: Arc<NetworkConditions>,
    pub(super) rng: SimRng,
    /// State of the store that a lagging server has: all that this process has written or read.
    pub(super) behind: Mutex<Option<Arc<dyn SimStore>>>,
    pub(super) bug: Option<Bug>,
}

/// Guard of a write by a process: afterwards its server has that write, and all before it.
struct Writing<'a>(&'a RecordingStore);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.catches_up();
    }
}

impl RecordingStore {
    fn behind(&self) -> MutexGuard<'_, Option<Arc<dyn SimStore>>> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the process's server the present state of the store.
    fn catches_up(&self) {
        // A store with a clock of its own has one server that responds.
        let lags = !self.is_keyed
            && self.store.capabilities().clock == ClockOf::Caller
            && self.conditions.reads_behind.load(Ordering::SeqCst);
        *self.behind() = match lags.then(|| self.store.backup()) {
            Some(StoreContent::Rows(backup)) => {
                let server = MemoryStore::new(self.store.namespace()).unwrap();
                server.restore(backup);
                Some(Arc::new(server))
            }
            _ => None,
        };
    }

    /// Compares what this handle has seen of the store, as each step does. After a recovery, the
    /// user of the handle is notified once that what it has is worthless.
    async fn compares(&self) -> Result<()> {
        if self.is_keyed {
            return Ok(());
        }
        if self.bug == Some(Bug::AnotherStoreUnnoticed) {
            // A handle that does not compare takes any store for the one that it has seen.
            if self.store.identity().await.is_err() {
                self.store.forget_seen();
            }
            return Ok(());
        }
        let Some(seen) = self.store.seen() else { return Ok(()) };
        let found = self.on_server(self.store.identity().await)?;
        if seen.id == found.id && seen.writes <= found.writes {
            return Ok(());
        }
        match self.on_server(self.store.recall(THIS_PROCESS, &seen).await) {
            Ok(Recalled::Same) => Ok(()),
            Ok(Recalled::Recovered) => {
                let evidence = format!("write count seen by {THIS_PROCESS}");
                Err(Error::store_rolled_back(evidence, seen.writes, found.writes))
            }
            Err(error) => Err(error),
        }
    }

    /// Checks for a promoted replica, when the store seems rolled back: the first server still has
    /// what the replica lacks, so this is not a store rollback.
    fn on_server<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && matches!(error.kind(), ErrorKind::StoreRolledBack { .. })
        {
            self.compares_server()?;
        }
        result
    }

    /// Checks the store before a step that writes.
    async fn writes(&self) -> Result<Writing<'_>> {
        self.compares_server()?;
        self.compares().await?;
        Ok(Writing(self))
    }

    /// Rejects a promoted replica: it has the marks, but it shows that it is another server.
    fn compares_server(&self) -> Result<()> {
        let compares = !self.is_keyed && self.bug != Some(Bug::AnotherServerUnnoticed);
        if !compares || !self.link.replica.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(Error::store_mismatch("server is a replica, expected the first; use the first"))
    }

    /// Returns the state that a read-only step sees.
    async fn reads(&self) -> Result<Arc<dyn SimStore>> {
        self.compares().await?;
        // The server catches up now and then.
        if self.behind().is_none() || self.rng.percent(20) {
            self.catches_up();
        }
        let Some(server) = self.behind().clone() else { return Ok(Arc::clone(&self.store)) };
        if server.identity().await?.writes < self.store.identity().await?.writes {
            self.link.happened.count("a stale read");
        }
        Ok(server)
    }
}

fn slot(pool: &str, slot: u64) -> Resource {
    Resource::Slot(pool.to_owned(), slot)
}

/// Calls that are recorded, each after the check of its kind.
impl RecordingStore {
    async fn compare_recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        if self.bug == Some(Bug::RecallForgets) {
            return Ok(Recalled::Same);
        }
        let mut recalled = Recalled::Same;
        if let Some(seen) = self.store.seen().filter(|_| !self.is_keyed) {
            recalled = self.on_server(self.store.recall(THIS_PROCESS, &seen).await)?;
        }
        if self.on_server(self.store.recall(who, seen).await)? == Recalled::Recovered {
            recalled = Recalled::Recovered;
        }
        // Recall first makes the servers agree on the newest state.
        self.catches_up();
        Ok(recalled)
    }

    async fn record_claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let leases = planted::claim(&*self.store, self.bug, request, now).await?;
        for lease in &leases {
            self.oracle.moved(&slot(&lease.pool, lease.slot)).await;
        }
        Ok(leases)
    }

    async fn record_extend(
        &self,
        items: &[Extend],
        now: UnixMillis,
    ) -> Result<Vec<Result<Extended>>> {
        let mut results = match self.bug {
            None => {
                let results = self.store.extend(items, now).await;
                if results.is_err() {
                    self.oracle.may_have_extended(items, self.process_life);
                }
                results?
            }
            Some(_) => {
                let mut results = Vec::new();
                for item in items {
                    results.push(planted::extend(&*self.store, self.bug, item, now).await);
                }
                results
            }
        };
        for (item, result) in items.iter().zip(&mut results) {
            if let Ok(extended) = result {
                let resource = slot(&item.pool, item.slot);
                self.oracle.moved(&resource).await;
                let to = extended.mark.get();
                self.oracle.granted(resource, item.from.get(), to, self.process_life).await;
            }
        }
        Ok(results)
    }

    async fn record_release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let released = planted::release(&*self.store, self.bug, release, now).await;
        // On keys, the release may be applied although the reply got lost.
        if released.is_ok() || self.is_keyed {
            self.oracle.moved(&slot(&release.pool, release.slot)).await;
        }
        released
    }

    async fn record_reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let segment = planted::reserve(&*self.store, self.bug, reserve).await?;
        let resource = Resource::Numbers(reserve.source.clone());
        self.oracle.granted(resource, segment.first, segment.last + 1, self.process_life).await;
        Ok(segment)
    }

    /// Makes a call that reads a state which may be old.
    async fn read(&self, call: StoreCall<'_>) -> Result<StoreReply> {
        let reply = self.reads().await?.call(call).await?;
        let as_reported = |found| planted::defined(self.bug, found);
        Ok(match reply {
            StoreReply::Get(found) => StoreReply::Get(as_reported(found)),
            StoreReply::List(Catalog { version, definitions }) => {
                let definitions = definitions.into_iter().map(as_reported).collect();
                StoreReply::List(Catalog { version, definitions })
            }
            reply => reply,
        })
    }

    /// Makes a call that writes.
    async fn write(&self, call: StoreCall<'_>) -> Result<StoreReply> {
        use StoreReply as R;
        let _writing = self.writes().await?;
        match call {
            StoreCall::Join { member, presence, now } => {
                let presence = planted::presence(self.bug, presence);
                self.store.join(member, presence, now).await.map(R::Join)
            }
            StoreCall::Renew { member, presence, now } => {
                let presence = planted::presence(self.bug, presence);
                self.store.renew(member, presence, now).await.map(R::Renew)
            }
            StoreCall::Leave { .. } => {
                planted::leave(&*self.store, self.bug, &self.oracle, self.process_life).await;
                self.store.call(call).await
            }
            StoreCall::Claim { request, now } => {
                self.record_claim(request, now).await.map(R::Claim)
            }
            StoreCall::Extend { items, now } => self.record_extend(items, now).await.map(R::Extend),
            StoreCall::Release { release, now } => {
                self.record_release(release, now).await.map(R::Release)
            }
            StoreCall::Acquire { acquire, now } => {
                planted::acquire(&*self.store, self.bug, acquire, now).await.map(R::Acquire)
            }
            StoreCall::Reserve { reserve } => self.record_reserve(reserve).await.map(R::Reserve),
            StoreCall::GiveBack { back } => {
                let reply = self.store.call(call).await?;
                self.oracle.moved(&Resource::Numbers(back.source.clone())).await;
                Ok(reply)
            }
            call => self.store.call(call).await,
        }
    }
}

impl Store for RecordingStore {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn namespace(&self) -> &str {
        self.store.namespace()
    }

    fn warnings(&self) -> Vec<String> {
        self.store.warnings()
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.store.seen()
    }

    /// Skips these bugs: a handle with the journal's knowledge would find by itself what they hide.
    fn remember(&self, seen: &StoreIdentity) {
        if !matches!(self.bug, Some(Bug::AnotherStoreUnnoticed | Bug::RecallForgets)) {
            self.store.remember(seen);
        }
    }

    fn group_max(&self) -> u32 {
        self.store.group_max()
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        self.store.owner_client()
    }

    fn secondary_store(&self, name: &str) -> Option<Arc<dyn StoreConnector>> {
        self.store.secondary_store(name)
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        self.store.time_reference()
    }

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        use StoreCall as C;
        Box::pin(async move {
            match call {
                C::Recall { who, seen } => {
                    self.compare_recall(who, seen).await.map(StoreReply::Recall)
                }
                C::Doubt { .. } => {
                    self.compares_server()?;
                    self.store.call(call).await
                }
                C::Report { journal, known } => {
                    self.compares_server()?;
                    let known = planted::reported(self.bug, known);
                    self.store.report(journal, known.as_ref()).await.map(StoreReply::Report)
                }
                C::Now {} | C::Standing {} => self.store.call(call).await,
                _ => match call.verb().kind() {
                    VerbKind::Read => self.read(call).await,
                    VerbKind::Operate => self.store.call(call).await,
                    VerbKind::Grant | VerbKind::Write => self.write(call).await,
                },
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.store.close()
    }
}
