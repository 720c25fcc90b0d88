//! Journal entries of segment sources that are deleted.

use super::disk::Failing;
use super::kills::{Scratch, in_time};
use super::*;
use crate::journal::{DataDir, Record, inspect};
use crate::sources::ReservedFor;

const FIXED: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;

async fn try_open(world: &World, dir: &Scratch) -> Result<Node> {
    open_over(world.handle(), world, dir).await
}

async fn open_over(store: Arc<dyn Store>, world: &World, dir: &Scratch) -> Result<Node> {
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let platform = Platform { disk: Arc::new(Failing::never()), ..world.platform() };
    Node::open(store, settings, platform).await
}

async fn open(world: &World, dir: &Scratch) -> Node {
    try_open(world, dir).await.unwrap()
}

async fn drawn(node: &Node, name: &str, count: u32) -> Vec<u64> {
    let source = node.source(name).await.unwrap();
    numbers(source.mint(count, None, 1_000).await.unwrap())
}

async fn close(node: Node) {
    node.close().await.unwrap();
    drop(node);
    settle().await;
}

fn record(dir: &Scratch) -> Record {
    inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record
}

/// An operator undoes a mistaken delete by restoring the store.
#[tokio::test]
async fn recovery_after_a_lost_delete_passes_all_numbers() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    assert_eq!(drawn(&node, "bills", 50).await.last(), Some(&50));
    close(node).await;
    let before = world.store.backup();
    let node = open(&world, &dir).await;
    for _ in 0..50 {
        drawn(&node, "bills", 100).await;
    }
    node.delete("bills").await.unwrap();
    world.pass(5_000).await;
    close(node).await;

    world.store.restore(before);
    let refused = try_open(&world, &dir).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::StoreRolledBack { .. }), "{refused}");
    settle().await;
    // As `worker fast-forward` does.
    let Record { segments, writes, .. } = record(&dir);
    let segments = segments.into_iter().collect();
    let forward = FastForward { segments, writes_at_least: writes, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    let node = open(&world, &Scratch::new()).await;
    let next = drawn(&node, "bills", 1).await;
    assert!(next[0] > 5_050, "{next:?} came before the delete");
}

/// The catalog of a store that was just restored may show a source as deleted that was defined
/// again since. Its handle does not remember this, as through servers.
#[tokio::test]
async fn older_catalog_frees_no_journal_room() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    for (name, json) in [("bills", FIXED), ("more", FIXED), ("orders", "{}")] {
        node.define(name, &spec(json)).await.unwrap();
    }
    drawn(&node, "bills", 10).await;
    node.delete("bills").await.unwrap();
    let before = world.store.backup();
    node.define("bills", &spec(FIXED)).await.unwrap();
    assert_eq!(drawn(&node, "bills", 1).await, [11]);
    close(node).await;

    let store = Arc::new(world.store.handle("default").unwrap());
    let node = open_over(Arc::clone(&store) as _, &world, &dir).await.unwrap();
    node.core().ctx.journal_budget.begin([("bills".to_owned(), ReservedFor::Node)].into(), 40);
    in_time(&world, node.source("orders")).await.unwrap();
    store.restore(before);
    node.catalog_changed();
    world.pass(200).await;
    let more = node.source("more").await.unwrap();
    let (refused, ()) = tokio::join!(more.mint(1, None, 300), world.pass(1_000));
    let refused = refused.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Exhausted), "{refused}");
    drop((node, more));
    settle().await;
    assert!(record(&dir).segments.contains_key("bills"));
}

#[tokio::test]
async fn redefined_source_continues_at_its_known_end() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    drawn(&node, "bills", 10).await;
    for _ in 0..3 {
        node.delete("bills").await.unwrap();
        world.pass(5_000).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
    }
    close(node).await;
    assert_eq!(record(&dir).segments["bills"], Mark::new(11));
}
