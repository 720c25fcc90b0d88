//! Changes by other processes in the middle of a step.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use snowmint_coord::verbs::{BackendStore, Rows as _};
use snowmint_coord::{
    Acquire, ClaimRequest, ClockOf, ErrorKind, Exclude, FastForward, Incarnation, Lease, Mark,
    Member, NewDefinition, Pool, Preference, Presence, PresenceBy, Reuse, StalledMember,
    Store as _, StoreIdentity,
};

use snowmint_core::ElapsedMillis;

use super::*;

/// Present time of all members.
const NOW: UnixMillis = UnixMillis::new(1_000_000);

const CAPABILITIES: Capabilities = Capabilities {
    clock: ClockOf::Caller,
    durable_on_reply: false,
    safe_over_failover: false,
    presence: PresenceBy::Record,
};

/// A timer with waits that end at once, and are counted.
#[derive(Debug, Default)]
struct CountedWaits(AtomicU32);

#[async_trait]
impl Timer for CountedWaits {
    fn elapsed(&self) -> ElapsedMillis {
        ElapsedMillis::new(0)
    }

    async fn sleep_ms(&self, _: u64) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Keys with constant writes by other processes: every batch comes too late.
#[derive(Debug, Default)]
struct Contended {
    batches: AtomicU32,
    timer: CountedWaits,
    closed: AtomicBool,
}

#[async_trait]
impl Keys for Contended {
    type Error = Infallible;
    const SNAPSHOT: bool = true;
    const BATCH_MAX: usize = 100;

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn namespace(&self) -> &str {
        "default"
    }

    fn label(&self) -> String {
        "the store".into()
    }

    fn timer(&self) -> &dyn Timer {
        &self.timer
    }

    async fn head_with(&self, _: &[String]) -> Result<(Head, Vec<Entry>), Failure<Self::Error>> {
        let record = StoreRecord::new("it".into(), None).write()?;
        let store = Entry { key: name::STORE.into(), value: record, version: 1, written: 1 };
        let (writes, store) = (u64::from(self.batches.load(Ordering::SeqCst)), Some(store));
        let head = Head {
            writes,
            at: writes,
            last_write: None,
            clock: None,
            server: None,
            session: None,
            store,
            namespace: None,
        };
        Ok((head, Vec::new()))
    }

    async fn get(&self, _: &str, _: u64) -> Result<Option<Entry>, Failure<Self::Error>> {
        Ok(None)
    }

    async fn list(&self, _: &str, _: u64) -> Result<Vec<Entry>, Failure<Self::Error>> {
        Ok(Vec::new())
    }

    async fn send(&self, _: &Batch) -> Result<Outcome, Failure<Self::Error>> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::RaceLost)
    }

    fn map_error(&self, error: Self::Error) -> Error {
        match error {}
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

#[tokio::test]
async fn lost_race_is_tried_as_configured_then_reported() {
    for (attempts_max, done) in [(0, 1), (1, 1), (2, 2), (5, 5)] {
        let keyed = Keyed::open(Contended::default(), true).await.unwrap();
        let keys = Arc::clone(&keyed.keys);
        let store = BackendStore::over(keyed).trying(attempts_max);
        let new = NewDefinition {
            name: "a".into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        let refused = store.define(&new).await.unwrap_err();
        assert_eq!(keys.batches.load(Ordering::SeqCst), done);
        assert_eq!(keys.timer.0.load(Ordering::SeqCst), done - 1, "waits by the timer of the keys");
        assert_eq!(refused.kind().code(), "unavailable");
        let attempts = format!("all {} attempts", attempts_max.max(1));
        assert!(refused.to_string().contains(&attempts), "{refused}");
    }
}

/// A server: its name, its write count, and its keys.
#[derive(Clone, Debug, Default)]
struct Server {
    name: Option<String>,
    writes: u64,
    /// Writes of other users, which the server counts, too.
    of_others: u64,
    keys: BTreeMap<String, Entry>,
}

/// An action of another process, and the number of reads before it.
type Meanwhile = Arc<Mutex<Option<(u32, Pin<Box<dyn Future<Output = ()> + Send>>)>>>;

/// The keys of a server, read one by one.
#[derive(Clone, Default)]
struct OneByOne {
    server: Arc<Mutex<Server>>,
    closed: Arc<AtomicBool>,
    meanwhile: Meanwhile,
    /// State that reads return until the next write: that of another server, which lags.
    behind: Arc<Mutex<Option<Server>>>,
    /// Whether each step must see the server.
    sees_each: bool,
    /// Count of requests.
    requests: Arc<AtomicU32>,
}

impl fmt::Debug for OneByOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneByOne").finish_non_exhaustive()
    }
}

