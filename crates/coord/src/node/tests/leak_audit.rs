//! Claims that a network kept, and delivers when they are no longer waited for.

use super::*;
use crate::model::lease::{Extend, Lease, Release};
use crate::model::pool::{ClaimRequest, Preference};
use crate::model::slot::SlotInfo;
use crate::node::join::{LeakedSlot, release_leaked};

fn by_hand(worker: u64) -> NodeSettings {
    NodeSettings { worker: Some(worker), ..NodeSettings::default() }
}

/// Delivers a claim that `node` sent some time ago.
async fn late_claim(world: &World, node: &Node, slot: u64, request: u64) -> Lease {
    let Plan::Snowflake(plan) = spec("{}").check().unwrap() else { panic!() };
    let claim = ClaimRequest {
        pool: pool_of(&plan.layout, node.core().settings.reuse),
        member: node.incarnation().unwrap(),
        owner: String::new(),
        count: 1,
        preference: Preference::Exactly(slot),
        supersedes: None,
        mark_at_most: Mark::MAX,
        request,
    };
    world.handle().claim(&claim, world.clock.unix_ms()).await.unwrap().remove(0)
}

async fn holders(world: &World, slot: u64) -> Vec<Option<Incarnation>> {
    let slots = world.handle().workers(START).await.unwrap().into_iter();
    slots.filter(|info| info.slot == slot).map(|info| info.holder).collect()
}

async fn minting(world: &World, node: &Node) -> Source {
    node.define("orders", &spec("{}")).await.unwrap();
    let (opened, ()) = tokio::join!(node.source("orders"), world.pass(2_000));
    opened.unwrap()
}

fn times_listed(node: &Node) -> u64 {
    let calls = node.stats().store_calls.into_iter().filter(|verb| verb.verb == "workers");
    calls.map(|verb| verb.took.count()).sum()
}

/// Alters the source so that it needs a worker number of its own: the earlier one is given up.
async fn moved(world: &World, node: &Node) {
    node.alter("orders", &spec(r#"{"on_rollback":"borrow"}"#), None).await.unwrap();
    world.pass(2_000).await;
}

#[tokio::test]
async fn slot_of_a_late_claim_is_found_and_given_up() {
    let world = World::new();
    let node = world.open().await;
    let source = minting(&world, &node).await;
    moved(&world, &node).await;
    assert_eq!(holders(&world, 0).await, [None]);
    // It arrives soon, once more after it was found, and later.
    for request in [70, 71, 72] {
        late_claim(&world, &node, 7, request).await;
        assert_eq!(holders(&world, 7).await, [node.incarnation()]);
        for _ in 0..13 {
            world.pass(5_000).await;
            assert!(source.try_mint().is_ok(), "{:?}", node.readiness());
        }
        assert_eq!(holders(&world, 7).await, [None]);
        assert_eq!(holders(&world, 1).await, [node.incarnation()], "its own number stays its own");
    }
    assert!(times_listed(&node) > 2);
}

/// There was no reason to doubt, so nothing is listed.
#[tokio::test]
async fn node_without_failed_claims_lists_nothing() {
    let world = World::new();
    let node = world.open().await;
    minting(&world, &node).await;
    world.pass(120_000).await;
    assert_eq!(times_listed(&node), 0);
}

#[tokio::test]
async fn slot_in_use_is_not_given_up() {
    let world = World::new();
    let node = world.open().await;
    minting(&world, &node).await;
    let lease = late_claim(&world, &node, 7, 70).await;
    let Lease { pool, slot, term, holder, mark, .. } = lease;
    let seen = Release { pool: pool.clone(), slot, term, holder, mark, from: None };
    // A copy of the process mints from it, and has moved the mark since it was seen.
    let to = Mark::from(START.saturating_add(3_000));
    let extend =
        Extend { pool, slot, term, holder, from: mark, to, request: 8, ahead_max_ms: None };
    world.handle().extend(&[extend], START).await.unwrap().remove(0).unwrap();
    let leaked = LeakedSlot::new(seen.clone()).unwrap();
    assert!(release_leaked(&node.core().ctx, &leaked, START).await);
    let slots = world.handle().workers(START).await.unwrap();
    let row = slots.iter().find(|info| info.slot == slot).unwrap();
    assert_eq!((row.holder, row.term, row.mark), (node.incarnation(), term, to));
    // With this mark, no process can have minted past it, even if one tries at the same time.
    let leaked = LeakedSlot::new(Release { mark: to, ..seen }).unwrap();
    assert!(release_leaked(&node.core().ctx, &leaked, START).await);
    assert_eq!(holders(&world, 7).await, [None]);
}

/// A slot of a claim with a lost result is found, and given up. The release reaches the store late,
/// and the claim is repeated meanwhile. Nothing is minted from its result, or two nodes would have
/// one number.
#[tokio::test]
async fn leaked_slot_is_not_minted_from_after_a_repeated_claim() {
    let world = World::new();
    let store = world.faulty();
    let (unheard, lacks) = (Arc::clone(&store.faults.unheard), Arc::clone(&store.faults.lacks));
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    let source = minting(&world, &node).await;
    *unheard.lock().unwrap() = Some("claim");
    moved(&world, &node).await;
    *lacks.lock().unwrap() = Some("release");
    world.pass(20_000).await;
    // The earlier number was claimed again, as the first choice.
    assert_eq!(holders(&world, 0).await, [node.incarnation()]);
    let slots = world.handle().workers(START).await.unwrap();
    let SlotInfo { pool, slot, term, holder, mark, .. } = slots[0].clone();
    *unheard.lock().unwrap() = None;
    world.pass(5_000).await;
    // The node would mint by now, if at all. This is the release that was sent.
    let ids = |source: &Source| (0..100).map_while(|_| source.try_mint().ok()).collect::<Vec<_>>();
    let late = Release { pool, slot, term, holder, mark, from: None };
    world.handle().release(&late, world.clock.unix_ms()).await.unwrap();
    let other = world.open_with(by_hand(0)).await;
    let (others, ()) = tokio::join!(other.source("orders"), world.pass(1_000));
    let mut seen: HashSet<u64> = ids(&others.unwrap()).into_iter().collect();
    assert_eq!(seen.len(), 100);
    let twice: Vec<u64> = ids(&source).into_iter().filter(|id| !seen.insert(*id)).collect();
    assert!(twice.is_empty(), "{} IDs twice", twice.len());
    // Once the store confirms the release, another number is claimed.
    *lacks.lock().unwrap() = None;
    world.pass(5_000).await;
    assert!(source.try_mint().is_ok(), "{:?}", node.readiness());
}

/// A list is the largest call to a store, which may be unavailable because of its load.
#[tokio::test]
async fn unresponsive_store_gets_few_lists() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    minting(&world, &node).await;
    *lacks.lock().unwrap() = Some("workers");
    moved(&world, &node).await;
    world.pass(120_000).await;
    let lists = times_listed(&node);
    assert!((4..=13).contains(&lists), "{lists} times");
    late_claim(&world, &node, 7, 70).await;
    *lacks.lock().unwrap() = None;
    world.pass(31_000).await;
    assert_eq!(holders(&world, 7).await, [None]);
}
