//! A process that begins to write next to a running one: it leaves a start in the history, and
//! counts continue.

use super::kills::in_time;
use super::*;
use crate::model::catalog::NewDefinition;
use crate::model::exclusive::Relinquish;

/// Returns a world with a node that holds two rights, which it extends at the same time.
async fn with_two_rights() -> (World, Node, Vec<Source>) {
    let world = World::new();
    let node = world.open().await;
    let mut sources = Vec::new();
    for (name, json) in
        [("orders", "{}"), ("bills", r#"{"layout":"time=41,worker=4,sequence=12,unit=1ms"}"#)]
    {
        node.define(name, &spec(json)).await.unwrap();
        let source = in_time(&world, node.source(name)).await.unwrap();
        in_time(&world, source.mint(1, None, 5_000)).await.unwrap();
        sources.push(source);
    }
    (world, node, sources)
}

/// Returns the marks of its rights.
async fn marks(world: &World) -> Vec<Mark> {
    let held = world.handle().workers(START).await.unwrap();
    held.into_iter().map(|info| info.mark).collect()
}

/// Checks that the node mints, and has put no store in doubt.
async fn continues(world: &World, node: &Node, sources: &[Source]) {
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
    assert!(node.readiness().ready, "{:?}", node.readiness());
    for source in sources {
        in_time(world, source.mint(1, None, 5_000)).await.unwrap();
    }
}

/// One response reports the loss of a right, and counts the writes of other processes since they
/// began. Stored with the start seen before theirs, that count would belong to a history that was
/// replaced.
#[tokio::test]
async fn member_that_loses_a_slot_to_a_new_process_rejoins() {
    // Time until the last extend before the right is lost.
    let (world, _node, _sources) = with_two_rights().await;
    let (before, mut waits) = (marks(&world).await, 0);
    while marks(&world).await == before {
        world.pass(100).await;
        waits += 1;
    }

    let (world, node, sources) = with_two_rights().await;
    for _ in 1..waits {
        world.pass(100).await;
    }
    let other = world.handle();
    let held = other.workers(START).await.unwrap();
    assert_eq!(held.len(), 2, "of two pools: {held:?}");
    let before = other.identity().await.unwrap();
    let (pool, slots) = (held[0].pool.clone(), vec![(held[0].slot, held[0].term)]);
    let relinquish = Relinquish { pool, member: node.incarnation().unwrap(), slots };
    other.relinquish(&relinquish, START).await.unwrap();
    assert_ne!(other.identity().await.unwrap().id, before.id, "it has left a start");
    world.pass(30_000).await;
    continues(&world, &node, &sources).await;
}

/// The same for a node that has seen the count since, and loses its right some time later.
#[tokio::test]
async fn member_that_extended_next_to_a_newer_start_rejoins() {
    let (world, node, sources) = with_two_rights().await;
    let other = world.handle();
    let before = other.identity().await.unwrap();
    let new = NewDefinition {
        name: "another".into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    other.define(&new).await.unwrap();
    assert_ne!(other.identity().await.unwrap().id, before.id, "it has left a start");
    let (reached, mut waits) = (marks(&world).await, 0);
    while marks(&world).await == reached {
        world.pass(100).await;
        waits += 1;
        assert!(waits < 1_000, "it extends nothing");
    }
    world.pass(100).await;
    other.leave(node.incarnation().unwrap(), world.clock.unix_ms()).await.unwrap();
    world.pass(30_000).await;
    assert_ne!(node.stats().rejoins, 0, "it was forgotten");
    continues(&world, &node, &sources).await;
}