impl OneByOne {
    async fn open(&self) -> BackendStore<Keyed<Self>> {
        BackendStore::over(Keyed::open(self.clone(), true).await.unwrap()).trying(5)
    }

    /// Opens another handle on the same server.
    async fn another(&self) -> BackendStore<Keyed<Self>> {
        Self { server: Arc::clone(&self.server), ..Self::default() }.open().await
    }

    /// Reads, and then runs the action of the other process if it is due.
    async fn read<T>(&self, read: impl FnOnce(&Server) -> T) -> T {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let found = match &*self.behind.lock().unwrap() {
            Some(behind) => read(behind),
            None => read(&self.server.lock().unwrap()),
        };
        let due = {
            let mut meanwhile = self.meanwhile.lock().unwrap();
            match meanwhile.as_mut().map(|(reads, _)| reads.checked_sub(1)) {
                Some(Some(left)) => {
                    meanwhile.as_mut().unwrap().0 = left;
                    None
                }
                Some(None) => meanwhile.take(),
                None => None,
            }
        };
        if let Some((_, act)) = due {
            act.await;
        }
        found
    }
}

#[async_trait]
impl Keys for OneByOne {
    type Error = Infallible;
    const SNAPSHOT: bool = false;
    const BATCH_MAX: usize = 100;

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn namespace(&self) -> &str {
        "default"
    }

    fn label(&self) -> String {
        "the store".into()
    }

    fn may_cache_rows(&self) -> bool {
        !self.sees_each
    }

    async fn head_with(&self, keys: &[String]) -> Result<(Head, Vec<Entry>), Failure<Infallible>> {
        if let Some(key) = keys.iter().find(|key| key.contains("//")) {
            return Err(Failure::from(Error::invalid(format!("{key:?} is not a legal key"))));
        }
        let head = |server: &Server| Head {
            last_write: None,
            writes: server.writes,
            at: server.writes + server.of_others,
            clock: None,
            server: server.name.clone(),
            session: None,
            store: server.keys.get(name::STORE).cloned(),
            namespace: server.keys.get(name::NAMESPACE).cloned(),
        };
        let rows =
            |server: &Server| keys.iter().filter_map(|key| server.keys.get(key).cloned()).collect();
        Ok(self.read(|server| (head(server), rows(server))).await)
    }

    async fn get(&self, key: &str, _: u64) -> Result<Option<Entry>, Failure<Infallible>> {
        Ok(self.read(|server| server.keys.get(key).cloned()).await)
    }

    async fn list(&self, folder: &str, _: u64) -> Result<Vec<Entry>, Failure<Infallible>> {
        let is_in = |entry: &&Entry| name::split(&entry.key).0 == folder;
        let list = |server: &Server| server.keys.values().filter(is_in).cloned().collect();
        Ok(self.read(list).await)
    }

