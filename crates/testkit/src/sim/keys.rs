//! Keys with versions in memory, under the steps on keys that ship. A step on rows runs alone. A
//! step on keys reads, decides and sends a batch, and other handles may write between these: then
//! the step loses.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use snowmint_coord::verbs::{Access, Backend as _, BackendStore, Failure, Rows as _, StoreInfo};
use snowmint_coord::{
    Capabilities, ClockOf, Error, MemoryClock, MemoryStore, Result, SlotRow, Store, Timer,
};
use snowmint_stores::keyed::{
    Batch, Entry, Head, Keyed, Keys, Outcome, ScriptOutcome, ScriptRequest, Step, name,
};

use super::network::{NetworkConditions, StoreLink};
use super::planted::Bug;
use super::random::SimRng;
use super::server::{self, Like, Stored};
use super::store::{SimStore, StoreContent};
use super::time::{Gate, Life, TrueTime, WorldTimer};

/// Attempts at a step, as many as of a real handle.
const ATTEMPTS: u32 = 64;
/// Number of moments that stay readable.
const MOMENTS_MAX: usize = 32;

/// All keys at one moment. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Keyspace(Arc<Stored>);

impl Keyspace {
    pub(super) fn on_server(self, server: u64) -> Self {
        let mut stored = Arc::unwrap_or_clone(self.0);
        stored.server = stored.server.map(|_| server);
        Self(Arc::new(stored))
    }
}

/// The target of the address that all handles use.
#[derive(Debug)]
struct Address {
    keyspace: Keyspace,
    /// Rises whenever the address gets another target.
    session: u64,
}

/// Connection of one process: each request takes time, in which other processes act.
#[derive(Clone, Debug)]
pub(super) struct SimConnection {
    pub(super) link: Arc<StoreLink>,
    pub(super) conditions: Arc<NetworkConditions>,
    pub(super) gate: Gate,
    pub(super) life: Life,
    pub(super) time: TrueTime,
    pub(super) rng: SimRng,
    pub(super) timer: Arc<dyn Timer>,
    /// The planted bug.
    pub(super) bug: Option<Bug>,
}

/// Error of a connection that broke.
#[derive(Debug)]
pub(super) struct Broken;

impl SimConnection {
    /// Delivers a request. A frozen process sends none, and neither does a process that has ended;
    /// one that was sent arrives all the same.
    async fn carries(&self) -> KeysResult<()> {
        self.gate.pass().await;
        if self.life.has_ended() {
            return Err(Failure::Backend(Broken));
        }
        let cuts = self.link.cuts();
        let ms = match self.rng.below(100) {
            0..=39 => 0,
            40..=84 => self.rng.between(1, 10),
            _ => self.rng.between(10, 100),
        };
        self.time.sleep_ms(ms).await;
        if self.link.carries(cuts) { Ok(()) } else { Err(Failure::Backend(Broken)) }
    }
}

type KeysResult<T> = Result<T, Failure<Broken>>;

