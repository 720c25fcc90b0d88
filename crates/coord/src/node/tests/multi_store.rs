//! Multi-store sources, over memory stores.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use snowmint_core::ManualClock;

use super::faulty::Faulty;
use super::*;
use crate::sources::IdBatch;
use crate::store::{StoreConnector, StoreConnectors};

/// Store that is always reachable.
#[derive(Debug)]
struct At {
    store: MemoryStore,
}

#[async_trait]
impl StoreConnector for At {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.store.handle("default")?))
    }
}

/// Store with a name that servers do not know.
#[derive(Debug)]
struct Unknown;

#[async_trait]
impl StoreConnector for Unknown {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Err(Error::not_found("store is not configured; add it under [stores]"))
    }
}

/// Node's world, with secondary stores.
struct MultiStoreWorld {
    world: World,
    a: MemoryStore,
    b: MemoryStore,
    c: MemoryStore,
}

impl MultiStoreWorld {
    fn new() -> Self {
        let store = || MemoryStore::new("default").unwrap();
        Self { world: World::new(), a: store(), b: store(), c: store() }
    }

    fn settings(&self) -> NodeSettings {
        let at = |store: &MemoryStore| {
            Arc::new(At { store: store.handle("default").unwrap() }) as Arc<dyn StoreConnector>
        };
        let stores = [("a", &self.a), ("b", &self.b), ("c", &self.c)];
        let secondary_stores = stores.map(|(name, store)| (name.into(), at(store)));
        let secondary_stores = StoreConnectors::from(secondary_stores);
        NodeSettings { secondary_stores, ..NodeSettings::default() }
    }

    async fn open(&self, clock: &Arc<ManualClock>) -> Node {
        let platform = Platform { clock: Arc::clone(clock) as _, ..self.world.platform() };
        Node::open(self.world.handle(), self.settings(), platform).await.unwrap()
    }

    /// Returns the result of a future while time passes.
    async fn within<T>(&self, call: impl Future<Output = T>) -> T {
        tokio::pin!(call);
        for _ in 0..10_000 {
            tokio::select! {
                biased;
                result = &mut call => return result,
                () = settle() => self.world.timer.advance_ms(5),
            }
        }
        panic!("no result within 50 s");
    }
}

fn texts(values: IdBatch) -> Vec<String> {
    match values {
        IdBatch::Texts(texts) => texts,
        IdBatch::Numbers(numbers) => panic!("{numbers:?}"),
    }
}

/// Each store enters the new day at the first request for a number of that day. A process that has
/// made a serial of a day makes none of the day before any more.
#[tokio::test]
async fn over_midnight_no_process_goes_back_to_a_day_that_it_has_left() {
    let several = MultiStoreWorld::new();
    let daily = r#"{"kind":"segment","stores":"a,b","serial":{"date":"yyyyMMdd","width":5},
        "step":{"rule":"fixed","size":3}}"#;
    let mut nodes = Vec::new();
    for ahead_ms in [0, 3_000] {
        let clock = Arc::new(ManualClock::new(UnixMillis::new(START.get() - 10_000 + ahead_ms)));
        let node = several.open(&clock).await;
        node.define("bills", &spec(daily)).await.unwrap();
        let source = several.within(node.source("bills")).await.unwrap();
        nodes.push((source, clock, node, String::new()));
    }
    let mut seen = HashSet::new();
    let mut residues = HashSet::new();
    for round in 0..60 {
        for (source, clock, _, newest) in &mut nodes {
            for serial in texts(several.within(source.mint(2, None, 40_000)).await.unwrap()) {
                let (day, number) = serial.split_at(8);
                assert!(day >= newest.as_str(), "{round}: {serial} after {newest}");
                *newest = day.to_owned();
                residues.insert((day.to_owned(), number.parse::<u64>().unwrap() % 2));
                assert!(seen.insert(serial.clone()), "{round}: {serial} twice");
            }
            clock.advance_ms(500);
        }
        if round == 40 {
            nodes[0].1.step_back_ms(60_000);
        }
        several.world.timer.advance_ms(500);
    }
    assert_eq!(residues.len(), 4, "both stores, on both days: {residues:?}");
    for (.., newest) in &nodes {
        assert_eq!(newest, "20260601");
    }
}