    async fn send(&self, batch: &Batch) -> Result<Outcome, Failure<Infallible>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        *self.behind.lock().unwrap() = None;
        let mut server = self.server.lock().unwrap();
        let version = |key: &String| server.keys.get(key).map_or(0, |entry| entry.version);
        if batch.expected.iter().any(|(key, expected)| version(key) != *expected) {
            return Ok(Outcome::RaceLost);
        }
        let store = server.keys.get(name::STORE).map(|entry| &entry.value);
        if batch.store.is_some() && batch.store.as_ref() != store {
            return Ok(Outcome::RaceLost);
        }
        if batch.server.is_some() && batch.server != server.name {
            return Ok(Outcome::RaceLost);
        }
        let has_all = server.writes >= batch.after;
        // An empty batch only checks that the read rows are unchanged.
        server.writes += u64::from(!batch.changes.is_empty());
        let version = server.writes;
        for (key, value) in &batch.changes {
            match value.clone() {
                Some(value) => server.keys.insert(
                    key.clone(),
                    Entry { key: key.clone(), value, version, written: version },
                ),
                None => server.keys.remove(key),
            };
        }
        Ok(if has_all { Outcome::Done(version) } else { Outcome::Short(version) })
    }

    fn map_error(&self, error: Infallible) -> Error {
        match error {}
    }

    fn closed(&self) -> &AtomicBool {
        &self.closed
    }
}

async fn join(store: &BackendStore<Keyed<OneByOne>>, number: u128) -> Incarnation {
    let incarnation = Incarnation::new(number);
    let (owner, host, address) = (String::new(), String::new(), String::new());
    let member = Member { incarnation, owner, host, process: 1, address };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 10_000 };
    store.join(&member, presence, NOW).await.unwrap();
    incarnation
}

fn wanting(member: Incarnation, slots: &[u64]) -> Acquire {
    let pool = Pool { name: "sections".into(), slots: 100, group: 1, reuse: Reuse::Ordered };
    Acquire {
        pool,
        member,
        owner: String::new(),
        slots: slots.to_vec(),
        stalled: Vec::new(),
        supersedes: None,
        length: 10,
        request: 7,
    }
}

fn extending(lease: &Lease, from: Mark, to: Mark) -> Extend {
    let Lease { pool, slot, term, .. } = lease.clone();
    Extend { pool, slot, term, holder: None, from, to, request: to.get(), ahead_max_ms: None }
}

/// The second member joins and acquires a slot while the first is acquiring it too, after each of
/// its reads.
#[tokio::test]
async fn member_that_acquires_between_reads_keeps_its_slots() {
    let mut met = 0;
    for reads in 0..12 {
        let keys = OneByOne::default();
        let (store, other) = (keys.open().await, keys.another().await);
        let first = join(&store, 1).await;
        // Makes the pool.
        store.acquire(&wanting(first, &[1]), NOW).await.unwrap();
        let second = Incarnation::new(2);
        let act = Box::pin(async move {
            join(&other, 2).await;
            let acquired = other.acquire(&wanting(second, &[7]), NOW).await.unwrap();
            assert_eq!(acquired.leases.len(), 1, "it is free");
        });
        *keys.meanwhile.lock().unwrap() = Some((reads, act));
        let acquired = store.acquire(&wanting(first, &[5, 7]), NOW).await.unwrap();
        if keys.meanwhile.lock().unwrap().is_some() {
            // The step ended before the action was due.
            break;
        }
        met += 1;
        let slots: Vec<u64> = acquired.leases.iter().map(|lease| lease.slot).collect();
        assert_eq!((slots, acquired.held), (vec![5], vec![(7, second)]), "after read {reads}");
    }
    assert!(met >= 4, "an acquire reads more than {met} times");
}

