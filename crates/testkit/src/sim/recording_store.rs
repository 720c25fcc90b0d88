//! Recording store: each call is executed, by the store or by one with a planted bug, and recorded.
//! A caller meets the checks of a real store's handle: the store is still the one that it has seen.
//! A caller may also see an older state, if servers respond from their own state.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::store::StoreConnector;
use snowmint_coord::{
    Acquire, Acquired, Capabilities, Catalog, ClaimRequest, ClockOf, Definition, Doubt, Error,
    ErrorKind, Evidence, Exclude, Extend, Extended, FastForward, GiveBack, Incarnation,
    JournalInfo, Known, Lease, Mark, Member, MemberInfo, MemberStatus, MemoryStore, NewDefinition,
    OwnerClient, Presence, Recalled, Reclaim, Reclaimed, Release, Relinquish, Reserve, Restripe,
    Result, Segment, SlotInfo, SourceState, Standing, Store, StoreIdentity, TimeReference,
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

#[async_trait]
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

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.store.now().await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.reads().await?.identity().await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
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

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        self.compares_server()?;
        self.store.doubt(doubt, evidence).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.compares_server()?;
        let known = planted::reported(self.bug, known);
        self.store.report(journal, known.as_ref()).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.store.standing().await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        let _writing = self.writes().await?;
        self.store.join(member, planted::presence(self.bug, presence), now).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        let _writing = self.writes().await?;
        self.store.renew(member, planted::presence(self.bug, presence), now).await
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        let _writing = self.writes().await?;
        self.store.announce(member, status).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        let _writing = self.writes().await?;
        planted::leave(&*self.store, self.bug, &self.oracle, self.process_life).await;
        self.store.leave(member, now).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.reads().await?.members(now).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        let _writing = self.writes().await?;
        let leases = planted::claim(&*self.store, self.bug, request, now).await?;
        for lease in &leases {
            self.oracle.moved(&slot(&lease.pool, lease.slot)).await;
        }
        Ok(leases)
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        let _writing = self.writes().await?;
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

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        let _writing = self.writes().await?;
        let released = planted::release(&*self.store, self.bug, release, now).await;
        // On keys, the release may be applied although the reply got lost.
        if released.is_ok() || self.is_keyed {
            self.oracle.moved(&slot(&release.pool, release.slot)).await;
        }
        released
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        let _writing = self.writes().await?;
        planted::acquire(&*self.store, self.bug, acquire, now).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        let _writing = self.writes().await?;
        self.store.relinquish(relinquish, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.reads().await?.workers(now).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        let _writing = self.writes().await?;
        let segment = planted::reserve(&*self.store, self.bug, reserve).await?;
        let resource = Resource::Numbers(reserve.source.clone());
        self.oracle.granted(resource, segment.first, segment.last + 1, self.process_life).await;
        Ok(segment)
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        let _writing = self.writes().await?;
        let version = self.store.give_back(back).await?;
        self.oracle.moved(&Resource::Numbers(back.source.clone())).await;
        Ok(version)
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        let _writing = self.writes().await?;
        self.store.define(new).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        let _writing = self.writes().await?;
        self.store.alter(new, if_version).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        let _writing = self.writes().await?;
        self.store.restripe(restripe).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        let _writing = self.writes().await?;
        self.store.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        let found = self.reads().await?.get(name).await?;
        Ok(planted::defined(self.bug, found))
    }

    async fn list(&self) -> Result<Catalog> {
        let Catalog { version, definitions } = self.reads().await?.list().await?;
        let as_reported = |found| planted::defined(self.bug, found);
        Ok(Catalog { version, definitions: definitions.into_iter().map(as_reported).collect() })
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
        self.reads().await?.ground().await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
