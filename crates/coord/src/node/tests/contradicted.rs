//! A store that contradicts an earlier reply, and by whose history nothing is missing: once any call
//! has found this, the store is in doubt, although nothing in it shows why any more.

use std::sync::atomic::Ordering;

use super::ends::another;
use super::kills::in_time;
use super::wrong_store::{FIXED, each_kind_on, ready, some, with_each_kind};
use super::*;

/// Returns the reason for which all processes refuse, without who reported it.
async fn doubt_of(world: &World) -> String {
    let doubt = world.handle().standing().await.unwrap().doubt.expect("the store is in doubt");
    doubt.evidence.split(" (reported by").next().unwrap().to_owned()
}

/// The call itself succeeds: the store reports the error for each right.
#[tokio::test]
async fn lease_newer_than_the_store_stops_all_until_recovery() {
    let world = World::new();
    let store = world.faulty();
    let outlived = Arc::clone(&store.faults.outlived);
    let (node, sources) = each_kind_on(&world, store).await;
    for source in &sources {
        some(&world, source).await.unwrap();
    }
    outlived.store(true, Ordering::SeqCst);
    // Twice a window: each right was extended.
    world.pass(60_000).await;
    let summary = node.readiness().summary();
    assert!(summary.contains("the term of a slot"), "{summary}");
    assert_eq!(doubt_of(&world).await, "the term of a slot");
    for source in &sources {
        let name = source.name();
        assert!(source.try_mint().is_err(), "{name}, prefetched");
        let refused = some(&world, source).await;
        assert!(refused.is_err(), "{name} gave {refused:?}");
    }

    outlived.store(false, Ordering::SeqCst);
    world.handle().fast_forward(&FastForward::default()).await.unwrap();
    in_time(&world, ready(&node)).await;
    for source in &sources[..3] {
        let name = source.name();
        some(&world, source).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// The store's count has passed everything that this node has seen, through a process that kept
/// running. So only the store's numbers show the store rollback.
#[tokio::test]
async fn rolled_back_source_stops_all_until_recovery() {
    let world = World::new();
    let (node, sources, _) = with_each_kind(&world).await;
    let other = world.open().await;
    other.define("another", &spec(FIXED)).await.unwrap();
    let before = world.store.backup();
    let (one, snowflake) = (&sources[1], &sources[3]);
    let seen = some(&world, one).await.unwrap();
    snowflake.try_mint().unwrap();
    world.store.restore(before);
    for number in 0..50 {
        other.define(&format!("another-{number}"), &spec(FIXED)).await.unwrap();
    }
    let refused = some(&world, one).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    for _ in 0..3 {
        world.pass(3_000).await;
        for source in &sources {
            let refused = some(&world, source).await;
            assert!(refused.is_err(), "{} gave {refused:?}", source.name());
        }
        let reasons = node.readiness().summary();
        assert!(reasons.contains(r#"next number of source "one""#), "{reasons}");
    }
    assert_eq!(doubt_of(&world).await, r#"next number of source "one""#);
    let segments = vec![("one".to_owned(), Mark::new(1_000))];
    let forward = FastForward { segments, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    world.pass(10_000).await;
    let after = some(&world, one).await.unwrap();
    assert!(after[0] >= 1_000 && after[0] > seen[2], "{after:?}");
    in_time(&world, snowflake.mint(1, None, 5_000)).await.unwrap();
    assert!(node.readiness().ready, "{:?}", node.readiness());
}

/// Returns the numbers of [`some`], while the clock stands still and only elapsed time passes.
async fn some_in_one_tick(world: &World, source: &Source) -> Result<Vec<u64>> {
    let passing = async {
        for _ in 0..10_000 {
            settle().await;
            world.timer.advance_ms(5);
        }
    };
    tokio::select! {
        biased;
        minted = source.mint(3, None, 2_000) => minted.map(numbers),
        () = passing => panic!("it never comes"),
    }
}

/// The same with a source that the store mints, which is the only one called since.
#[tokio::test]
async fn rolled_back_store_minted_source_stops_all_until_recovery() {
    let world = World::new();
    let (node, sources, _) = with_each_kind(&world).await;
    let by_store = &sources[2];
    for source in sources.iter().filter(|source| source.name() != by_store.name()) {
        some(&world, source).await.unwrap();
    }
    let other = world.handle();
    other.define(&another(0)).await.unwrap();
    let before = world.store.backup();
    let seen = some_in_one_tick(&world, by_store).await.unwrap();
    world.store.restore(before);
    for number in 1..=50 {
        other.define(&another(number)).await.unwrap();
    }
    let refused = some_in_one_tick(&world, by_store).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    for _ in 0..3 {
        world.pass(3_000).await;
        for source in &sources {
            let name = source.name();
            assert!(source.try_mint().is_err(), "{name}, prefetched");
            let refused = some(&world, source).await;
            assert!(refused.is_err(), "{name} gave {refused:?}");
        }
        let reasons = node.readiness().summary();
        assert!(reasons.contains(r#"next number of source "by-store""#), "{reasons}");
    }
    assert_eq!(doubt_of(&world).await, r#"next number of source "by-store""#);
    world.handle().fast_forward(&FastForward::default()).await.unwrap();
    in_time(&world, ready(&node)).await;
    let after = some(&world, by_store).await.unwrap();
    assert!(after[0] > seen[2], "{after:?} after {seen:?}");
}

/// Another process has raised the count past the lost extend. Under its term, only its holder moves
/// a mark.
#[tokio::test]
async fn mark_below_its_holders_stops_all_until_recovery() {
    let world = World::new();
    let node = world.open().await;
    node.define("shop", &spec("{}")).await.unwrap();
    let shop = in_time(&world, node.source("shop")).await.unwrap();
    some(&world, &shop).await.unwrap();
    let other = world.handle();
    other.define(&another(0)).await.unwrap();
    let mark = async || world.handle().workers(world.clock.unix_ms()).await.unwrap()[0].mark;
    let earlier = mark().await;
    let before = loop {
        // The other one stays in touch, and leaves no start that shows the loss.
        other.list().await.unwrap();
        let before = world.store.backup();
        world.pass(100).await;
        if mark().await > earlier {
            break before;
        }
    };
    let last = some(&world, &shop).await.unwrap();
    world.store.restore(before);
    for number in 1..=50 {
        other.define(&another(number)).await.unwrap();
    }
    world.pass(30_000).await;
    assert!(doubt_of(&world).await.starts_with("mark of "), "{}", doubt_of(&world).await);
    assert!(some(&world, &shop).await.is_err());

    world.handle().fast_forward(&FastForward::default()).await.unwrap();
    in_time(&world, ready(&node)).await;
    let after = some(&world, &shop).await.unwrap();
    assert!(after[0] > *last.last().unwrap(), "{after:?} after {last:?}");
}
