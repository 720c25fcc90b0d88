//! Claims that a network kept, and delivers when nobody waits for them any more.

use super::*;
use crate::lease::{ClaimRequest, Extend, Lease, Release, Wish};
use crate::node::entry::release_stray;

fn by_hand(worker: u64) -> NodeSettings {
    NodeSettings { worker: Some(worker), ..NodeSettings::default() }
}

/// What `node` asked for some time ago.
async fn late_claim(world: &World, node: &Node, slot: u64, request: u64) -> Lease {
    let Plan::Snowflake(plan) = spec("{}").check().unwrap() else { panic!() };
    let claim = ClaimRequest {
        pool: pool_of(&plan, node.core().settings.reuse),
        member: node.incarnation().unwrap(),
        owner: String::new(),
        count: 1,
        wish: Wish::Exactly(slot),
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

#[tokio::test]
async fn what_a_late_claim_took_is_found_and_given_up() {
    let world = World::new();
    let other = world.open_with(by_hand(3)).await;
    minting(&world, &other).await;
    let node = world.open_with(by_hand(3)).await;
    let (refused, ()) = tokio::join!(node.source("orders"), world.pass(2_000));
    let refused = refused.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::PoolFull(_)), "{refused}");
    // It comes soon, and once more after it was found.
    for request in [70, 71] {
        late_claim(&world, &node, 7, request).await;
        assert_eq!(holders(&world, 7).await, [node.incarnation()]);
        world.pass(65_000).await;
        assert_eq!(holders(&world, 7).await, [None]);
    }
    other.close().await.unwrap();
    let source = minting(&world, &node).await;
    // Its own number stays its own, while it is looked for others.
    late_claim(&world, &node, 7, 72).await;
    for _ in 0..40 {
        world.pass(5_000).await;
        assert!(source.try_mint().is_ok(), "{:?}", node.readiness());
    }
    assert_eq!(holders(&world, 7).await, [None]);
    assert_eq!(holders(&world, 3).await, [node.incarnation()]);
    assert!(times_listed(&node) > 2);
}

/// Nothing gave reason to doubt, so nobody asks.
#[tokio::test]
async fn a_node_that_got_what_it_asked_for_lists_nothing() {
    let world = World::new();
    let node = world.open().await;
    minting(&world, &node).await;
    world.pass(120_000).await;
    assert_eq!(times_listed(&node), 0);
}

#[tokio::test]
async fn a_slot_that_somebody_mints_from_is_not_given_up() {
    let world = World::new();
    let node = world.open().await;
    minting(&world, &node).await;
    let lease = late_claim(&world, &node, 7, 70).await;
    let Lease { pool, slot, term, mark, .. } = lease;
    let seen = Release { pool: pool.clone(), slot, term, mark };
    // A copy of the process that mints from it has moved the mark since it was seen.
    let to = Mark::from(START.saturating_add(3_000));
    let extend = Extend { pool, slot, term, from: mark, to, request: 8, ahead_max_ms: None };
    world.handle().extend(&[extend], START).await.unwrap().remove(0).unwrap();
    assert!(release_stray(&node.core().around, &seen, START).await);
    let slots = world.handle().workers(START).await.unwrap();
    let row = slots.iter().find(|info| info.slot == slot).unwrap();
    assert_eq!((row.holder, row.term, row.mark), (node.incarnation(), term, to));
    // As it is now nobody can have minted past it, whoever tries at the same time.
    let seen = Release { mark: to, ..seen };
    assert!(release_stray(&node.core().around, &seen, START).await);
    assert_eq!(holders(&world, 7).await, [None]);
}
