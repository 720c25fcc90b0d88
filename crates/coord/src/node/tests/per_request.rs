//! Per-request sources: each request calls the store.

use snowmint_core::Layout;

use super::segments::drawn;
use super::*;
use crate::ids::Mark;

const ONE: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#;
const BY_STORE: &str = r#"{"layout":"redis","mint":"store","worker":77}"#;

async fn mark(world: &World, name: &str) -> u64 {
    world.handle().get(name).await.unwrap().segment.mark.get()
}

/// Two processes, in turns: each number is greater than all earlier ones, and none is missing.
#[tokio::test]
async fn with_a_step_of_one_all_processes_count_together() {
    let world = World::new();
    let nodes = [world.open().await, world.open().await];
    nodes[0].define("bills", &spec(ONE)).await.unwrap();
    let sources =
        [nodes[0].source("bills").await.unwrap(), nodes[1].source("bills").await.unwrap()];
    assert!(sources[0].is_per_request());
    let mut expected = 1;
    for round in 0..30 {
        let source = &sources[round % 2];
        let count = 1 + u32::try_from(round % 5).unwrap();
        let ids = numbers(source.mint(count, None, 1_000).await.unwrap());
        assert_eq!(ids, (expected..expected + u64::from(count)).collect::<Vec<_>>());
        expected += u64::from(count);
        settle().await;
        assert_eq!(mark(&world, "bills").await, expected, "nothing is taken ahead of need");
    }
    let row = sources[1].reserve_range(10, 1_000).await.unwrap();
    assert_eq!((row.first, row.last), (expected, expected + 9));
    let refused = sources[0].try_mint().unwrap_err();
    assert_eq!((refused.kind().code(), refused.retry()), ("unsupported", crate::Retry::Never));
    assert_eq!(sources[0].try_fill(&mut [0; 2]).unwrap_err().0, 0);
    let quick = sources[0].numbers().unwrap();
    assert!(quick.try_next().is_err() && quick.lane(5).try_next().is_err());
    settle().await;
    assert_eq!(
        mark(&world, "bills").await,
        expected + 10,
        "a request for prefetched numbers takes none"
    );
    nodes[0].close().await.unwrap();
    let closed = sources[0].mint(1, None, 1_000).await.unwrap_err();
    assert_eq!(closed.kind().code(), "closed", "{closed}");
}

