//! Numbers that are prefetched and do not arrive.

use super::segments::{drawn, mark};
use super::*;
use crate::Retry;

/// No caller checks while there are enough: the next outage would find the prefetched numbers as
/// the last one left them.
#[tokio::test]
async fn failed_fetch_is_retried_before_prefetched_numbers_end() {
    for rule in ["fixed", "leaf"] {
        let world = World::new();
        let store = world.faulty();
        let lacks = Arc::clone(&store.faults.lacks);
        let node =
            Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
        let step = format!(r#"{{"kind":"segment","step":{{"rule":"{rule}","size":40}}}}"#);
        node.define("bills", &spec(&step)).await.unwrap();
        let source = node.source("bills").await.unwrap();
        drawn(&world, &source, 20).await;
        *lacks.lock().unwrap() = Some("reserve");
        let before = mark(&world, "bills").await;
        drawn(&world, &source, 11).await;
        settle().await;
        assert_eq!((mark(&world, "bills").await, before), (41, 41), "{rule}: one that failed");
        *lacks.lock().unwrap() = None;
        world.pass(3_000).await;
        assert!(mark(&world, "bills").await > 41, "{rule}: no later call did it");
        *lacks.lock().unwrap() = Some("reserve");
        assert_eq!(drawn(&world, &source, 40).await, (32..72).collect::<Vec<_>>());
    }
}

/// Servers reject a token that is over its rate. An earlier retry would be useless, and a load on
/// them.
#[tokio::test]
async fn store_is_not_called_before_its_retry_delay() {
    let world = World::new();
    let store = world.faulty();
    let (lacks, failures) = (Arc::clone(&store.faults.lacks), Arc::clone(&store.faults.failures));
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    let fixed = r#"{"kind":"segment","step":{"rule":"fixed","size":40}}"#;
    node.define("bills", &spec(fixed)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    drawn(&world, &source, 20).await;
    *lacks.lock().unwrap() = Some("reserve");
    *failures.lock().unwrap() = (Some(Retry::AfterMs(10_000)), 0);
    drawn(&world, &source, 11).await;
    for (pass_ms, calls) in [(100, 1), (8_000, 1), (4_000, 2)] {
        world.pass(pass_ms).await;
        assert_eq!(failures.lock().unwrap().1, calls, "{pass_ms} ms later");
    }
    // The hint is limited, since it may be wrong.
    failures.lock().unwrap().0 = Some(Retry::AfterMs(86_400_000));
    world.pass(12_000).await;
    assert_eq!(failures.lock().unwrap().1, 3);
    world.pass(61_000).await;
    assert_eq!(failures.lock().unwrap().1, 4);
}

/// The task that waits for a retry is not the node's, and may end later.
#[tokio::test]
async fn pending_fetch_retry_does_not_delay_a_close() {
    for closes in [false, true] {
        let world = World::new();
        let store = world.faulty();
        let lacks = Arc::clone(&store.faults.lacks);
        let store: Arc<dyn Store> = Arc::new(store);
        let kept = Arc::downgrade(&store);
        let node = Node::open(store, NodeSettings::default(), world.platform()).await.unwrap();
        let fixed = r#"{"kind":"segment","step":{"rule":"fixed","size":40}}"#;
        node.define("bills", &spec(fixed)).await.unwrap();
        let source = node.source("bills").await.unwrap();
        drawn(&world, &source, 20).await;
        *lacks.lock().unwrap() = Some("reserve");
        drawn(&world, &source, 11).await;
        settle().await;
        if closes {
            node.close().await.unwrap();
        }
        drop((node, source));
        settle().await;
        assert_eq!(kept.strong_count(), 0, "closes {closes}");
        let before = world.store.handle("default").unwrap().identity().await.unwrap().writes;
        world.pass(5_000).await;
        let after = world.store.handle("default").unwrap().identity().await.unwrap().writes;
        assert_eq!(before, after, "closes {closes}");
    }
}
