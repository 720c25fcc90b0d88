//! Offline minting, before the store is reached.

use std::sync::atomic::{AtomicBool, Ordering};

use super::disk::Forgetful;
use super::kills::{Scratch, in_time, mint_some};
use super::*;
use crate::error::ErrorKind;
use crate::sources::Source;
use crate::store::lazy_store::LazyStore;

/// World with a store that can be unavailable when a process starts.
struct Away {
    world: World,
    dir: Scratch,
    up: Arc<AtomicBool>,
    seen: HashSet<u64>,
}

impl Away {
    fn new() -> Self {
        let up = Arc::new(AtomicBool::new(true));
        Self { world: World::new(), dir: Scratch::new(), up, seen: HashSet::new() }
    }

    fn store(&self) -> Arc<dyn Store> {
        let (store, up) = (self.world.handle(), Arc::clone(&self.up));
        Arc::new(LazyStore::new("default", move || {
            let (store, up) = (Arc::clone(&store), up.load(Ordering::SeqCst));
            Box::pin(async move {
                if up { Ok(store) } else { Err(Error::unavailable("store is unavailable")) }
            })
        }))
    }

    /// Starts the next process on the same directory.
    async fn start(&self, up: bool) -> Node {
        // The last process is still ending.
        settle().await;
        self.up.store(up, Ordering::SeqCst);
        let settings = NodeSettings {
            owner: "shop-1".into(),
            data_dir: Some(self.dir.0.clone()),
            start_without_store: true,
            ..NodeSettings::default()
        };
        Node::open(self.store(), settings, self.world.platform()).await.unwrap()
    }

    /// Runs a process that defines the source, mints, and is killed.
    async fn first_life(&mut self) -> u64 {
        let node = self.start(true).await;
        node.define("orders", &spec("{}")).await.unwrap();
        let source = in_time(&self.world, node.source("orders")).await.unwrap();
        self.mint(&source).await
    }

    /// Mints, and returns the worker number.
    async fn mint(&mut self, source: &Source) -> u64 {
        let made = mint_some(&self.world, source, &mut self.seen, "orders").await;
        assert!(made >= 200, "only {made} IDs");
        for _ in 0..20_000 {
            if let Ok(id) = source.try_mint() {
                assert!(self.seen.insert(id));
                return (id >> 12) & 0x3ff;
            }
            self.world.pass(1).await;
        }
        panic!("no ID any more")
    }

    /// Lets time pass until the condition holds.
    async fn until(&self, what: impl Fn() -> bool) {
        for _ in 0..20_000 {
            if what() {
                return;
            }
            self.world.clock.advance_ms(10);
            self.world.timer.advance_ms(10);
            settle().await;
        }
        panic!("it never comes");
    }
}

fn offline(node: &Node) -> bool {
    node.readiness().without_store_until.is_some()
}

#[tokio::test]
async fn offline_start_mints_in_its_window_until_the_store_returns() {
    let mut away = Away::new();
    let worker = away.first_life().await;
    for life in 0..3 {
        let node = away.start(false).await;
        assert_eq!(node.saved_sources(), ["orders"]);
        let source = in_time(&away.world, node.source("orders")).await.unwrap();
        assert!(offline(&node) && node.readiness().ready, "{:?}", node.readiness());
        assert!(node.incarnation().is_none() && node.stats().without_store);
        assert_eq!(away.mint(&source).await, worker, "life {life}: the same window");
        // A source that was never minted from is not known without the store.
        let error = node.source("numbers").await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unavailable), "{error}");
    }
    let node = away.start(false).await;
    let source = in_time(&away.world, node.source("orders")).await.unwrap();
    away.mint(&source).await;
    away.up.store(true, Ordering::SeqCst);
    away.until(|| node.incarnation().is_some() && !offline(&node)).await;
    assert_eq!(away.mint(&source).await, worker, "it had no other holder in between");
    away.until(|| node.readiness().ready).await;
    assert!(node.saved_sources().is_empty(), "the catalog knows better");
    // A clean end leaves nothing to resume.
    in_time(&away.world, node.close()).await.unwrap();
    drop((node, source));
    let node = away.start(false).await;
    let error = in_time(&away.world, node.source("orders")).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unavailable), "{error}");
    assert!(!offline(&node) && !node.readiness().ready);
}

#[tokio::test]
async fn number_claimed_meanwhile_stays_with_new_holder() {
    let mut away = Away::new();
    let worker = away.first_life().await;
    // Its presence has expired, its window has not.
    away.world.pass(11_000).await;
    let node = away.start(false).await;
    let source = in_time(&away.world, node.source("orders")).await.unwrap();
    let settings = NodeSettings { worker: Some(worker), ..NodeSettings::default() };
    let other = away.world.open_with(settings).await;
    let (theirs, ours) = tokio::join!(
        in_time(&away.world, other.source("orders")),
        mint_some(&away.world, &source, &mut away.seen, "without the store"),
    );
    assert!(ours >= 200, "only {ours} IDs");
    // The other process begins where our window ends.
    let theirs = theirs.or_else(|_| other.running().pop().ok_or(())).unwrap();
    away.until(|| theirs.try_mint().is_ok()).await;
    assert_eq!(away.mint(&theirs).await, worker);
    // Its IDs may lead the clock, so the clock can still be below our window's end.
    away.until(|| source.try_mint().is_err()).await;
    let error = source.try_mint().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WindowSpent { .. }), "{error}");
    away.up.store(true, Ordering::SeqCst);
    away.until(|| node.incarnation().is_some() && node.readiness().ready).await;
    assert_ne!(away.mint(&source).await, worker, "another member has that one now");
}

#[tokio::test]
async fn store_rollback_ends_offline_minting() {
    let mut away = Away::new();
    let backup = away.world.store.backup();
    away.first_life().await;
    away.world.store.restore(backup);
    let node = away.start(false).await;
    let source = in_time(&away.world, node.source("orders")).await.unwrap();
    away.mint(&source).await;
    away.up.store(true, Ordering::SeqCst);
    away.until(|| !offline(&node)).await;
    let error = source.try_mint().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StoreRolledBack { .. }), "{error}");
    assert!(!node.readiness().ready);
    // The journal also records the end of the window.
    drop((node, source));
    let node = away.start(false).await;
    in_time(&away.world, node.source("orders")).await.unwrap_err();
}

/// The journal was lost in a write that never ended. It may show that the window is ours to its
/// end, so nothing is released in the store.
#[tokio::test]
async fn lost_journal_releases_no_slot() {
    let mut away = Away::new();
    let disk = Forgetful::default();
    let settings = NodeSettings {
        data_dir: Some(away.dir.0.clone()),
        start_without_store: true,
        ..NodeSettings::default()
    };
    let platform = Platform { disk: Arc::new(disk.clone()), ..away.world.platform() };
    let node = Node::open(away.store(), settings, platform).await.unwrap();
    node.define("orders", &spec("{}")).await.unwrap();
    let source = in_time(&away.world, node.source("orders")).await.unwrap();
    away.mint(&source).await;
    let store = away.world.handle();
    let mark = async || store.workers(START).await.unwrap()[0].mark;
    let before = mark().await;
    disk.forgets.store(true, Ordering::SeqCst);
    away.world.pass(2_000).await;
    assert!(in_time(&away.world, node.close()).await.is_err(), "it was not written");
    assert_eq!(mark().await, before);
}