/// The slot's row came with the head, and another member acquires the slot before the write.
#[tokio::test]
async fn slot_acquired_before_the_write_of_an_extend_is_not_extended() {
    let keys = OneByOne { sees_each: true, ..OneByOne::default() };
    let (store, other) = (keys.open().await, keys.another().await);
    let (first, second) = (join(&store, 1).await, join(&other, 2).await);
    let lease = store.acquire(&wanting(first, &[7]), NOW).await.unwrap().leases.remove(0);
    let act = Box::pin(async move {
        let stalled = vec![StalledMember { member: first, renewals: 0 }];
        let acquire = Acquire { stalled, ..wanting(second, &[7]) };
        assert_eq!(other.acquire(&acquire, NOW).await.unwrap().leases.len(), 1);
    });
    *keys.meanwhile.lock().unwrap() = Some((0, act));
    let extend = extending(&lease, lease.mark, Mark::new(lease.mark.get() + 10));
    let refused = store.extend(&[extend], NOW).await.unwrap().remove(0).unwrap_err();
    assert_eq!(refused.kind().code(), "fenced", "{refused}");
    assert!(keys.meanwhile.lock().unwrap().is_none(), "it came between");
}

/// Names of pools come from clients: one that is no legal key must fail only the call that has it.
#[tokio::test]
async fn illegal_key_fails_no_other_call_of_the_handle() {
    let keys = OneByOne { sees_each: true, ..OneByOne::default() };
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let lease = store.acquire(&wanting(member, &[7]), NOW).await.unwrap().leases.remove(0);
    let illegal = Lease { pool: "a//b".into(), ..lease.clone() };
    let extend = extending(&illegal, lease.mark, Mark::new(lease.mark.get() + 10));
    let StoreIdentity { id, writes } = store.identity().await.unwrap();
    let seen = Seen { id: id.into(), writes, catalog_version: 0 };
    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    // The other call comes between the fast verb and the step over rows.
    assert_eq!(store.backend().extend(&extend, NOW, &seen).await.unwrap(), None);
    store.define(&new).await.unwrap();
    let presence = Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 };
    let extends = [extend];
    let (extended, renewed) =
        tokio::join!(store.extend(&extends, NOW), store.renew(member, presence, NOW));
    let refused = extended.unwrap_err();
    assert!(refused.to_string().contains("is not a legal key"), "{refused}");
    renewed.unwrap();
}

/// The member's row was missing at the head, and exists at the write.
#[tokio::test]
async fn row_written_after_the_head_is_not_overwritten() {
    let apart = OneByOne::default().open().await;
    let member = join(&apart, 2).await;
    let mut step = apart.backend().begin(Access::Read).await.unwrap();
    let row = step.member(member).await.unwrap().unwrap();

    let keys = OneByOne::default();
    let (store, other) = (keys.open().await, keys.another().await);
    let act = Box::pin(async move {
        join(&other, 2).await;
    });
    *keys.meanwhile.lock().unwrap() = Some((0, act));
    let first = Some(FirstRow::Member(member));
    let mut step = store.backend().begin_reading(Access::Write, first).await.unwrap();
    assert!(keys.meanwhile.lock().unwrap().is_none(), "it joined after the head");
    assert!(step.member(member).await.unwrap().is_none());
    step.put_member(&row).await.unwrap();
    let ended = step.commit().await;
    assert!(matches!(ended, Err(Failure::RaceLost)), "{ended:?}");
}

/// The member's row came with the head, and is gone when the step lists the members.
#[tokio::test]
async fn row_deleted_after_the_head_is_not_written_again() {
    let keys = OneByOne::default();
    let (store, other) = (keys.open().await, keys.another().await);
    let member = join(&store, 1).await;
    let act = Box::pin(async move { other.leave(member, NOW).await.unwrap() });
    *keys.meanwhile.lock().unwrap() = Some((0, act));
    let first = Some(FirstRow::Member(member));
    let mut step = store.backend().begin_reading(Access::Write, first).await.unwrap();
    assert!(step.members().await.unwrap().is_empty());
    step.hold_member(member).await.unwrap();
    let ended = step.commit().await;
    assert!(matches!(ended, Err(Failure::RaceLost)), "{ended:?}");
}

