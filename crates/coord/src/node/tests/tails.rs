//! Prefetched numbers when a node stops: they go back, or are kept, and never both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::disk::{Failing, Hanging};
use super::kills::in_time;
use super::segments::Tap;
use super::*;
use crate::journal::{DataDir, Disk, inspect};
use crate::model::history::History;
use crate::sources::{NumberStats, ReservedFor};
use crate::store::upstream::Upstream;

/// Directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let number = random::number().unwrap();
        Self(std::env::temp_dir().join(format!("snowmint-tails-{number:x}")))
    }

    /// Returns the numbers that the journal keeps, as firsts and lasts.
    fn kept(&self) -> Vec<(u64, u64)> {
        let record = inspect(&DataDir::lock(&self.0).unwrap()).unwrap().record;
        record.tails.iter().map(|tail| (tail.first, tail.last)).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const FIXED: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;

async fn try_open(world: &World, dir: &Scratch, disk: &Failing) -> Result<Node> {
    on_disk(world, dir, Arc::new(disk.clone())).await
}

async fn on_disk(world: &World, dir: &Scratch, disk: Arc<dyn Disk>) -> Result<Node> {
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let platform = Platform { disk, ..world.platform() };
    Node::open(world.handle(), settings, platform).await
}

async fn open(world: &World, dir: &Scratch) -> Node {
    try_open(world, dir, &Failing::never()).await.unwrap()
}

async fn drawn(source: &Source, count: u32) -> Vec<u64> {
    numbers(source.mint(count, None, 1_000).await.unwrap())
}

fn counted(source: &Source) -> (u64, u64, u64) {
    let NumberStats { prefetched, fetched, lost, .. } = source.stats().numbers.unwrap();
    (prefetched, fetched, lost)
}

/// Returns a directory with a journal that keeps 11 to 100; another node has 101 to 200, and
/// continues.
async fn kept(world: &World) -> (Scratch, Node, Source) {
    let (dir, other) = (Scratch::new(), world.open().await);
    other.define("bills", &spec(FIXED)).await.unwrap();
    let there = other.source("bills").await.unwrap();
    let node = open(world, &dir).await;
    let here = node.source("bills").await.unwrap();
    assert_eq!(drawn(&here, 10).await, (1..=10).collect::<Vec<_>>());
    assert_eq!(drawn(&there, 1).await, [101]);
    node.close().await.unwrap();
    assert_eq!(counted(&here), (0, 10, 0), "what is kept is not lost");
    settle().await;
    (dir, other, there)
}

#[tokio::test]
async fn blocked_tail_is_kept_and_used_first() {
    let world = World::new();
    let (dir, _other, there) = kept(&world).await;
    assert_eq!(dir.kept(), [(11, 100)]);
    let node = open(&world, &dir).await;
    let here = node.source("bills").await.unwrap();
    assert_eq!(counted(&here), (90, 90, 0));
    assert_eq!(here.try_mint().unwrap(), 11, "without asking the store");
    assert_eq!(drawn(&here, 89).await, (12..=100).collect::<Vec<_>>());
    assert_eq!(drawn(&here, 1).await, [201]);
    assert_eq!(drawn(&there, 1).await, [102]);
    node.close().await.unwrap();
    settle().await;
    assert_eq!(dir.kept(), [], "the store had the last one back");
    assert_eq!(world.handle().get("bills").await.unwrap().segment.mark.get(), 202);
}

#[tokio::test]
async fn a_source_that_is_not_opened_keeps_its_tail() {
    let world = World::new();
    let (dir, ..) = kept(&world).await;
    for _ in 0..3 {
        open(&world, &dir).await.close().await.unwrap();
        settle().await;
        assert_eq!(dir.kept(), [(11, 100)]);
    }
}

#[tokio::test]
async fn when_the_store_is_away_nothing_is_sent_and_all_is_kept() {
    let world = World::new();
    let dir = Scratch::new();
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let store = world.handle();
    let platform = Platform { disk: Arc::new(Failing::never()), ..world.platform() };
    let node = Node::open(Arc::clone(&store), settings, platform).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    drawn(&source, 10).await;
    store.close().await.unwrap();
    assert!(node.close().await.is_err(), "it cannot leave");
    settle().await;
    assert_eq!(dir.kept(), [(11, 100)]);
}

#[tokio::test]
async fn store_lost_while_returning_tails_is_awaited_once() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    for number in 0..20 {
        let name = format!("bills-{number}");
        node.define(&name, &spec(FIXED)).await.unwrap();
        drawn(&node.source(&name).await.unwrap(), 10).await;
    }
    settle().await;
    *lacks.lock().unwrap() = Some("give_back");
    node.close().await.unwrap();
    let calls = node.stats().store_calls.into_iter().find(|calls| calls.verb == "give_back");
    assert_eq!(calls.unwrap().took.count(), 1);
}

