//! Sources whose IDs take turns over shards.

use super::*;

const SHARDS: u64 = 16;
/// Milliseconds between two IDs: of a quiet source, and of one that mints in each tick.
const PAUSES_MS: [u64; 2] = [300, 1];

/// Mints one ID, with pauses in which nothing but time passes.
async fn mint(source: &Source) -> u64 {
    for _ in 0..200 {
        if let Ok(id) = source.try_mint() {
            return id;
        }
        settle().await;
    }
    source.try_mint().unwrap()
}

/// Opens the source, while time passes: a queue is filled first.
async fn opened(world: &World, node: &Node) -> Source {
    let mut open = std::pin::pin!(node.source("orders"));
    loop {
        tokio::select! {
            source = &mut open => return source.unwrap(),
            () = world.pass(1) => {}
        }
    }
}

/// Returns how many of the IDs each shard has.
fn counts(ids: &[u64]) -> Vec<usize> {
    let of = |shard: u64| ids.iter().filter(|&id| id % SHARDS == shard).count();
    (0..SHARDS).map(of).collect()
}

fn differ_by_one_at_most(ids: &[u64]) -> bool {
    let counts = counts(ids);
    counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1
}

#[tokio::test]
async fn each_server_spreads_its_ids_evenly() {
    for keys in [
        r#"{"shards":16}"#,
        r#"{"shards":16,"order":"global"}"#,
        r#"{"shards":16,"prefill":{"enabled":true,"boost":0}}"#,
        r#"{"shards":16,"layout":"baidu","on_rollback":"borrow"}"#,
    ] {
        let world = World::new();
        // In global order one server mints at a time.
        let servers = if keys.contains("global") { 1 } else { 2 };
        let mut nodes = Vec::new();
        for _ in 0..servers {
            let node = world.open().await;
            node.define("orders", &spec(keys)).await.unwrap();
            let source = opened(&world, &node).await;
            world.pass(1_000).await;
            let mut ids = Vec::new();
            for pause_ms in PAUSES_MS {
                for _ in 0..50 {
                    ids.push(mint(&source).await);
                    world.pass(pause_ms).await;
                }
            }
            assert!(differ_by_one_at_most(&ids), "{keys}: {:?}", counts(&ids));
            nodes.push(node);
        }
    }
}

#[tokio::test]
async fn source_takes_up_shards_while_it_serves() {
    let world = World::new();
    let node = world.open().await;
    node.define("orders", &spec("{}")).await.unwrap();
    let source = node.source("orders").await.unwrap();
    world.pass(1_000).await;
    let mut ids = Vec::new();
    for _ in 0..32 {
        ids.push(mint(&source).await);
        world.pass(100).await;
    }
    assert_eq!(counts(&ids)[0], 32, "from 0 in each tick, all fall into one shard");
    node.alter("orders", &spec(r#"{"shards":16}"#), None).await.unwrap();
    world.pass(1_000).await;
    let last = ids.pop().unwrap();
    ids.clear();
    for _ in 0..32 {
        ids.push(mint(&source).await);
        world.pass(100).await;
    }
    assert!(ids[0] > last);
    assert_eq!(counts(&ids), [2; 16]);
}
