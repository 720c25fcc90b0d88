//! Readiness of a node, and its loss.

use super::faulty::Faults;
use super::*;

#[tokio::test]
async fn readiness_is_earned_and_lost() {
    let world = World::new();
    let node = world.open().await;
    assert!(!node.readiness().ready, "nothing was granted yet");
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    settle().await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    let before = source.try_mint().unwrap();
    // An operator moves every slot a minute ahead, and so takes ours away.
    let marks_at_least = Mark::from(START.saturating_add(60_000));
    let forward = FastForward { marks_at_least, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    world.pass(40_000).await;
    assert!(!node.readiness().ready);
    assert!(!node.readiness().reasons.is_empty());
    assert!(source.try_mint().is_err(), "nothing is minted on hope");
    // The clock reaches the marks: the node becomes ready again by itself.
    world.pass(60_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    assert!(source.try_mint().unwrap() > before);
    // The node's end makes it unready for good.
    node.close().await.unwrap();
    assert!(!node.readiness().ready);
    assert!(node.readiness().summary().contains("closed"), "{:?}", node.readiness());
}

/// All servers of a store lose it at the same moment: a server that still can mint stays in
/// service.
#[tokio::test]
async fn unreachable_store_ends_readiness_with_the_window() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    world.pass(3_000).await;
    *lacks.lock().unwrap() = Some(Faults::EVERY_VERB);
    // The presence expires after 10 s; half of the window of 30 s is left in any case.
    for second in 1..=14 {
        world.pass(1_000).await;
        source.try_mint().unwrap();
        assert!(node.readiness().ready, "after {second} s: {:?}", node.readiness());
    }
    assert_eq!(node.stats().presence_ms, 0, "the presence has expired");
    world.pass(17_000).await;
    let Readiness { ready, reasons, .. } = node.readiness();
    assert!(
        !ready && reasons.len() == 1 && reasons[0].message.contains(" ends at 2026-06-01T00:"),
        "{reasons:?}"
    );
    assert!(source.try_mint().is_err());
    *lacks.lock().unwrap() = None;
    world.pass(5_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    source.try_mint().unwrap();
}

/// Its sections are served as long as its presence lasts, and nothing else shows how long.
#[tokio::test]
async fn node_without_window_is_ready_while_its_presence_lasts() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    node.define("messages", &spec(r#"{"kind":"counter"}"#)).await.unwrap();
    let source = node.source("messages").await.unwrap();
    source.count(b"alice", 1, 100).await.unwrap();
    *lacks.lock().unwrap() = Some(Faults::EVERY_VERB);
    world.pass(5_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    world.pass(7_000).await;
    let reasons = node.readiness().reasons;
    assert!(source.try_count(b"alice", 1).is_err());
    assert!(reasons.len() == 1 && reasons[0].message.contains("presence"), "{reasons:?}");
    *lacks.lock().unwrap() = None;
    world.pass(5_000).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
}

/// A load balancer would otherwise send requests to a server without a worker number.
#[tokio::test]
async fn node_is_not_ready_before_the_first_opening_of_its_sources() {
    let world = World::new();
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    node.set_configured(["orders", "bills", "off"].map(str::to_owned));
    node.begin_opening();
    for (name, keys) in [
        ("orders", "{}"),
        ("bills", r#"{"kind":"segment"}"#),
        ("off", r#"{"enabled":false}"#),
        ("others", "{}"),
    ] {
        node.define(name, &spec(keys)).await.unwrap();
    }
    world.pass(1_000).await;
    let reasons = || node.readiness().reasons;
    let messages = || reasons().into_iter().map(|reason| reason.message).collect::<Vec<_>>();
    assert!(reasons().iter().all(|reason| reason.code == "not_claimed"), "{:?}", reasons());
    assert_eq!(messages().len(), 3, "{:?}", messages());

    // Disabled sources are not opened, and those of others decide nothing.
    node.opening_of(["orders", "bills"].map(str::to_owned));
    let hold = |verb| {
        let resume = Arc::new(tokio::sync::Notify::new());
        *held.lock().unwrap() = Some((verb, Arc::clone(&resume)));
        resume
    };
    let claim = hold("claim");
    let opening = node.clone();
    let opening = tokio::spawn(async move { opening.source("orders").await.map(drop) });
    node.source("bills").await.unwrap();
    world.pass(200).await;
    assert_eq!(messages(), ["no worker number of pool workers-10: not claimed yet"]);
    // Claimed, but without a window so far.
    let extend = hold("extend");
    claim.notify_one();
    world.pass(200).await;
    assert_eq!(messages(), ["the window of pool workers-10 is not open yet"]);
    extend.notify_one();
    world.pass(1_000).await;
    opening.await.unwrap().unwrap();
    assert!(node.readiness().ready, "{:?}", node.readiness());

    // A source that only a request opens keeps no server unready.
    node.set_configured(["orders", "bills", "off", "others"].map(str::to_owned));
    node.opening_of([]);
    world.pass(100).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
}