/// A number that a member claims meanwhile is not excluded: the member mints with it already.
#[tokio::test]
async fn member_that_claims_between_reads_is_known() {
    let pool = || Pool { name: "workers".into(), slots: 4, group: 1, reuse: Reuse::Recycle };
    let mut met = 0;
    for reads in 0..12 {
        let keys = OneByOne::default();
        let (store, other) = (keys.open().await, keys.another().await);
        let exclude = |slot| {
            let label = "it".into();
            Exclude { pool: pool(), slots: vec![slot], until: Mark::MAX, label }
        };
        // Makes the pool.
        store.exclude(&exclude(2), NOW).await.unwrap();
        let act = Box::pin(async move {
            let request = ClaimRequest {
                pool: pool(),
                member: join(&other, 2).await,
                owner: String::new(),
                count: 1,
                preference: Preference::Exactly(3),
                supersedes: None,
                mark_at_most: Mark::from(NOW),
                request: 7,
            };
            other.claim(&request, NOW).await.unwrap();
        });
        *keys.meanwhile.lock().unwrap() = Some((reads, act));
        let excluded = store.exclude(&exclude(3), NOW).await;
        if keys.meanwhile.lock().unwrap().is_some() {
            break;
        }
        met += 1;
        let refused = excluded.expect_err(&format!("after read {reads}"));
        assert_eq!(refused.kind().code(), "conflict", "after read {reads}: {refused}");
    }
    assert!(met >= 4, "an avoid reads more than {met} times");
}

/// A server that lags must not confirm to a member that it still has a slot (`counter.confirm`).
#[tokio::test]
async fn read_from_a_lagging_server_is_repeated() {
    let keys = OneByOne::default();
    let (store, other) = (keys.open().await, keys.another().await);
    let (first, second) = (join(&store, 1).await, join(&other, 2).await);
    let leases = store.acquire(&wanting(first, &[7]), NOW).await.unwrap().leases;
    assert_eq!(
        store.acquire(&wanting(first, &[7]), NOW).await.unwrap().leases,
        leases,
        "still his"
    );
    let before = keys.server.lock().unwrap().clone();
    let stalled = vec![StalledMember { member: first, renewals: 0 }];
    let acquired = other.acquire(&Acquire { stalled, ..wanting(second, &[7]) }, NOW).await.unwrap();
    assert_eq!(acquired.leases.len(), 1);
    *keys.behind.lock().unwrap() = Some(before);
    let refused = store.acquire(&wanting(first, &[7]), NOW).await.unwrap_err();
    assert_eq!(refused.kind().code(), "not_found", "{refused}");
}

/// The first server has what the replica lacks, and the address may lead back to it. So the replica
/// counts as another store, not as rolled back, until an operator declares it complete.
#[tokio::test]
async fn a_replica_that_lags_is_another_store_to_its_readers() {
    let keys = OneByOne::default();
    keys.server.lock().unwrap().name = Some("one".into());
    let store = keys.open().await;
    join(&store, 1).await;
    let mut replica = keys.server.lock().unwrap().clone();
    replica.name = Some("two".into());
    let kept = store.identity().await.unwrap();
    join(&store, 2).await;
    let seen = store.identity().await.unwrap();

    let first = std::mem::replace(&mut *keys.server.lock().unwrap(), replica.clone());
    let code = |error: Error| error.kind().code();
    assert_eq!(store.list().await.map_err(code), Err("store_mismatch"));
    assert_eq!(store.recall("the journal", &kept).await.map_err(code), Err("store_mismatch"));
    let fresh = keys.another().await;
    fresh.list().await.unwrap();
    assert_eq!(fresh.recall("the journal", &seen).await.map_err(code), Err("store_mismatch"));

    // The same server, restored to an older state.
    keys.server.lock().unwrap().name = Some("one".into());
    assert_eq!(store.list().await.map_err(code), Err("store_rolled_back"));

    *keys.server.lock().unwrap() = first;
    store.list().await.unwrap();
    store.recall("the journal", &seen).await.unwrap();
    join(&store, 3).await;
}

