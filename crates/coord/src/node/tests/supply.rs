//! Which sources have a worker number claimed for them, and how often.

use super::*;

fn calls(node: &Node, verb: &str) -> u64 {
    let calls = node.stats().store_calls.into_iter().filter(|calls| calls.verb == verb);
    calls.map(|calls| calls.took.count()).sum()
}

/// A server opens a source anew for each request, until it is open.
#[tokio::test]
async fn however_many_ask_for_a_source_a_full_pool_is_asked_in_its_own_time() {
    let world = World::new();
    let by_hand = NodeSettings { worker: Some(0), ..NodeSettings::default() };
    let (has, wants) = (world.open_with(by_hand.clone()).await, world.open_with(by_hand).await);
    has.define("orders", &spec(r#"{"unique":"namespace"}"#)).await.unwrap();
    has.source("orders").await.unwrap();
    for _ in 0..10 {
        for _ in 0..100 {
            let full = wants.source("orders").await.unwrap_err();
            assert!(matches!(full.kind(), ErrorKind::PoolFull(_)), "{full}");
        }
        world.pass(100).await;
    }
    let (claims, lists) = (calls(&wants, "claim"), calls(&wants, "list"));
    assert!((1..=8).contains(&claims) && lists <= 8, "{claims} claims, {lists} lists");
    has.close().await.unwrap();
    world.pass(5_000).await;
    wants.source("orders").await.unwrap().try_mint().unwrap();
}