/// The keys as one handle reaches them.
#[derive(Debug)]
pub(super) struct SimKeys<L> {
    address: Arc<Mutex<Address>>,
    clock: Option<MemoryClock>,
    /// None for the handles of the world itself: their requests take no time.
    connection: Option<SimConnection>,
    /// Set once the handle is open, which takes no time.
    is_open: Arc<AtomicBool>,
    /// The state that the handle's server has, with its session.
    behind: Mutex<Option<(u64, Keyspace)>>,
    /// The states that steps began with, with their session.
    moments: Mutex<(u64, BTreeMap<u64, Keyspace>)>,
    closed: AtomicBool,
    like: PhantomData<L>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<L: Like> SimKeys<L> {
    fn new(
        address: &Arc<Mutex<Address>>,
        clock: Option<MemoryClock>,
        connection: Option<SimConnection>,
    ) -> Self {
        Self {
            address: Arc::clone(address),
            clock,
            connection,
            is_open: Arc::default(),
            behind: Mutex::default(),
            moments: Mutex::default(),
            closed: AtomicBool::new(false),
            like: PhantomData,
        }
    }

    /// Returns the same keys without a connection.
    fn watched(&self) -> Keyed<Self> {
        let keys = Self::new(&self.address, self.clock.clone(), None);
        at_once(Keyed::open(keys, true)).unwrap()
    }

    /// Delivers a request of this handle.
    async fn deliver(&self) -> KeysResult<()> {
        self.check_open()?;
        match &self.connection {
            Some(connection) if self.is_open.load(Ordering::SeqCst) => connection.carries().await,
            _ => Ok(()),
        }
    }

    /// Returns whether the reply to a batch gets lost. The density check counts numbers of a lost
    /// reply as skipped, so replies to those batches get lost only between node and store.
    fn loses_reply(&self, batch: &Batch) -> bool {
        let takes_numbers = batch.changes.keys().any(|key| name::split(key).0 == name::SOURCES);
        let is_bad = |to: &SimConnection| to.conditions.is_bad(&to.rng) && to.rng.percent(30);
        !takes_numbers && self.connection.as_ref().is_some_and(is_bad)
    }

    fn lies(&self, bug: Bug) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.bug == Some(bug))
    }

    fn count_happened(&self, what: &'static str) {
        if let Some(connection) = &self.connection {
            connection.link.happened.count(what);
        }
    }

    /// Returns the state that a read sees, and the session.
    fn read(&self) -> (Keyspace, u64) {
        let address = lock(&self.address);
        let (newest, session) = (address.keyspace.clone(), address.session);
        drop(address);
        let Some(connection) = self.connection.as_ref().filter(|_| L::LAGS) else {
            return (newest, session);
        };
        let lags = connection.conditions.reads_behind.load(Ordering::SeqCst);
        // A server that lags catches up now and then.
        let hears = !lags || connection.rng.percent(20);
        let mut behind = lock(&self.behind);
        match &*behind {
            Some((of, kept)) if *of == session && !hears => {
                if kept.0.writes < newest.0.writes {
                    self.count_happened("a stale read");
                }
                (kept.clone(), session)
            }
            _ => {
                *behind = Some((session, newest.clone()));
                (newest, session)
            }
        }
    }

    /// Has the handle's server catch up.
    fn hears(&self) {
        *lock(&self.behind) = None;
    }

    /// Keeps the state that a step began with.
    fn begins(&self, keyspace: &Keyspace, session: u64) {
        let mut moments = lock(&self.moments);
        if moments.0 != session {
            *moments = (session, BTreeMap::new());
        }
        moments.1.insert(keyspace.0.writes, keyspace.clone());
        while moments.1.len() > MOMENTS_MAX {
            moments.1.pop_first();
        }
    }

    /// Returns the state that a step reads which began at this count of changes.
    fn as_of(&self, at: u64) -> KeysResult<Keyspace> {
        let (newest, session) = self.read();
        if !L::SNAPSHOT || newest.0.writes == at {
            return Ok(newest);
        }
        let moments = lock(&self.moments);
        let found = moments.1.get(&at).filter(|_| moments.0 == session);
        // The server has compacted it.
        found.cloned().ok_or(Failure::RaceLost)
    }

    /// Returns the batch as far as the server compares it.
    fn compared(&self, batch: &Batch) -> Batch {
        let mut compared = batch.clone();
        // A ZooKeeper server compares versions only, and so a batch stays with its session.
        let of_session = |_: &String| !L::LAGS;
        compared.store = compared.store.filter(of_session);
        // An extend of one slot depends on the store, the namespace and the slot.
        let is_slot = |key: &String| key.starts_with("slot/");
        let extends = batch.expected.len() == 3 && batch.changes.keys().all(is_slot);
        if extends && self.lies(Bug::CachedRowsNotCompared) {
            compared.expected.retain(|key, _| !is_slot(key));
        }
        if self.lies(Bug::StoreKeyNotCompared) {
            compared.expected.remove(name::STORE);
            // A copy under another identity has another record of the namespace, too.
            compared.expected.remove(name::NAMESPACE);
            (compared.store, compared.session, compared.after) = (None, None, 0);
        }
        compared
    }
}