/// The disk is full: numbers that are reserved meanwhile could not be handed out, so none are.
#[tokio::test]
async fn while_the_journal_cannot_be_written_no_numbers_are_wasted() {
    let (world, dir, disk) = (World::new(), Scratch::new(), Failing::never());
    let node = try_open(&world, &dir, &disk).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    drawn(&source, 10).await;
    let asks = async |count: u64| {
        tokio::select! {
            biased;
            row = source.reserve_range(count, 300) => row.map(|row| row.first),
            () = world.pass(2_000) => panic!("no result"),
        }
    };
    disk.writes_left.store(0, Ordering::SeqCst);
    // The first one's numbers are recorded once the journal can be written.
    for _ in 0..20 {
        let refused = asks(1_000).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unavailable), "{refused}");
    }
    assert_eq!(world.handle().get("bills").await.unwrap().segment.mark.get(), 1_101);
    disk.writes_left.store(u64::MAX, Ordering::SeqCst);
    world.pass(1_000).await;
    assert_eq!(asks(1_000).await.unwrap(), 1_101);
    assert_eq!(drawn(&source, 10).await, (11..=20).collect::<Vec<_>>());
}

/// A disk that hangs fails nothing, and each caller gives up before it responds.
#[tokio::test]
async fn while_the_journal_hangs_few_numbers_are_wasted() {
    let (world, dir, disk) = (World::new(), Scratch::new(), Hanging::default());
    let node = on_disk(&world, &dir, Arc::new(disk.clone())).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    drawn(&source, 10).await;
    let asks = async || {
        tokio::select! {
            biased;
            row = source.reserve_range(1_000, 300) => row.map(|row| row.first),
            () = world.pass(2_000) => panic!("no result"),
        }
    };
    let mark = async || world.handle().get("bills").await.unwrap().segment.mark.get();
    disk.hangs.send_replace(true);
    let mut refused = String::new();
    for _ in 0..100 {
        let error = asks().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unavailable), "{error}");
        refused = error.to_string();
    }
    assert!(refused.contains("journal disk did not respond for"), "{refused}");
    let wasted = mark().await - 101;
    assert!((1_000..=5_000).contains(&wasted), "{wasted}");
    disk.hangs.send_replace(false);
    world.pass(1_000).await;
    assert_eq!(asks().await.unwrap(), 101 + wasted);
    world.pass(60_000).await;
    assert_eq!(asks().await.unwrap(), 1_101 + wasted, "no caller waits for it");
}

