//! Segment sources of a node over the memory store.

use super::tests::{World, numbers, settle, spec};
use super::*;
use crate::sources::NumberStats;

fn stats(source: &Source) -> NumberStats {
    source.stats().numbers.unwrap()
}

/// The next number that the store will hand out.
async fn mark(world: &World, name: &str) -> u64 {
    world.handle().get(name).await.unwrap().segment.mark.get()
}

#[tokio::test]
async fn a_fixed_step_moves_the_mark_by_as_much_each_time() {
    let world = World::new();
    let node = world.open().await;
    let fixed = r#"{"kind":"segment","step":{"rule":"fixed","size":40}}"#;
    node.define("bills", &spec(fixed)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    let mut expected = 1;
    for _ in 0..100 {
        let ids = numbers(source.mint(3, None, 1_000).await.unwrap());
        assert_eq!(ids, (expected..expected + 3).collect::<Vec<_>>());
        expected += 3;
        world.pass(1_000).await;
        assert_eq!((mark(&world, "bills").await - 1) % 40, 0);
        assert!(mark(&world, "bills").await < expected + 80, "fetched when it is needed");
    }
}

#[tokio::test]
async fn an_altered_step_counts_from_the_next_fetch_on() {
    let world = World::new();
    let node = world.open().await;
    let fixed =
        |size| spec(&format!(r#"{{"kind":"segment","step":{{"rule":"fixed","size":{size}}}}}"#));
    node.define("bills", &fixed(10)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    source.mint(1, None, 1_000).await.unwrap();
    settle().await;
    assert_eq!(mark(&world, "bills").await, 11);
    node.alter("bills", &fixed(5_000), None).await.unwrap();
    source.mint(10, None, 1_000).await.unwrap();
    settle().await;
    assert_eq!(mark(&world, "bills").await, 5_011);
}

/// What was given back is no waste; what others stood in the way of is.
#[tokio::test]
async fn waste_is_counted() {
    let world = World::new();
    let (one, other) = (world.open().await, world.open().await);
    let fixed = spec(r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#);
    one.define("bills", &fixed).await.unwrap();
    let (here, there) = (one.source("bills").await.unwrap(), other.source("bills").await.unwrap());
    here.mint(10, None, 1_000).await.unwrap();
    settle().await;
    assert_eq!(stats(&here), NumberStats { stock: 90, fetched: 100, lost: 0 });
    there.mint(10, None, 1_000).await.unwrap();
    settle().await;
    one.close().await.unwrap();
    other.close().await.unwrap();
    assert_eq!(stats(&here), NumberStats { stock: 0, fetched: 100, lost: 90 });
    assert_eq!(stats(&there), NumberStats { stock: 0, fetched: 10, lost: 0 });
    assert_eq!(mark(&world, "bills").await, 111);
}

#[tokio::test]
async fn after_a_burst_no_more_is_in_stock_than_was_taken() {
    let world = World::new();
    let node = world.open().await;
    node.define("bills", &spec(r#"{"kind":"segment"}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    for _ in 0..40 {
        source.mint(500, None, 1_000).await.unwrap();
        world.timer.advance_ms(1);
        settle().await;
        let NumberStats { stock, fetched, lost } = stats(&source);
        // Twice what was asked for at once is needed in any case.
        assert!(stock <= Ord::max(fetched / 2, 1_000) && lost == 0, "{stock} of {fetched}");
    }
}