#[async_trait]
impl<L: Like> Keys for SimKeys<L> {
    type Error = Broken;
    const SNAPSHOT: bool = L::SNAPSHOT;
    const BATCH_MAX: usize = 128;
    const COUNTS: bool = L::COUNTS;

    fn version_after(before: u64, writes: u64) -> u64 {
        L::version_after(before, writes)
    }

    fn may_cache_rows(&self) -> bool {
        // Without remembered rows, each step would see the other store before it writes.
        if self.lies(Bug::StoreKeyNotCompared) {
            return true;
        }
        // A server that counts for itself, and marks its runs, has to be seen in each step.
        !L::LAGS && (!L::COUNTS || lock(&self.address).keyspace.0.server.is_none())
    }

    fn info(&self) -> StoreInfo<'_> {
        let clock = if self.clock.is_some() { ClockOf::Store } else { ClockOf::Caller };
        StoreInfo {
            capabilities: Capabilities { clock, ..MemoryStore::CAPABILITIES },
            namespace: "default",
            label: "simulated keys",
            address: None,
        }
    }

    fn timer(&self) -> &dyn Timer {
        self.connection.as_ref().map_or(&WorldTimer, |to| &*to.timer)
    }

    fn random(&self) -> Result<u64> {
        Ok(self.connection.as_ref().map_or(0, |connection| connection.rng.number()))
    }

    async fn catch_up(&self) -> KeysResult<()> {
        self.deliver().await?;
        self.hears();
        Ok(())
    }

    async fn head_with(&self, keys: &[String]) -> KeysResult<(Head, Vec<Entry>)> {
        self.deliver().await?;
        let (keyspace, session) = self.read();
        self.begins(&keyspace, session);
        let stored = &keyspace.0;
        let last = stored.keys.get(name::WRITES);
        let rows = keys.iter().filter_map(|key| stored.keys.get(key).cloned()).collect();
        let head = Head {
            writes: last.map_or(stored.writes, |entry| entry.written),
            at: stored.writes,
            last_write: L::COUNTS_OTHERS.then(|| last.map_or(0, |entry| entry.version)),
            clock: self.clock.as_ref().map(MemoryClock::now),
            server: stored.server.map(server::server_name),
            session: L::LAGS.then(|| i64::try_from(session).unwrap()),
            store: stored.keys.get(name::STORE).cloned(),
            namespace: stored.keys.get(name::NAMESPACE).cloned(),
        };
        Ok((head, rows))
    }

    async fn get(&self, key: &str, at: u64) -> KeysResult<Option<Entry>> {
        self.deliver().await?;
        Ok(self.as_of(at)?.0.keys.get(key).cloned())
    }

    async fn list(&self, folder: &str, at: u64) -> KeysResult<Vec<Entry>> {
        self.deliver().await?;
        let keyspace = self.as_of(at)?;
        let is_in = |entry: &&Entry| name::split(&entry.key).0 == folder;
        Ok(keyspace.0.keys.values().filter(is_in).cloned().collect())
    }

    /// Returns at once after the change, so that the ledger has it before any other process acts.
    async fn send(&self, batch: &Batch) -> KeysResult<Outcome> {
        self.deliver().await?;
        let batch = &self.compared(batch);
        self.hears();
        let mut address = lock(&self.address);
        let session = i64::try_from(address.session).unwrap();
        let is_early = self.clock.as_ref().is_some_and(|clock| clock.now() < batch.not_before);
        if is_early || batch.session.is_some_and(|expected| expected != session) {
            return Ok(Outcome::RaceLost);
        }
        let stored = Arc::make_mut(&mut address.keyspace.0);
        let sent = server::carry_out::<L>(stored, batch, || match &self.connection {
            Some(connection) => connection.rng.below(3),
            None => 0,
        });
        match &sent {
            Ok(Outcome::RaceLost) => self.count_happened("a step loses to another"),
            Ok(Outcome::Done(_)) if self.loses_reply(batch) => {
                self.count_happened("a reply to a batch gets lost");
                return Err(Failure::Backend(Broken));
            }
            _ => {}
        }
        sent
    }

    async fn count(&self, request: &ScriptRequest<'_>) -> KeysResult<ScriptOutcome> {
        self.deliver().await?;
        let Some(clock) = &self.clock else { return Ok(ScriptOutcome::Differs) };
        let mut address = lock(&self.address);
        let stored = Arc::make_mut(&mut address.keyspace.0);
        let looks = !self.lies(Bug::CountedInAnotherStore);
        let outcome = server::count(stored, request, clock.now(), looks);
        if matches!(&outcome, ScriptOutcome::Counted(counted) if counted.range.is_some()) {
            self.count_happened("numbers counted by the server");
        }
        Ok(outcome)
    }

    async fn yield_to_writers(&self) {
        let Some(clock) = self.clock.as_ref().filter(|_| L::COUNTS) else { return };
        if self.deliver().await.is_ok() {
            let mut address = lock(&self.address);
            Arc::make_mut(&mut address.keyspace.0).way_until_ms =
                clock.now().get() + server::WAY_MS;
        }
    }

    fn map_error(&self, _: Broken) -> Error {
        Error::unavailable(format!("{} are unavailable; retry", self.info().label))
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

/// Makes a new store, and a handle for the world itself.
pub(super) fn make<L: Like>(clock: Option<MemoryClock>, server: Option<u64>) -> Arc<dyn SimStore> {
    let mut stored = Stored { server, ..Stored::default() };
    if L::LAGS {
        // The party that makes the folders makes this key, too.
        server::write::<L>(&mut stored, name::WRITES, Some(String::new()), 1);
        stored.writes = 1;
    }
    let keyspace = Keyspace(Arc::new(stored));
    let address = Arc::new(Mutex::new(Address { keyspace, session: 0 }));
    let keys = SimKeys::<L>::new(&address, clock, None);
    Arc::new(BackendStore::over(at_once(Keyed::open(keys, true)).unwrap()))
}

/// Runs a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("a handle without a connection waits"),
    }
}