/// Prefetched numbers are not used once the order spans all processes.
#[tokio::test]
async fn change_to_step_one_drops_prefetched_numbers() {
    let world = World::new();
    let node = world.open().await;
    node.define("bills", &spec(r#"{"kind":"segment","offset":2,"increment":3}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    assert_eq!(drawn(&world, &source, 2).await, [2, 5]);
    settle().await;
    let stripe =
        |step: &str| spec(&format!(r#"{{"kind":"segment","offset":2,"increment":3{step}}}"#));
    let one = stripe(r#","step":{"rule":"fixed","size":1}"#);
    node.alter("bills", &one, None).await.unwrap();
    let before = mark(&world, "bills").await;
    let ids = numbers(source.mint(2, None, 1_000).await.unwrap());
    assert_eq!(ids, [2 + 3 * (before - 1), 2 + 3 * before]);
    node.alter("bills", &stripe(""), None).await.unwrap();
    assert!(!source.is_per_request());
    assert_eq!(drawn(&world, &source, 1).await, [2 + 3 * (before + 1)]);
}

#[tokio::test]
async fn the_store_mints_under_its_own_number() {
    let world = World::new();
    let nodes = [world.open().await, world.open().await];
    nodes[0].define("orders", &spec(BY_STORE)).await.unwrap();
    let layout = Layout::REDIS;
    let mut last = 0;
    for round in 0..10 {
        let source = nodes[round % 2].source("orders").await.unwrap();
        let ids = numbers(source.mint(3, None, 1_000).await.unwrap());
        for id in ids {
            assert!(id > last, "in one order for both");
            last = id;
            let parts = layout.unpack(id).unwrap();
            assert_eq!((parts.worker, layout.start_of(parts.tick)), (77, world.clock_now()));
        }
        world.clock.advance_ms(1);
    }
    let workers = nodes[0].workers().await.unwrap();
    assert!(workers.is_empty(), "no worker number is claimed: {workers:?}");
    let source = nodes[0].source("orders").await.unwrap();
    assert_eq!(source.try_mint().unwrap_err().kind().code(), "unsupported");
    assert!(source.reserve_range(2, 10).await.is_err());
    settle().await;
    assert!(nodes[0].readiness().ready, "{:?}", nodes[0].readiness());
}

/// A batch that is larger than a tick takes several ticks, as time passes, or fails when its time
/// is up.
#[tokio::test]
async fn a_full_tick_is_waited_for_within_the_bound() {
    let world = World::new();
    let node = world.open().await;
    node.define("orders", &spec(BY_STORE)).await.unwrap();
    let source = node.source("orders").await.unwrap();
    let task = {
        let source = source.clone();
        tokio::spawn(async move { source.mint(2_500, None, 1_000).await })
    };
    settle().await;
    assert!(!task.is_finished(), "1024 of them fit");
    for _ in 0..5 {
        world.clock.advance_ms(1);
        world.timer.advance_ms(1);
        settle().await;
    }
    let ids = numbers(task.await.unwrap().unwrap());
    let parts: Vec<_> = ids.iter().map(|id| Layout::REDIS.unpack(*id).unwrap()).collect();
    assert_eq!(ids.len(), 2_500);
    let ticks: HashSet<_> = parts.iter().map(|parts| parts.tick).collect();
    assert_eq!(ticks.len(), 3);

    numbers(source.mint(1024, None, 0).await.unwrap());
    let full = source.mint(1, None, 0).await.unwrap_err();
    assert_eq!(full.kind().code(), "tick_full", "{full}");
}

#[tokio::test]
async fn clock_rollback_follows_the_policy_and_is_reported() {
    let world = World::new();
    let node = world.open().await;
    // A request before the first check of the clocks waits for it.
    settle().await;
    node.define("orders", &spec(BY_STORE)).await.unwrap();
    let source = node.source("orders").await.unwrap();
    let before = numbers(source.mint(5, None, 0).await.unwrap())[4];
    world.clock.set(START.saturating_sub(3_000));
    let led = numbers(source.mint(2_000, None, 0).await.unwrap());
    assert!(led[0] > before && led.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(source.stats().clock_steps, (1, 0));
    world.clock.set(START.saturating_sub(60_000));
    let refused = source.mint(1, None, 100).await.unwrap_err();
    assert_eq!(refused.kind().code(), "clock_behind", "{refused}");
    assert_eq!(source.stats().clock_steps.0, 2, "reported once, however many requests come");
    let fail = r#"{"layout":"redis","mint":"store","worker":77,"on_rollback":"fail"}"#;
    node.alter("orders", &spec(fail), None).await.unwrap();
    world.clock.set(START);
    let refused = source.mint(1, None, 1_000).await.unwrap_err();
    assert_eq!(refused.kind().code(), "clock_behind", "it led, and now it may not");
    world.clock.set(START.saturating_add(1_000));
    assert!(numbers(source.mint(1, None, 0).await.unwrap())[0] > led[1_999]);
}

/// Such a clock's mark would apply to all processes, and no process can set it back.
#[tokio::test]
async fn clock_far_ahead_moves_no_mark_without_store_clock() {
    const YEARS_MS: u64 = 10 * 31_556_952_000;
    let world = World::new();
    let node = world.open().await;
    // A request before the first check of the clocks waits for it.
    settle().await;
    node.define("orders", &spec(BY_STORE)).await.unwrap();
    let source = node.source("orders").await.unwrap();
    let before = numbers(source.mint(1, None, 0).await.unwrap())[0];
    let (taken, limit_ms) = (mark(&world, "orders").await, 600_000);
    for ahead_ms in [limit_ms + 1, YEARS_MS] {
        // At once: the node itself has not polled its clock since.
        world.clock.set(START.saturating_add(ahead_ms));
        let refused = source.mint(1, None, 0).await.unwrap_err();
        assert_eq!(refused.kind().code(), "clock_ahead", "{ahead_ms}: {refused}");
        assert_eq!(mark(&world, "orders").await, taken);
    }
    world.clock.set(START);
    let after = numbers(source.mint(1, None, 0).await.unwrap())[0];
    let parts = Layout::REDIS.unpack(after).unwrap();
    assert!(after > before && Layout::REDIS.start_of(parts.tick) == START);
    // Clocks are believed up to this limit when there is no better source.
    world.clock.set(START.saturating_add(limit_ms));
    numbers(source.mint(1, None, 0).await.unwrap());
}

/// Another process alters the definition: the next request reads it, and succeeds.
#[tokio::test]
async fn changed_definition_is_used_and_rolled_back_store_rejected() {
    let world = World::new();
    let (one, other) = (world.open().await, world.open().await);
    for (name, json) in [("bills", ONE), ("orders", BY_STORE)] {
        one.define(name, &spec(json)).await.unwrap();
        let source = one.source(name).await.unwrap();
        numbers(source.mint(1, None, 0).await.unwrap());
        let mut altered = spec(json);
        altered.text = Some("base62".into());
        other.alter(name, &altered, None).await.unwrap();
        let task = {
            let source = source.clone();
            tokio::spawn(async move { source.mint(1, None, 60_000).await })
        };
        world.pass(10_000).await;
        numbers(task.await.unwrap().unwrap());
    }
    let source = one.source("bills").await.unwrap();
    let backup = world.store.backup();
    numbers(source.mint(3, None, 0).await.unwrap());
    world.store.restore(backup);
    let refused = source.mint(1, None, 0).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    assert_ne!(mark(&world, "bills").await, Mark::ZERO.get());
}

impl World {
    fn clock_now(&self) -> UnixMillis {
        use snowmint_core::Clock as _;
        self.clock.unix_ms()
    }
}