/// Nothing was lost on the primary, and nothing may be kept of a replica.
#[tokio::test]
async fn complete_replica_is_rejected_by_its_name() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    join(&store, 1).await;
    let before = keys.server.lock().unwrap().clone();
    join(&store, 2).await;
    let seen = store.identity().await.unwrap();
    let primary = keys.server.lock().unwrap().clone();

    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    for (lags, replica) in [(false, primary.clone()), (true, before)] {
        *keys.server.lock().unwrap() = Server { name: Some(REPLICA.into()), ..replica };
        for refused in [
            store.define(&new).await.map(drop),
            store.fast_forward(&FastForward::default()).await.map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
            assert!(refused.to_string().contains("is a replica"), "{refused}");
        }
        for read in [store.list().await.map(drop), store.recall("it", &seen).await.map(drop)] {
            let code = read.map_err(|refused| refused.kind().code());
            assert_eq!(code, if lags { Err("store_mismatch") } else { Ok(()) });
        }
    }
    *keys.server.lock().unwrap() = primary;
    store.list().await.unwrap();
    join(&store, 3).await;

    let empty = OneByOne::default();
    empty.server.lock().unwrap().name = Some(REPLICA.into());
    let refused = Keyed::open(empty, true).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
}

/// The rows were read from one server, and another has the same.
#[tokio::test]
async fn a_step_that_began_on_another_server_confirms_nothing() {
    let keys = OneByOne::default();
    let move_to = |server: &str| keys.server.lock().unwrap().name = Some(server.into());
    move_to("one");
    let store = keys.open().await;
    join(&store, 1).await;
    for access in [Access::Read, Access::Write] {
        for (end, is_lost) in [("one", false), ("two", true)] {
            move_to("one");
            let mut step = store.backend().begin(access).await.unwrap();
            step.members().await.unwrap();
            move_to(end);
            let ended = step.unchanged().await;
            assert_eq!(matches!(ended, Err(Failure::RaceLost)), is_lost, "{access:?}: {ended:?}");
            assert_eq!(ended.is_ok(), !is_lost, "{access:?}: {ended:?}");
        }
    }
}

/// No step would use the rows: they would take memory for nothing.
#[tokio::test]
async fn rows_are_kept_only_for_steps_that_may_depend_on_them() {
    for sees_each in [false, true] {
        let keys = OneByOne { sees_each, ..OneByOne::default() };
        let store = keys.open().await;
        let member = join(&store, 1).await;
        let kept = store.backend().row_cache.with(&name::member(member));
        assert_eq!(kept.is_some(), !sees_each);
    }
}

/// The verbs that a node calls all the time: one request reads the head and their row, another
/// writes.
#[tokio::test]
async fn frequent_verbs_take_two_round_trips() {
    let keys = OneByOne { sees_each: true, ..OneByOne::default() };
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let lease = store.acquire(&wanting(member, &[7]), NOW).await.unwrap().leases.remove(0);
    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    let definition_version = store.define(&new).await.unwrap().version;
    let mut from = lease.mark;
    for renewals in 1..4 {
        let to = Mark::new(from.get() + 10);
        let extend = extending(&lease, from, to);
        let before = keys.requests.load(Ordering::SeqCst);
        assert_eq!(store.extend(&[extend], NOW).await.unwrap().remove(0).unwrap().mark, to);
        let extended = keys.requests.load(Ordering::SeqCst);
        let presence = Presence { sample: NOW, renewals, ttl_ms: 10_000 };
        store.renew(member, presence, NOW).await.unwrap();
        let renewed = keys.requests.load(Ordering::SeqCst);
        let reserve = Reserve { source: "a".into(), length: 5, definition_version, within: None };
        store.reserve(&reserve).await.unwrap();
        let reserved = keys.requests.load(Ordering::SeqCst);
        let counts = [extended - before, renewed - extended, reserved - renewed];
        assert_eq!(counts, [2, 2, 2], "extend, renew, reserve");
        from = to;
    }
}

