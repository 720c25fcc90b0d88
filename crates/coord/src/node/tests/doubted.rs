//! Store that one node has put in doubt: how soon the other nodes, which have seen less, refuse.

use futures_util::FutureExt as _;

use super::faulty::Meanwhile;
use super::kills::in_time;
use super::recovered::{FIXED, joined};
use super::*;
use crate::model::history::JournalInfo;

/// Steps in which time passes.
const STEP_MS: u64 = 100;

async fn minting(world: &World, number: u32, presence_ttl_ms: u64) -> (Node, Source) {
    let node = world.open_with(NodeSettings { presence_ttl_ms, ..NodeSettings::default() }).await;
    joined(world, &node).await;
    let name = format!("bills-{number}");
    node.define(&name, &spec(FIXED)).await.unwrap();
    let source = in_time(world, node.source(&name)).await.unwrap();
    in_time(world, source.mint(1, None, 5_000)).await.unwrap();
    (node, source)
}

/// The other nodes have everything that they saw, and numbers for which they need no store. They
/// learn of the doubt by their renewals alone.
#[tokio::test]
async fn doubt_by_one_node_stops_all_within_a_renewal() {
    for presence_ttl_ms in [3_000_u64, 10_000] {
        let renewal_ms = (presence_ttl_ms / 3).next_multiple_of(STEP_MS);
        let world = World::new();
        let mut nodes = Vec::new();
        for number in 0..5 {
            nodes.push(minting(&world, number, presence_ttl_ms).await);
            // Spreads their renewals over the interval.
            world.pass(renewal_ms / 5).await;
        }
        world.pass(3 * renewal_ms).await;
        for (node, _) in &nodes {
            assert!(node.readiness().ready, "{:?}", node.readiness());
        }
        let backup = world.store.backup();
        // Meanwhile no other node calls the store.
        for number in 0..20 {
            nodes[0].0.define(&format!("lost-{number}"), &spec(FIXED)).await.unwrap();
        }
        world.store.restore(backup);
        let is_doubted = async || world.handle().standing().await.unwrap().doubt.is_some();
        let mut waited_ms = 0;
        while !is_doubted().await {
            assert!(waited_ms <= renewal_ms, "not in doubt after {waited_ms} ms");
            world.pass(STEP_MS).await;
            waited_ms += STEP_MS;
        }
        let others = || nodes.iter().skip(1);
        assert!(others().any(|(_, source)| source.try_mint().is_ok()), "one has to learn of it");

        world.pass(renewal_ms + STEP_MS).await;
        for (node, source) in &nodes {
            let name = source.name();
            assert!(source.try_mint().is_err(), "{presence_ttl_ms}: {name}, prefetched");
            let refused = in_time(&world, source.mint(1, None, 1_000)).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_rolled_back", "{name}: {refused}");
            let readiness = node.readiness();
            let says = |reason: &Reason| reason.code == "store_rolled_back";
            assert!(!readiness.ready && readiness.reasons.iter().any(says), "{readiness:?}");
        }
    }
}

/// After an outage each process leaves a start with its first write. A doubt belongs to the history
/// that its node has read, and so does nothing in a newer one.
#[tokio::test]
async fn start_of_another_process_delays_no_doubt() {
    let world = World::new();
    let store = world.faulty();
    let (verbs, meanwhile) = (Arc::clone(&store.faults.verbs), Arc::clone(&store.faults.meanwhile));
    let settings = NodeSettings::default();
    let node = Node::open(Arc::new(store), settings, world.platform()).await.unwrap();
    joined(&world, &node).await;
    let backup = world.store.backup();
    for number in 0..20 {
        node.define(&format!("lost-{number}"), &spec(FIXED)).await.unwrap();
    }
    world.store.restore(backup);
    let other = world.store.handle("default").unwrap();
    let writes = move || {
        other.report(&JournalInfo::default(), None).now_or_never().unwrap().unwrap();
    };
    *meanwhile.lock().unwrap() = Some(("doubt", Meanwhile(Box::new(writes))));
    let doubts = || verbs.lock().unwrap().iter().position(|verb| *verb == "doubt");
    while doubts().is_none() {
        world.pass(STEP_MS).await;
    }
    assert!(meanwhile.lock().unwrap().is_none());
    let next = doubts().unwrap() + 1;
    let next = verbs.lock().unwrap()[next];
    assert_eq!(next, "standing", "it looks again at once");
    assert!(world.handle().standing().await.unwrap().doubt.is_some());
}
