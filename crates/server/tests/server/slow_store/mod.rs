//! Tests of a store that responds slowly: how many may wait for it, and which callers are served
//! meanwhile.

mod definitions;
mod lists;
mod secondary;
mod turns;
mod upstream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::store::StoreConnectors;
use snowmint_coord::{
    Acquire, Acquired, Catalog, ClaimRequest, Definition, Doubt, Error, Evidence, Exclude, Extend,
    Extended, FastForward, GiveBack, Incarnation, JournalInfo, Known, Lease, Mark, Member,
    MemberInfo, MemberStatus, MemoryStore, NewDefinition, Node, NodeSettings, Platform, Presence,
    Recalled, Reclaim, Reclaimed, Release, Relinquish, Reserve, Restripe, Result, Segment,
    SlotInfo, SourceState, Standing, Store, StoreIdentity,
};
use snowmint_core::UnixMillis;
use tokio::sync::watch;

use super::recovery::doubted;

/// Length from which on a reservation waits: the server's own are shorter.
const LONG: u64 = 10_000;
/// Calls of one client at the store at the same time.
const AT_THE_STORE: usize = 8;
/// A source that reserves each number when it is requested.
const BILLS: &str = r#"{"name":"bills","kind":"segment","step":{"rule":"fixed","size":1}}"#;
/// A counter whose numbers the store confirms.
const SURE: &str = r#"{"name":"sure","kind":"counter","counter":{"confirm":"store"}}"#;
/// Path of a call that reserves numbers at the store.
const PATH: &str = "/v1/segments/numbers";

/// Returns its body, for a reservation that waits.
fn long() -> String {
    format!("{{\"length\":{LONG}}}")
}

/// A memory store with calls that wait until the test releases them: lists, long reservations,
/// confirmations of counters, restripes and deletions. A move finds it in doubt. Definitions cannot
/// be read while it is away.
#[derive(Debug)]
pub(super) struct BlockedStore {
    pub(super) store: MemoryStore,
    is_held: watch::Sender<bool>,
    is_away: AtomicBool,
    /// Calls that wait, apart from lists, and the most that have waited at the same time.
    waiting: watch::Sender<(usize, usize)>,
}

impl BlockedStore {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new("test").unwrap(),
            is_held: watch::Sender::new(false),
            is_away: AtomicBool::new(false),
            waiting: watch::Sender::default(),
        })
    }

    /// Opens a node on this store.
    async fn node(self: &Arc<Self>) -> Node {
        self.node_with(StoreConnectors::new()).await
    }

    /// Opens a node on this store, with these secondary stores.
    async fn node_with(self: &Arc<Self>, secondary_stores: StoreConnectors) -> Node {
        // The name tells its acquires from confirmations, which have none. The time is long enough
        // for any slow machine.
        let (owner, store_call_ms) = ("server".to_owned(), 600_000);
        let patient = NodeSettings {
            builtin: true,
            owner,
            store_call_ms,
            secondary_stores,
            ..NodeSettings::default()
        };
        let store = Arc::clone(self) as Arc<dyn Store>;
        Node::open(store, patient, Platform::system()).await.unwrap()
    }

    /// Waits, and is counted, until the test releases the store.
    async fn wait(&self) {
        self.waiting.send_modify(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
        self.released().await;
        self.waiting.send_modify(|(now, _)| *now -= 1);
    }

    async fn released(&self) {
        // The sender lives in self.
        let _ = self.is_held.subscribe().wait_for(|is_held| !is_held).await;
    }
}

#[async_trait]
impl Store for BlockedStore {
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
        self.store.extend(items, now).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.store.release(release, now).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        if acquire.owner.is_empty() {
            self.wait().await;
        }
        self.store.acquire(acquire, now).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.store.relinquish(relinquish, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.store.workers(now).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        if reserve.length < LONG {
            return self.store.reserve(reserve).await;
        }
        self.wait().await;
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
        self.wait().await;
        self.store.restripe(restripe).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.wait().await;
        self.store.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(Error::unavailable("memory store is unavailable"));
        }
        self.store.get(name).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.released().await;
        self.store.list().await
    }

    /// A doubt begins between the caller's look and the move.
    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        doubted(&self.store).await;
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