/// Nothing is prefetched: each request calls one store, and the next one if that store fails.
#[tokio::test]
async fn with_a_step_of_one_each_request_takes_from_a_store() {
    let several = MultiStoreWorld::new();
    let clock = Arc::clone(&several.world.clock);
    let node = several.open(&clock).await;
    let one = r#"{"kind":"segment","stores":"a,b","step":{"rule":"fixed","size":1}}"#;
    node.define("bills", &spec(one)).await.unwrap();
    let source = several.within(node.source("bills")).await.unwrap();
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let ids = numbers(several.within(source.mint(3, None, 5_000)).await.unwrap());
        assert_eq!(ids.iter().map(|id| id % 2).collect::<HashSet<_>>().len(), 1, "{ids:?}");
        seen.extend(ids);
    }
    assert_eq!(seen.len(), 60);
    assert!(source.is_per_request() && source.try_mint().is_err());
    let highest = seen.iter().max().unwrap();
    assert!(*highest <= 130, "none is taken ahead: {highest}");
}

/// A lane takes blocks of one store after the other.
#[tokio::test]
async fn lanes_count_in_the_numbers_of_one_store_at_a_time() {
    let several = MultiStoreWorld::new();
    let clock = Arc::clone(&several.world.clock);
    let node = several.open(&clock).await;
    node.define("bills", &spec(r#"{"kind":"segment","stores":"a,b"}"#)).await.unwrap();
    let source = several.within(node.source("bills")).await.unwrap();
    let mut lane = source.lane(10).unwrap();
    let mut seen = HashSet::new();
    let mut residues = Vec::new();
    for _ in 0..200 {
        let id = loop {
            match lane.try_next() {
                Ok(id) => break id,
                Err(error) => assert_ne!(error.retry(), crate::Retry::Never, "{error}"),
            }
            settle().await;
            several.world.timer.advance_ms(5);
        };
        assert!(seen.insert(id), "{id} twice");
        residues.push(id % 2);
    }
    assert!(residues.contains(&0) && residues.contains(&1));
    let changes = residues.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes <= 40, "one store for each block: {changes}");
    node.close().await.unwrap();
    assert!((0..20).any(|_| lane.try_next().is_err()), "it ends with its run");
}

/// IDs minted under it may lie ahead of another store's clock.
#[tokio::test]
async fn a_worker_number_is_never_another_stores() {
    let several = MultiStoreWorld::new();
    let clock = Arc::clone(&several.world.clock);
    let node = several.open(&clock).await;
    let minted =
        |stores: &str| spec(&format!(r#"{{"layout":"redis","mint":"store","stores":"{stores}"}}"#));
    node.define("orders", &minted("a=3,b=4")).await.unwrap();
    let refused = async |stores: &str, message: &str| {
        let error = node.alter("orders", &minted(stores), None).await.unwrap_err();
        assert!(
            error.kind().code() == "conflict" && error.to_string().contains(message),
            "{error}"
        );
    };
    refused("a=4,b=3", "no store has had").await;
    refused("a=3", "write =4 in its place").await;
    refused("b=4", "write =3 in its place").await;
    node.alter("orders", &minted("a=3,=4"), None).await.unwrap();
    refused("a=3,b=4", "no store has had").await;
    refused("a=3", "write =4").await;
    // The rule also holds after the source was deleted in between.
    node.delete("orders").await.unwrap();
    let again = node.define("orders", &minted("a=3,b=4")).await.unwrap_err();
    assert_eq!(again.kind().code(), "conflict", "{again}");
    node.define("orders", &minted("a=3,=4,b=5")).await.unwrap();
    let source = several.within(node.source("orders")).await.unwrap();
    several.within(source.mint(1, None, 5_000)).await.unwrap();
    let stores = source.stats().stores;
    assert_eq!(stores.iter().map(|status| status.store.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

/// A removed store is not asked any more, and its numbers would look free.
#[tokio::test]
async fn store_leaves_only_when_its_stripe_stays_unused() {
    let several = MultiStoreWorld::new();
    let clock = Arc::clone(&several.world.clock);
    let node = several.open(&clock).await;
    let numbers = |stores: &str| spec(&format!(r#"{{"kind":"segment","stores":"{stores}"}}"#));
    node.define("orders", &numbers("a,b")).await.unwrap();
    several.within(node.source("orders")).await.unwrap();
    let refused = async |stores: &str| {
        let error = node.alter("orders", &numbers(stores), None).await.unwrap_err();
        assert_eq!(error.kind().code(), "conflict", "{error}");
        error.to_string()
    };
    let message = refused("a,c").await;
    assert!(
        message.contains("--remove b") && message.contains("a,b") && message.contains("a,c"),
        "{message}"
    );
    node.alter("orders", &numbers("a,b,c"), None).await.unwrap();
    refused("a,b").await;
    // The rule also holds after the source was deleted in between.
    node.delete("orders").await.unwrap();
    let again = node.define("orders", &numbers("a,c")).await.unwrap_err();
    assert_eq!(again.kind().code(), "conflict", "{again}");
    node.define("orders", &numbers("a,b,c")).await.unwrap();

    // The new stripe of `a` shows for ever that there were others.
    let at_a = several.within(node.secondary_store("a")).await.unwrap();
    let own = Node::open(at_a, NodeSettings::default(), several.world.platform()).await.unwrap();
    let alone = NewStripe { offset: 1, increment: 2, first: Some(101), if_version: None };
    own.restripe("orders", alone).await.unwrap();
    node.alter("orders", &numbers("a,c"), None).await.unwrap();
    let source = several.within(node.source("orders")).await.unwrap();
    let minted = several.within(source.mint(3, None, 5_000)).await.unwrap();
    assert_eq!(minted, IdBatch::Numbers(vec![101, 103, 105]), "c has no stripe");
}

async fn writes(store: &MemoryStore) -> u64 {
    store.identity().await.unwrap().writes
}

/// The store's own node notices the rollback, and no request needs to call it.
#[tokio::test]
async fn rolled_back_store_is_shown_before_any_call() {
    let several = MultiStoreWorld::new();
    let (a, b) = (&several.a, &several.b);
    let settings = NodeSettings { waits_for_recovery: true, ..several.settings() };
    let platform = several.world.platform();
    let node = Node::open(several.world.handle(), settings, platform).await.unwrap();
    node.define("bills", &spec(r#"{"kind":"segment","stores":"a,b"}"#)).await.unwrap();
    let source = several.within(node.source("bills")).await.unwrap();
    let serve = async |wanted: [bool; 2]| {
        for _ in 0..300 {
            let stores = source.stats().stores;
            if stores.iter().map(|status| status.serving).eq(wanted) {
                return;
            }
            several.world.pass(100).await;
        }
        panic!("expected {wanted:?}: {:?}", source.stats().stores);
    };
    serve([true; 2]).await;
    let (backups, before) = ((a.backup(), b.backup()), (writes(a).await, writes(b).await));
    while writes(a).await == before.0 || writes(b).await == before.1 {
        several.within(source.mint(100, None, 5_000)).await.unwrap();
    }
    a.restore(backups.0);
    serve([false, true]).await;
    let error = source.stats().stores[0].error.clone().unwrap_or_default();
    assert!(error.contains("rolled back"), "{error}");
    assert!(node.readiness().ready, "the other store serves: {:?}", node.readiness());
    // It is recovered below what its node knows, which names the store in the command.
    let forward = FastForward { writes_at_least: 10_000, ..FastForward::default() };
    a.fast_forward(&forward).await.unwrap();
    let at_a = several.within(node.secondary("a")).await.unwrap();
    let named = "run snowmint worker recover --secondary a --server URL --segment bills=";
    for _ in 0..300 {
        if at_a.readiness().summary().contains(named) {
            break;
        }
        several.world.pass(100).await;
    }
    assert!(at_a.readiness().summary().contains(named), "{:?}", at_a.readiness());
    b.restore(backups.1);
    serve([false; 2]).await;
    let readiness = node.readiness();
    let reason = "no store of source bills serves";
    assert!(!readiness.ready && readiness.summary().contains(reason), "{readiness:?}");
}

/// Store that accepts connections and never responds.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl StoreConnector for Silent {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        std::future::pending().await
    }
}

/// Each source tries to open it, and the result of one attempt counts for all.
#[tokio::test]
async fn unresponsive_store_delays_many_sources_like_one() {
    let several = MultiStoreWorld::new();
    let mut settings = several.settings();
    settings.secondary_stores.insert("b".into(), Arc::new(Silent));
    let platform = several.world.platform();
    let node = Node::open(several.world.handle(), settings, platform).await.unwrap();
    let mut opening = tokio::task::JoinSet::new();
    for number in 0..6 {
        let name = format!("orders-{number}");
        let minted = spec(r#"{"layout":"redis","mint":"store","stores":"a=3,b=4"}"#);
        node.define(&name, &minted).await.unwrap();
        let node = node.clone();
        opening.spawn(async move { node.source(&name).await.map(drop) });
    }
    let opened = several.within(opening.join_all()).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
}

/// Store that opens once it may.
#[derive(Debug)]
struct Slow {
    at: At,
    asked: AtomicU32,
    may_open: tokio::sync::Notify,
}

#[async_trait]
impl StoreConnector for Slow {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.may_open.notified().await;
        self.at.open().await
    }
}

#[tokio::test]
async fn store_that_opens_after_its_caller_left_is_there_for_the_next() {
    let several = MultiStoreWorld::new();
    let mut settings = several.settings();
    let at = At { store: MemoryStore::new("default").unwrap() };
    let slow = Arc::new(Slow { at, asked: AtomicU32::new(0), may_open: Default::default() });
    settings.secondary_stores.insert("b".into(), Arc::clone(&slow) as _);
    let platform = several.world.platform();
    let node = Node::open(several.world.handle(), settings, platform).await.unwrap();
    for _ in 0..3 {
        let node = node.clone();
        let caller = tokio::spawn(async move { node.secondary("b").await.map(drop) });
        settle().await;
        caller.abort();
    }
    slow.may_open.notify_one();
    several.within(node.secondary("b")).await.unwrap();
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
}

/// Store in which verbs may fail.
#[derive(Debug)]
struct Failing {
    store: MemoryStore,
    lacks: Arc<Mutex<Option<&'static str>>>,
}

#[async_trait]
impl StoreConnector for Failing {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        let mut store = Faulty::over(self.store.handle("default")?);
        store.faults.lacks = Arc::clone(&self.lacks);
        Ok(Arc::new(store))
    }
}

#[tokio::test]
async fn change_that_a_store_rejected_reaches_it_later() {
    let several = MultiStoreWorld::new();
    let mut settings = several.settings();
    let lacks = Arc::default();
    let store = several.b.handle("default").unwrap();
    let failing = Failing { store, lacks: Arc::clone(&lacks) };
    settings.secondary_stores.insert("b".into(), Arc::new(failing));
    let platform = several.world.platform();
    let node = Node::open(several.world.handle(), settings, platform).await.unwrap();
    let numbers = |size: u32| {
        let step = format!(r#""step":{{"rule":"fixed","size":{size}}}"#);
        spec(&format!(r#"{{"kind":"segment","stores":"a,b",{step}}}"#))
    };
    node.define("orders", &numbers(10)).await.unwrap();
    let source = several.within(node.source("orders")).await.unwrap();
    several.within(source.mint(4, None, 5_000)).await.unwrap();
    *lacks.lock().unwrap() = Some("alter");
    node.alter("orders", &numbers(50), None).await.unwrap();
    let failed = || source.stats().stores[1].error.is_some();
    several
        .within(async {
            while !failed() {
                tokio::task::yield_now().await
            }
        })
        .await;
    several.within(source.mint(40, None, 5_000)).await.unwrap();
    let has = async || several.b.get("orders").await.unwrap().spec.contains("50");
    assert!(!has().await);
    *lacks.lock().unwrap() = None;
    several
        .within(async {
            while !has().await {
                tokio::task::yield_now().await
            }
        })
        .await;
    several
        .within(async {
            while failed() {
                tokio::task::yield_now().await
            }
        })
        .await;
}

/// Programs may name any store to a server whose own store is that of servers.
#[tokio::test]
async fn stores_that_servers_do_not_know_are_forgotten() {
    let world = World::new();
    let mut store = world.faulty();
    store.faults.secondary_store = Some(Arc::new(Unknown));
    let settings = MultiStoreWorld::new().settings();
    let node = Node::open(Arc::new(store), settings, world.platform()).await.unwrap();
    let names = (0..50).map(|number| format!("s{number}"));
    for name in names.chain(["".into(), "../s".into(), "s".repeat(64)]) {
        let error = node.secondary(&name).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NotFound), "{name}: {error}");
    }
    assert_eq!(node.core().secondary_stores.names(), ["a", "b", "c", "s49"]);
}
