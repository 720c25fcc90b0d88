//! Knowledge of a process about a history that its store has lost.

use tokio::sync::Notify;

use super::disk::Failing;
use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, joined};
use super::*;
use crate::model::segment::GiveBack;
use crate::node::recovery::{Configured, Recovery, Reports};

fn with_journal(dir: &Scratch) -> NodeSettings {
    NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() }
}

async fn open(world: &World, dir: &Scratch) -> Node {
    let node = Node::open(world.handle(), with_journal(dir), world.platform()).await.unwrap();
    joined(world, &node).await;
    node
}

/// Less may be handed out than the journal shows, and a recovery must still go past it.
#[tokio::test]
async fn restored_journal_reports_its_end_for_a_rolled_back_store() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 3).await, [1, 2, 3]);
    drop(node);
    settle().await;
    world.store.restore(backup);
    let platform = Platform { disk: Arc::new(Failing::touched()), ..world.platform() };
    let refused = Node::open(world.handle(), with_journal(&dir), platform).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    let known = world.handle().standing().await.unwrap().known;
    assert_eq!(known.ends.get("bills"), Some(&101), "{known:?}");
}

/// The file's owner was changed, for example. The process joins, and then the store is restored.
#[tokio::test]
async fn end_of_an_unsure_journal_is_reported_after_a_join() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 3).await, [1, 2, 3]);
    drop(node);
    settle().await;
    let platform = Platform { disk: Arc::new(Failing::touched()), ..world.platform() };
    let node = Node::open(world.handle(), with_journal(&dir), platform).await.unwrap();
    joined(&world, &node).await;
    // The journal is written without the doubt.
    world.pass(5_000).await;
    drop(node);
    settle().await;
    world.store.restore(backup);
    let opened = Node::open(world.handle(), with_journal(&dir), world.platform()).await;
    assert_eq!(opened.unwrap_err().kind().code(), "store_rolled_back");
    let known = world.handle().standing().await.unwrap().known;
    assert_eq!(known.ends.get("bills"), Some(&101), "{known:?}");
}

/// Only the row of the source is an older one: the history of the store has everything.
#[tokio::test]
async fn source_below_a_sure_journal_end_raises_doubt() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    assert_eq!(drawn(&world, &node, 3).await, [1, 2, 3]);
    drop(node);
    settle().await;
    let row = world.handle().get("bills").await.unwrap().segment;
    assert_eq!(row.mark, Mark::new(101));
    let back = GiveBack { source: "bills".into(), first: 4, last: 100, version: row.version };
    world.handle().give_back(&back).await.unwrap();
    assert_eq!(world.handle().get("bills").await.unwrap().segment.mark, Mark::new(4));

    let refused =
        Node::open(world.handle(), with_journal(&dir), world.platform()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    let doubt = world.handle().standing().await.unwrap().doubt.unwrap();
    let named = r#"next number of source "bills" seen by the journal"#;
    assert!(doubt.evidence.starts_with(named), "{doubt:?}");
    assert_eq!((doubt.seen, doubt.found), (101, 4));
}

/// Returns a node on a store with faults, after it has joined.
async fn on(world: &World, store: Faulty) -> Node {
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    joined(world, &node).await;
    node
}

/// The result was in flight: the store no longer has this definition.
#[tokio::test]
async fn definition_read_before_a_recovery_is_dropped() {
    open_over_a_recovery(true).await;
}

/// As when a command begins on a store that was recovered: it reads the definition once more.
#[tokio::test]
async fn source_opens_over_a_recovery_that_kept_it() {
    open_over_a_recovery(false).await;
}

async fn open_over_a_recovery(is_lost: bool) {
    let world = World::new();
    let store = world.faulty();
    let late = Arc::clone(&store.faults.late);
    let node = on(&world, store).await;
    let (older, before) = (world.store.backup(), node.core().history());
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = if is_lost { older } else { world.store.backup() };
    if !is_lost {
        // A loss that the recovery is about.
        node.define("orders", &spec(FIXED)).await.unwrap();
    }
    let resume = Arc::new(Notify::new());
    *late.lock().unwrap() = Some(("get", Arc::clone(&resume)));
    let asking = node.clone();
    let asking = tokio::spawn(async move { asking.source("bills").await.map(drop) });
    in_time(&world, async {
        while late.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;

    world.store.restore(backup);
    let forward = FastForward { writes_at_least: 1_000, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    let error = node.store().list().await.unwrap_err();
    assert_eq!(error.kind().code(), "store_rolled_back", "{error}");
    in_time(&world, async {
        while node.core().history() == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!asking.is_finished(), "the result must come after the recovery");
    resume.notify_one();
    let opened = in_time(&world, asking).await.unwrap();
    if is_lost {
        let refused = opened.unwrap_err();
        assert_eq!(refused.kind().code(), "not_found", "{refused}");
        assert!(node.running().is_empty(), "it runs by a definition that no store has");
    } else {
        opened.unwrap();
    }
    in_time(&world, node.close()).await.unwrap();
}

/// The node joins for another reason, and its store was not in doubt before.
#[tokio::test]
async fn recovery_found_at_join_drops_prefetched_numbers() {
    let world = World::new();
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let node = on(&world, store).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 50).await.last(), Some(&50));
    let resume = Arc::new(Notify::new());
    *held.lock().unwrap() = Some(("recall", Arc::clone(&resume)));
    world.handle().leave(node.incarnation().unwrap(), world.clock.unix_ms()).await.unwrap();
    in_time(&world, async {
        while held.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(node.incarnation(), None);

    world.store.restore(backup);
    let forward = past_bills();
    world.handle().fast_forward(&forward).await.unwrap();
    resume.notify_one();
    joined(&world, &node).await;
    assert_eq!(node.core().ctx.doubts.raised(), 0, "a doubt has ended its prefetched numbers");
    assert_eq!(drawn(&world, &node, 1).await, [1_000]);
    in_time(&world, node.close()).await.unwrap();
}

/// A plan without this information would lie too low.
#[tokio::test]
async fn recovery_plan_needs_a_complete_read() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let look = async || {
        let (sources, settings) = (BTreeMap::new(), NodeSettings::default());
        let configured = Configured { sources: &sources, settings: &settings, namespace: "lost" };
        let reports = Reports::of_stopped(&store).await?;
        Recovery::look(Some(&store), reports, Vec::new(), &[], configured, START).await.map(drop)
    };
    look().await.unwrap();
    for verb in ["standing", "list", "now"] {
        *lacks.lock().unwrap() = Some(verb);
        assert_eq!(look().await.unwrap_err().kind().code(), "unavailable", "{verb}");
    }
}
