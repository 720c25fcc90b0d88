//! Sources of a node: how they are defined, altered and minted from.

use super::kills::Scratch;
use super::*;
use crate::stats::TimesSeen;

#[tokio::test]
async fn concurrent_closes_get_the_same_result() {
    let world = World::new();
    let node = world.open().await;
    settle().await;
    let (one, other, late) = tokio::join!(node.close(), node.close(), node.close());
    one.unwrap();
    other.unwrap();
    late.unwrap();
    node.close().await.unwrap();
}

/// A command that only defines a source closes its node this early.
#[tokio::test]
async fn a_node_that_is_closed_while_it_joins_leaves_nothing() {
    let world = World::new();
    let node = world.open().await;
    node.close().await.unwrap();
    assert_eq!(world.handle().members(START).await.unwrap(), []);
}

#[tokio::test]
async fn every_kind_of_source_mints_in_real_time_on_a_real_disk() {
    let store = Arc::new(MemoryStore::new("default").unwrap());
    let dir = Scratch::new();
    let data_dir = Some(dir.0.clone());
    let settings = NodeSettings { builtin: true, data_dir, ..NodeSettings::default() };
    let node = Node::open(store, settings, Platform::system()).await.unwrap();
    let orders = node.source(BUILTIN_DEFAULT).await.unwrap();
    let ids = numbers(orders.mint(20_000, None, 60_000).await.unwrap());
    assert!(ids.is_sorted_by(|one, next| one < next));
    let Decoded::Snowflake { id, time, .. } = orders.decode(&ids[0].to_string(), None).unwrap()
    else {
        panic!("no snowflake")
    };
    assert_eq!(id, ids[0]);
    let now = Platform::system().clock.unix_ms();
    assert!(now.since(time) < 60_000 && time.since(now) < 1_000, "{time} at {now}");
    let sequence = node.source(BUILTIN_NUMBERS).await.unwrap();
    let first = numbers(sequence.mint(1_000, None, 60_000).await.unwrap());
    assert_eq!(first, (1..=1_000).collect::<Vec<_>>());
    let counters = node.source(BUILTIN_COUNTERS).await.unwrap();
    assert_eq!(numbers(counters.mint(3, Some("alice"), 60_000).await.unwrap()), [1, 2, 3]);
    node.define("events", &spec(r#"{"kind":"uuid"}"#)).await.unwrap();
    node.define("logs", &spec(r#"{"kind":"ulid"}"#)).await.unwrap();
    for name in ["events", "logs"] {
        let source = node.source(name).await.unwrap();
        let IdBatch::Texts(texts) = source.mint(100, None, 60_000).await.unwrap() else { panic!() };
        assert!(texts.is_sorted_by(|one, next| one < next), "{name}");
        assert!(source.try_mint().is_err(), "{name} has no numbers");
        source.decode(&texts[0], None).unwrap();
    }
    assert!(node.readiness().ready, "{:?}", node.readiness());
    assert_eq!(node.sources().await.unwrap().sources.len(), 5);
    assert_eq!(node.workers().await.unwrap().len(), 1);
    node.close().await.unwrap();
    assert!(matches!(orders.try_mint().unwrap_err().kind(), ErrorKind::Closed));
    assert!(matches!(sequence.try_mint().unwrap_err().kind(), ErrorKind::Closed));
    let closed = counters.try_count(b"alice", 1).unwrap_err();
    assert!(matches!(closed.kind(), ErrorKind::Closed), "{closed}");
    assert!(node.store().workers(now).await.unwrap().iter().all(|slot| !slot.live));
}

/// Callers that request undefined names do not load the store. A name that another node defines
/// meanwhile is found within a tenth of a second, and one of our own at once.
#[tokio::test]
async fn unknown_names_cost_few_store_calls() {
    let world = World::new();
    let (node, other) = (world.open().await, world.open().await);
    let calls = || {
        let calls = |took: &TimesSeen| took.counts.iter().sum::<u64>() + took.longer;
        node.stats().store_calls.iter().map(|verb| calls(&verb.took)).sum::<u64>()
    };
    let before = calls();
    for tick in 0..20 {
        for number in 0..500 {
            let error = node.source(&format!("absent-{tick}-{number}")).await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NotFound), "{error}");
        }
        world.timer.advance_ms(50);
    }
    let sent = calls() - before;
    assert!((10..=150).contains(&sent), "{sent} calls for 10,000 names in a second");

    for number in 0..20 {
        node.source(&format!("none-{number}")).await.unwrap_err();
    }
    other.define("theirs", &SourceSpec::default()).await.unwrap();
    world.timer.advance_ms(100);
    for number in 0..20 {
        node.source(&format!("none-{number}")).await.unwrap_err();
    }
    node.source("theirs").await.unwrap();
    node.define("ours", &SourceSpec::default()).await.unwrap();
    node.source("ours").await.unwrap();
    node.delete("ours").await.unwrap();
    node.source("ours").await.unwrap();
}

#[tokio::test]
async fn repeated_open_gives_the_same_generator() {
    let world = World::new();
    let node = world.open().await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let one = node.source("orders").await.unwrap();
    let two = node.source("orders").await.unwrap();
    let mut seen = HashSet::new();
    for _ in 0..1_000 {
        assert!(seen.insert(one.try_mint().unwrap()) && seen.insert(two.try_mint().unwrap()));
    }
    assert_eq!(node.workers().await.unwrap().len(), 1);
}

#[tokio::test]
async fn released_slot_resumes_at_its_mark() {
    let world = World::new();
    let mut last = 0;
    for _ in 0..5 {
        let settings = NodeSettings { owner: "shop-1".into(), ..NodeSettings::default() };
        let node = world.open_with(settings).await;
        node.define("orders", &SourceSpec::default()).await.unwrap();
        let source = node.source("orders").await.unwrap();
        let id = source.try_mint().unwrap();
        assert!(id > last);
        last = id;
        node.close().await.unwrap();
        world.clock.advance_ms(1);
        assert_eq!(node.workers().await.unwrap().len(), 1, "the same number each time");
    }
}

#[tokio::test]
async fn the_window_is_kept_ahead_and_readiness_with_it() {
    let world = World::new();
    let node = world.open().await;
    assert!(!node.readiness().ready);
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    for _ in 0..120 {
        world.pass(1_000).await;
        source.try_mint().unwrap();
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
}

#[tokio::test]
async fn disabled_source_fails_and_altered_source_repeats_nothing() {
    let world = World::new();
    let (one, two) = (world.open().await, world.open().await);
    one.define("orders", &SourceSpec::default()).await.unwrap();
    let (here, there) = (one.source("orders").await.unwrap(), two.source("orders").await.unwrap());
    let mut seen = HashSet::new();
    for round in 0..10_u32 {
        for _ in 0..50 {
            assert!(seen.insert(here.try_mint().unwrap()));
            assert!(seen.insert(there.try_mint().unwrap()));
        }
        let policy = ["fail", "hold", "borrow", "ring", "wait"][round as usize % 5];
        let altered = spec(&format!(r#"{{"on_rollback":"{policy}"}}"#));
        one.alter("orders", &altered, None).await.unwrap();
        world.pass(16_000).await;
        let now = there.spec().on_rollback;
        assert_eq!(now, altered.on_rollback, "the other node follows");
        // A generator that follows another begins with the next tick.
        world.pass(100).await;
    }
    switch(&one, "orders", false).await;
    let error = here.try_mint().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Disabled), "{error}");
    world.pass(16_000).await;
    let error = there.try_mint().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Disabled), "{error}");
    switch(&one, "orders", true).await;
    // It claims a worker number again.
    world.pass(200).await;
    assert!(seen.insert(here.try_mint().unwrap()));
    one.delete("orders").await.unwrap();
    assert!(matches!(here.try_mint().unwrap_err().kind(), ErrorKind::NotFound));
    assert!(one.source("orders").await.is_err());
    one.define("orders", &SourceSpec::default()).await.unwrap();
    world.pass(100).await;
    assert!(seen.insert(one.source("orders").await.unwrap().try_mint().unwrap()));
}

#[tokio::test]
async fn definitions_that_disagree_are_refused() {
    let world = World::new();
    let node = world.open().await;
    let long = SourceSpec { burst: Some(Span::from_ms(5)), ..SourceSpec::default() };
    node.define("orders", &SourceSpec::default()).await.unwrap();
    node.define("orders", &SourceSpec::default()).await.unwrap();
    for other in [
        long,
        spec(r#"{"layout":"twitter"}"#),
        spec(r#"{"kind":"segment"}"#),
        spec(r#"{"kind":"counter"}"#),
        spec(r#"{"order":"global"}"#),
    ] {
        let error = node.define("orders", &other).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Conflict), "{error}");
    }
    let error = node.alter("orders", &spec(r#"{"layout":"twitter"}"#), None).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict), "{error}");
    for (name, json) in
        [("new", r#"{"order":"global","unique":"namespace"}"#), ("a/b", "{}"), ("", "{}")]
    {
        let error = node.define(name, &spec(json)).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Invalid), "{error}");
    }
    assert!(matches!(node.source("absent").await.unwrap_err().kind(), ErrorKind::NotFound));
}

#[tokio::test]
async fn namespace_unique_sources_share_one_generator() {
    let world = World::new();
    let node = world.open().await;
    let shared = spec(r#"{"unique":"namespace"}"#);
    let mut seen = HashSet::new();
    let mut sources = Vec::new();
    for name in ["a", "b", "c"] {
        node.define(name, &shared).await.unwrap();
        sources.push(node.source(name).await.unwrap());
    }
    for _ in 0..500 {
        for source in &sources {
            assert!(seen.insert(source.try_mint().unwrap()));
        }
    }
    let other = spec(r#"{"unique":"namespace","burst":"5ms"}"#);
    let error = node.define("d", &other).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict), "{error}");
}

#[tokio::test]
async fn count_and_key_are_checked() {
    let world = World::new();
    let node = world.open().await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    for (count, key) in [(0, None), (1_000_001, None), (1, Some("x"))] {
        assert!(source.mint(count, key, 0).await.is_err(), "{count} {key:?}");
    }
    // More than a tick holds, and no time passes: exactly the requested count, or an error.
    let error = source.mint(5_000, None, 0).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TickFull { .. }), "{error}");
}

#[tokio::test]
async fn a_prefilled_source_serves_from_its_queue_and_is_refilled() {
    let world = World::new();
    let node = world.open().await;
    let baidu = spec(
        r#"{"layout":"time=32,worker=22,sequence=3,unit=1s","on_rollback":"borrow",
            "prefill":{"enabled":true,"boost":1,"on_empty":"wait","wait_max":"5s"}}"#,
    );
    node.define("orders", &baidu).await.unwrap();
    let source = {
        let open = node.source("orders");
        tokio::pin!(open);
        loop {
            tokio::select! {
                source = &mut open => break source.unwrap(),
                () = world.pass(1) => {}
            }
        }
    };
    settle().await;
    let stats = source.stats().prefill.unwrap();
    assert_eq!((stats.capacity, stats.tail, stats.cursor), (16, 16, 0));
    let mut seen = HashSet::new();
    for round in 0..200 {
        if let Ok(id) = source.try_mint() {
            assert!(seen.insert(id));
        }
        settle().await;
        if round % 3 == 0 {
            world.pass(100).await;
        }
    }
    assert!(seen.len() > 90, "{}", seen.len());
    let stats = source.stats().prefill.unwrap();
    assert_eq!(stats.cursor, seen.len() as u64);
    assert_eq!(stats.discarded, 0);
    // Altering the queue loses no prefetched IDs.
    let queued = stats.tail - stats.cursor;
    let plain = spec(
        r#"{"layout":"time=32,worker=22,sequence=3,unit=1s","on_rollback":"borrow",
            "prefill":{"enabled":true,"boost":2}}"#,
    );
    node.alter("orders", &plain, None).await.unwrap();
    let stats = source.stats().prefill.unwrap();
    assert!(stats.tail >= queued && stats.capacity == 32, "{stats:?}");
    for _ in 0..40 {
        if let Ok(id) = source.try_mint() {
            assert!(seen.insert(id));
        }
    }
    // The queue is empty, and IDs have borrowed up to the limit: the error has a retry time.
    let error = loop {
        match source.try_mint() {
            Ok(id) => assert!(seen.insert(id)),
            Err(error) => break error,
        }
        settle().await;
    };
    assert!(matches!(error.retry(), crate::Retry::AfterMs(1..)), "{error:?}");
    node.close().await.unwrap();
    assert!(source.try_mint().is_err());
}

#[tokio::test]
async fn a_queue_without_room_is_not_made_and_its_source_mints() {
    let world = World::new();
    let settings = NodeSettings { prefill_ids_max: 40, ..NodeSettings::default() };
    let node = world.open_with(settings).await;
    let prefilled = |boost: u32| {
        spec(&format!(
            r#"{{"layout":"time=32,worker=22,sequence=3,unit=1s","prefill":{{"enabled":true,"boost":{boost}}}}}"#
        ))
    };
    for (name, boost) in [("one", 2), ("other", 1), ("third", 0)] {
        node.define(name, &prefilled(boost)).await.unwrap();
    }
    let open = async |name| {
        let (source, ()) = tokio::join!(node.source(name), world.pass(10_000));
        source.unwrap()
    };
    let capacity = |source: &Source| source.stats().prefill.map(|queue| queue.capacity);
    let (one, other, third) = (open("one").await, open("other").await, open("third").await);
    assert_eq!([&one, &other, &third].map(capacity), [Some(32), None, Some(8)]);
    other.try_mint().unwrap();
    // A queue of another size replaces the earlier one, and freed room is available to other
    // queues.
    node.alter("one", &prefilled(1), None).await.unwrap();
    assert_eq!(capacity(&one), Some(16));
    node.alter("other", &prefilled(2), None).await.unwrap();
    assert_eq!(capacity(&other), None);
    node.alter("other", &prefilled(1), None).await.unwrap();
    assert_eq!(capacity(&other), Some(16));
    node.delete("one").await.unwrap();
    node.limit_prefill(24);
    node.alter("third", &prefilled(1), None).await.unwrap();
    assert_eq!([&one, &third].map(capacity), [None, None]);
    third.try_mint().unwrap();
    node.alter("third", &prefilled(0), None).await.unwrap();
    assert_eq!(capacity(&third), Some(8));
}

/// Hooks of an application for an empty queue, and for one without room, as Baidu's handlers.
#[tokio::test]
async fn prefilled_source_calls_its_hooks() {
    let world = World::new();
    let node = world.open().await;
    let prefilled = |boost: u32| {
        spec(&format!(
            r#"{{"layout":"time=32,worker=22,sequence=3,unit=1s","prefill":{{"enabled":true,"boost":{boost}}}}}"#
        ))
    };
    node.define("orders", &prefilled(1)).await.unwrap();
    node.define("plain", &SourceSpec::default()).await.unwrap();
    let (source, ()) = tokio::join!(node.source("orders"), world.pass(10_000));
    let source = source.unwrap();
    let rejected = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&rejected);
    let hooks = PrefillHooks {
        on_full: Some(Arc::new(move |id| sink.lock().unwrap().push(id))),
        on_empty: Some(Arc::new(|| Some(99))),
    };
    source.set_prefill_hooks(hooks.clone()).unwrap();
    let prefetched: Vec<_> =
        std::iter::from_fn(|| source.try_mint().ok().filter(|&id| id != 99)).take(100).collect();
    assert_eq!(prefetched.len(), 16, "then it is dry, and the hook is asked");
    assert_eq!(source.try_mint().unwrap(), 99);
    world.pass(10_000).await;
    node.alter("orders", &prefilled(0), None).await.unwrap();
    assert_eq!(rejected.lock().unwrap().len(), 8, "a smaller queue has no room for half of them");
    let refused = node.source("plain").await.unwrap().set_prefill_hooks(hooks).unwrap_err();
    assert_eq!(refused.kind().code(), "invalid");
}