/// Entries that snowflakes need are in the same journal.
#[tokio::test]
async fn excess_segment_source_is_rejected_alone() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    for (name, json) in [("bills", FIXED), ("more", FIXED), ("orders", "{}")] {
        node.define(name, &spec(json)).await.unwrap();
    }
    let orders = in_time(&world, node.source("orders")).await.unwrap();
    let bills = node.source("bills").await.unwrap();
    drawn(&bills, 10).await;
    // There is room for one.
    node.core().ctx.journal_budget.begin([("bills".to_owned(), ReservedFor::Node)].into(), 40);
    let more = node.source("more").await.unwrap();
    for _ in 0..10 {
        let (refused, ()) = tokio::join!(more.mint(1, None, 300), world.pass(1_000));
        let refused = refused.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Exhausted), "{refused}");
        assert!(orders.try_mint().is_ok() && node.readiness().ready, "{:?}", node.readiness());
        drawn(&bills, 20).await;
    }
    assert_eq!(world.handle().get("more").await.unwrap().segment.mark.get(), 1);
    node.delete("bills").await.unwrap();
    world.pass(3_000).await;
    assert_eq!(drawn(&more, 1).await, [1]);
    node.close().await.unwrap();
    settle().await;
    let record = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record;
    assert_eq!(record.segments.into_keys().collect::<Vec<_>>(), ["more"]);
}

/// The store responds when no task is left to notify the journal. A waiting call would keep all
/// that it has: the tables, the store, its connections.
#[tokio::test]
async fn fetch_that_ends_after_close_keeps_nothing() {
    for closes in [false, true] {
        let (world, dir, tap) = (World::new(), Scratch::new(), Tap::open());
        let settings = NodeSettings {
            data_dir: Some(dir.0.clone()),
            upstreams: [("old".into(), Arc::clone(&tap) as Arc<dyn Upstream>)].into(),
            ..NodeSettings::default()
        };
        let platform = Platform { disk: Arc::new(Failing::never()), ..world.platform() };
        let store = world.handle();
        let kept = Arc::downgrade(&store);
        let node = Node::open(store, settings, platform).await.unwrap();
        node.define("bills", &spec(r#"{"kind":"segment","upstream":"old:bills"}"#)).await.unwrap();
        let source = node.source("bills").await.unwrap();
        tap.flows.send_replace(false);
        source.try_mint().unwrap_err();
        settle().await;
        if closes {
            let (closed, ()) = tokio::join!(node.close(), world.pass(2_000));
            closed.unwrap();
        }
        drop((node, source));
        settle().await;
        assert!(kept.strong_count() > 0, "it asks still");
        tap.flows.send_replace(true);
        settle().await;
        assert_eq!(kept.strong_count(), 0, "closes {closes}");
    }
}

/// An old tail does not belong to a source with another definition.
#[tokio::test]
async fn a_tail_of_another_definition_is_burned() {
    for change in ["alter", "restripe", "recreate", "disable"] {
        let world = World::new();
        let (dir, other, _there) = kept(&world).await;
        match change {
            "alter" => {
                let other_step = r#"{"kind":"segment","step":{"rule":"fixed","size":7}}"#;
                drop(other.alter("bills", &spec(other_step), None).await.unwrap());
            }
            "restripe" => {
                let stripe = NewStripe { offset: 2, increment: 3, first: None, if_version: None };
                drop(other.restripe("bills", stripe).await.unwrap());
            }
            "recreate" => {
                other.delete("bills").await.unwrap();
                drop(other.define("bills", &spec(FIXED)).await.unwrap());
            }
            _ => {
                switch(&other, "bills", false).await;
                switch(&other, "bills", true).await;
            }
        }
        let node = open(&world, &dir).await;
        let here = node.source("bills").await.unwrap();
        assert_eq!(counted(&here), (0, 90, 90), "{change}: counted as lost");
        assert!(drawn(&here, 1).await[0] > 200, "{change}");
    }
}

#[tokio::test]
async fn tail_from_before_a_reboot_is_burned() {
    let world = World::new();
    let (dir, ..) = kept(&world).await;
    let disk = Failing { boot: "second", ..Failing::never() };
    let node = try_open(&world, &dir, &disk).await.unwrap();
    let here = node.source("bills").await.unwrap();
    assert_eq!((counted(&here), drawn(&here, 1).await), ((0, 90, 90), vec![201]));
}

#[tokio::test]
async fn rolled_back_store_is_rejected_despite_tails() {
    let world = World::new();
    let before = world.store.backup();
    let (dir, ..) = kept(&world).await;
    world.store.restore(before);
    let refused = try_open(&world, &dir, &Failing::never()).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::StoreRolledBack { .. }), "{refused}");
    assert_eq!(dir.kept(), [(11, 100)]);
}