/// Begins a step without a connection.
fn step<L: Like>(store: &BackendStore<Keyed<SimKeys<L>>>, access: Access) -> Step<SimKeys<L>> {
    at_once(store.backend().keys().watched().begin(access)).unwrap()
}

#[async_trait]
impl<L: Like> SimStore for BackendStore<Keyed<SimKeys<L>>> {
    fn handle(&self, connection: Option<SimConnection>) -> Arc<dyn SimStore> {
        let own = self.backend().keys();
        let keys = SimKeys::<L>::new(&own.address, own.clock.clone(), connection);
        let is_open = Arc::clone(&keys.is_open);
        let opened = at_once(Keyed::open(keys, false)).unwrap();
        is_open.store(true, Ordering::SeqCst);
        Arc::new(Self::over(opened).trying(ATTEMPTS))
    }

    fn other_namespace(&self) -> Option<Arc<dyn Store>> {
        None
    }

    fn row(&self, pool: &str, slot: u64) -> Option<SlotRow> {
        at_once(step(self, Access::Read).slot(pool, slot)).unwrap()
    }

    fn rows(&self, pool: &str) -> Vec<SlotRow> {
        at_once(step(self, Access::Read).slots(pool)).unwrap()
    }

    fn put_row(&self, pool: &str, row: SlotRow) {
        let mut step = step(self, Access::Forward);
        at_once(step.put_slots(pool, std::slice::from_ref(&row))).unwrap();
        at_once(step.commit()).unwrap();
    }

    fn forget_seen(&self) {
        self.forget();
    }

    fn backup(&self) -> StoreContent {
        StoreContent::Keys(lock(&self.backend().keys().address).keyspace.clone())
    }

    fn restore(&self, content: StoreContent) {
        let StoreContent::Keys(keyspace) = content else { panic!("rows are no keys") };
        let mut address = lock(&self.backend().keys().address);
        address.keyspace = keyspace;
        address.session += 1;
        drop(address);
        self.forget();
    }
}