/// A store of form 2 on etcd counted what others wrote to the server. The count continues above
/// what any process has seen of it.
#[tokio::test]
async fn own_count_continues_above_the_shared_count() {
    let keys = OneByOne::default();
    join(&keys.open().await, 1).await;
    {
        let mut server = keys.server.lock().unwrap();
        server.of_others = 100;
        let record = server.keys.get_mut(name::STORE).unwrap();
        assert!(record.value.contains("\"form\":3"), "{}", record.value);
        record.value = record.value.replace("\"form\":3", "\"form\":2");
    }
    let store = keys.another().await;
    let before = store.identity().await.unwrap().writes;
    assert_eq!(before, keys.server.lock().unwrap().writes + 100);
    join(&store, 2).await;
    let after = store.identity().await.unwrap().writes;
    assert!(after > before, "{after} after {before}");
    keys.server.lock().unwrap().of_others = 200;
    assert_eq!(keys.another().await.identity().await.unwrap().writes, after);
}

/// The server is restored in the middle of a step, which writes to it: only the response shows what
/// is missing, and the handle remembers it.
#[tokio::test]
async fn a_step_that_hides_a_lost_write_is_remembered() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    let presence = Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 };
    store.renew(member, presence, NOW).await.unwrap();
    let seen = store.identity().await.unwrap();

    let server = Arc::clone(&keys.server);
    let restore = Box::pin(async move { *server.lock().unwrap() = backup });
    *keys.meanwhile.lock().unwrap() = Some((0, restore));
    let joining = Member {
        incarnation: Incarnation::new(2),
        owner: String::new(),
        host: String::new(),
        process: 1,
        address: String::new(),
    };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 10_000 };
    for _ in 0..2 {
        let refused = store.join(&joining, presence, NOW).await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    }
    let found = keys.another().await.identity().await.unwrap();
    assert_eq!(found.writes, seen.writes, "the count hides it");
    let refused = store.recall("it", &seen).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
}

/// The server is restored after the step has listed the members, and the step compares none of
/// them: their rows do not show what the server has kept.
#[tokio::test]
async fn rows_that_were_not_compared_do_not_count_as_kept() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    let kept = backup.writes;
    store.renew(member, Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 }, NOW).await.unwrap();

    let server = Arc::clone(&keys.server);
    let restore = Box::pin(async move { *server.lock().unwrap() = backup });
    *keys.meanwhile.lock().unwrap() = Some((1, restore));
    let (owner, host, address) = (String::new(), String::new(), String::new());
    let joining = Member { incarnation: Incarnation::new(2), owner, host, process: 1, address };
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 10_000 };
    let refused = store.join(&joining, presence, NOW).await.unwrap_err();
    let ErrorKind::StoreRolledBack { found, .. } = *refused.kind() else { panic!("{refused}") };
    assert!(found <= kept, "{found} were kept, of {kept}");
}

/// The server is restored after the step has read a member's row with its head, and the step
/// compares only the namespace.
#[tokio::test]
async fn unused_row_of_the_head_does_not_count_as_kept() {
    let keys = OneByOne::default();
    let store = keys.open().await;
    let member = join(&store, 1).await;
    let backup = keys.server.lock().unwrap().clone();
    let kept = backup.writes;
    store.renew(member, Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 }, NOW).await.unwrap();

    let first = Some(FirstRow::Member(member));
    let mut step = store.backend().begin_reading(Access::Write, first).await.unwrap();
    *keys.server.lock().unwrap() = backup;
    let namespace = step.namespace().await.unwrap();
    step.put_namespace(namespace).await.unwrap();
    let Err(Failure::Rejected(refused)) = step.commit().await else { panic!("it is short") };
    let ErrorKind::StoreRolledBack { found, .. } = *refused.kind() else { panic!("{refused}") };
    assert!(found <= kept, "{found} were kept, of {kept}");
}