/// The power fails in the middle of each write in turn, of a stop and of the start after it.
/// Whatever was on disk then, no number comes twice.
#[tokio::test]
async fn no_number_comes_twice_wherever_the_power_fails() {
    let mut used_tails = 0;
    for writes in 0..24 {
        let world = World::new();
        let (dir, other) = (Scratch::new(), world.open().await);
        other.define("bills", &spec(FIXED)).await.unwrap();
        let there = other.source("bills").await.unwrap();
        let mut seen = HashSet::new();
        let mut add = |ids: Vec<u64>| {
            for id in ids {
                assert!(seen.insert(id), "{id} came twice ({writes} writes)");
            }
        };
        let mut disk = Failing::never();
        for life in 0..6 {
            // In lives 1 and 3 the power fails.
            disk.writes_left =
                Arc::new(AtomicU64::new(if life % 2 == 1 { writes } else { u64::MAX }));
            let opened = in_time(&world, try_open(&world, &dir, &disk)).await;
            let Ok(node) = opened else { continue };
            if let Ok(here) = in_time(&world, node.source("bills")).await {
                used_tails += u64::from(counted(&here).0 > 0);
                for count in [1, 30] {
                    if let Ok(ids) = tokio::select! {
                        biased;
                        ids = here.mint(count, None, 300) => ids,
                        () = world.pass(1_000) => continue,
                    } {
                        add(numbers(ids));
                    }
                }
            }
            add(drawn(&there, 60).await);
            // An unwritable journal gives an error, and numbers in flight are waited for.
            let _ = in_time(&world, node.close()).await;
            drop(node);
            settle().await;
        }
    }
    assert!(used_tails > 24, "{used_tails}: it must be about tails");
}

/// The content of such a journal is not used before the store is reached, so the journal names its
/// store.
#[tokio::test]
async fn journal_of_an_unjoined_node_knows_the_store() {
    let (world, dir) = (World::new(), Scratch::new());
    let settings =
        NodeSettings { data_dir: Some(dir.0.clone()), builtin: false, ..NodeSettings::default() };
    let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
    assert_eq!(node.incarnation(), None, "it has joined already");
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let record = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record;
    let met = History::of(&record.store).store;
    assert_eq!(met, world.handle().identity().await.unwrap().store());
}

/// A hanging disk does not delay the end beyond its limit, and neither does a store.
#[tokio::test]
async fn close_is_bounded_whatever_the_disk_does() {
    let (world, dir, disk) = (World::new(), Scratch::new(), Hanging::default());
    let node = on_disk(&world, &dir, Arc::new(disk.clone())).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    drawn(&node.source("bills").await.unwrap(), 10).await;
    disk.hangs.send_replace(true);
    let before = world.timer.elapsed();
    let ended = tokio::select! {
        biased;
        ended = node.end(3_000) => ended,
        () = world.pass(60_000) => panic!("it does not end"),
    };
    assert_eq!(ended.unwrap_err().kind().code(), "unavailable");
    let took_ms = world.timer.elapsed().since(before);
    assert!((3_000..=3_100).contains(&took_ms), "{took_ms}");
}

/// A store that does not close its connections does not delay the end either.
#[tokio::test]
async fn close_is_bounded_when_the_store_does_not_close() {
    let world = World::new();
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    settle().await;
    *held.lock().unwrap() = Some(("close", Arc::default()));
    let before = world.timer.elapsed();
    let ended = tokio::select! {
        biased;
        ended = node.end(3_000) => ended,
        () = world.pass(60_000) => panic!("it does not end"),
    };
    ended.unwrap();
    assert!(held.lock().unwrap().is_none(), "no call has closed the store");
    let took_ms = world.timer.elapsed().since(before);
    assert!((3_000..=3_100).contains(&took_ms), "{took_ms}");
}