#[tokio::test]
async fn a_worker_number_that_no_source_needs_any_more_is_given_back() {
    let world = World::new();
    let node = world.open().await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let source = node.source("orders").await.unwrap();
    let mut seen = HashSet::new();
    for policy in ["borrow", "hold", "borrow", "hold"] {
        let altered = spec(&format!(r#"{{"on_rollback":"{policy}"}}"#));
        node.alter("orders", &altered, None).await.unwrap();
        world.pass(1_000).await;
        for _ in 0..100 {
            assert!(seen.insert(source.try_mint().unwrap()));
        }
        let live = node.workers().await.unwrap().iter().filter(|slot| slot.live).count();
        assert_eq!(live, 1, "{policy}: a source that borrows has a number of its own");
        assert!(node.readiness().ready, "{:?}", node.readiness());
    }
}

#[tokio::test]
async fn spent_layout_ends_readiness() {
    let world = World::new();
    let node = world.open().await;
    // 2^20 ms, of which about 8 s are left.
    let epoch = START.get() - 1_040_000;
    let keys = format!(
        r#"{{"layout":"time=20,worker=10,sequence=12,unit=1ms,epoch={epoch}","short_life":true}}"#
    );
    node.define("short", &spec(&keys)).await.unwrap();
    let opening = tokio::spawn({
        let node = node.clone();
        async move { node.source("short").await.map(drop) }
    });
    while !opening.is_finished() {
        world.pass(100).await;
    }
    opening.await.unwrap().unwrap();
    let readiness = node.readiness();
    assert!(readiness.ready, "{readiness:?}");
    world.pass(9_000).await;
    let readiness = node.readiness();
    assert!(!readiness.ready, "{readiness:?}");
    assert!(readiness.summary().contains("source short ended at 2026-06-01T"));
    switch(&node, "short", false).await;
    let reasons = node.readiness().summary();
    assert!(!reasons.contains("ended at"), "{reasons}");
}
