//! Statistics of a node about itself.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use super::clocks::TimeServer;
use super::disk::Failing;
use super::segments::Tap;
use super::*;
use crate::error::Verb;
use crate::sources::{DisguiseKeys, Keyrings};
use crate::stats::NodeStats;
use crate::store::upstream::Upstream;

pub(super) fn calls(stats: &NodeStats, verb: &str) -> (u64, u64) {
    let of_verb = stats.store_calls.iter().find(|calls| calls.verb == verb);
    let unavailable = |errors: &[(&str, u64)]| {
        errors.iter().find(|(code, _)| *code == "unavailable").map_or(0, |(_, count)| *count)
    };
    of_verb.map_or((0, 0), |calls| (calls.took.count(), unavailable(&calls.errors)))
}

#[tokio::test]
async fn node_stats_show_its_state() {
    let world = World::new();
    let time_reference = TimeServer(Some(700), Arc::clone(&world.clock));
    let settings =
        NodeSettings { time_reference: Some(Arc::new(time_reference)), ..NodeSettings::default() };
    let node = world.open_with(settings).await;
    assert!(!node.stats().joined, "the driver has not run yet");
    node.define("orders", &SourceSpec::default()).await.unwrap();
    node.define("bills", &spec(r#"{"kind":"segment"}"#)).await.unwrap();
    let orders = node.source("orders").await.unwrap();
    orders.try_mint().unwrap();
    world.pass(100).await;

    let stats = node.stats();
    assert!(stats.joined);
    assert_eq!(stats.clock_offset_ms, Some(-700));
    assert_eq!((stats.rejoins, stats.journal_errors, stats.sections), (0, 0, 0));
    assert_eq!((calls(&stats, "join"), calls(&stats, "claim")), ((1, 0), (1, 0)));
    assert!(stats.presence_ms > 9_000 && stats.presence_ms <= 10_000, "{}", stats.presence_ms);
    assert_eq!(node.running().iter().map(Source::name).collect::<Vec<_>>(), ["orders"]);
    let left_ms = orders.stats().window_ms.unwrap();
    assert!((29_000..=30_000).contains(&left_ms), "{left_ms}");
    assert_eq!(orders.stats().lead_ms, Some(0));

    // The driver does not run: the presence and the window shrink by themselves.
    world.clock.advance_ms(4_000);
    world.timer.advance_ms(4_000);
    assert_eq!(orders.stats().window_ms, Some(left_ms - 4_000));
    assert_eq!(node.stats().presence_ms, stats.presence_ms - 4_000);

    world.clock.step_back_ms(300);
    orders.try_mint().unwrap();
    let held = |stats: &NodeStats| {
        let steps = stats.clock_steps.iter().filter(|step| step.count > 0);
        steps.map(|step| step.to_owned()).collect::<Vec<_>>()
    };
    let steps = held(&node.stats());
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert_eq!((steps[0].policy, steps[0].count), ("hold", 1));
    assert!(node.stats().clock_steps.len() > 1, "with zeros for those that may still come");

    switch(&node, "orders", false).await;
    assert_eq!(orders.stats().window_ms, None, "nothing runs short of what is switched off");
    node.close().await.unwrap();
}

#[tokio::test]
async fn a_right_that_is_lost_is_counted() {
    let world = World::new();
    let node = world.open().await;
    node.define("orders", &SourceSpec::default()).await.unwrap();
    let orders = node.source("orders").await.unwrap();
    let first = node.incarnation().unwrap();
    // An operator makes the store forget the node.
    world.handle().leave(first, START).await.unwrap();
    for _ in 0..200 {
        world.pass(100).await;
        let _ = orders.try_mint();
        if node.incarnation().is_some_and(|now| now != first) {
            break;
        }
    }
    let stats = node.stats();
    assert_eq!((stats.rejoins, stats.joined, calls(&stats, "join")), (1, true, (2, 0)));
    node.close().await.unwrap();
}

/// Several parts of the node call these verbs, for different purposes.
#[tokio::test]
async fn each_verb_is_counted_under_one_label() {
    let world = World::new();
    let key = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    let keyrings = Keyrings::from([(1, DisguiseKeys::new(key))]);
    let node = world.open_with(NodeSettings { keyrings, ..NodeSettings::default() }).await;
    world.pass(100).await;
    let counts = || {
        let stats = node.stats();
        for calls in &stats.store_calls {
            assert!(Verb::ALL.iter().any(|verb| verb.label() == calls.verb), "{}", calls.verb);
        }
        ["members", "list", "define", "set_state", "get"].map(|verb| calls(&stats, verb).0)
    };
    let [members, list, ..] = counts();
    node.others().await.unwrap();
    assert_eq!(counts()[0], members + 1);
    // To define this source, the node also reads the catalog.
    node.define("secret", &spec(r#"{"kind":"segment","disguise":{"mode":"full"}}"#)).await.unwrap();
    assert_eq!(counts()[..3], [members + 1, list + 1, 1]);
    node.definition("secret").await.unwrap();
    node.delete("secret").await.unwrap();
    assert_eq!(counts()[3..], [1, 1]);
    // Pools of a store that the caller names.
    let [_, list, ..] = counts();
    node.permitted_pools(node.store().as_ref()).await.unwrap();
    node.defined_room(node.store().as_ref()).await.unwrap();
    assert_eq!(counts()[1], list + 2);
    node.close().await.unwrap();
}

/// The node does not count an outage of another system's database as one of the store.
#[tokio::test]
async fn hanging_upstream_is_no_error_of_the_store() {
    let world = World::new();
    let tap = Tap::open();
    tap.flows.send_replace(false);
    let upstreams = [("old".into(), Arc::clone(&tap) as Arc<dyn Upstream>)].into();
    let node = world.open_with(NodeSettings { upstreams, ..NodeSettings::default() }).await;
    node.define("bills", &spec(r#"{"kind":"segment","upstream":"old:bills"}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    let minted = source.mint(1, None, 8_000);
    tokio::pin!(minted);
    let error = loop {
        tokio::select! {
            biased;
            result = &mut minted => break result.unwrap_err(),
            () = world.pass(100) => {}
        }
    };
    assert_eq!(error.kind().code(), "unavailable");
    assert!(error.to_string().contains("upstream \"old\""), "{error}");
    // Callers give up before the call itself does.
    for within_ms in [0, 300] {
        let minted = source.mint(1, None, within_ms);
        let reserved = source.reserve_range(5, within_ms);
        let (minted, reserved) = passing(&world, async { tokio::join!(minted, reserved) }).await;
        for error in [minted.unwrap_err(), reserved.unwrap_err()] {
            assert_eq!(error.kind().code(), "unavailable");
            assert!(error.to_string().contains("upstream \"old\""), "{error}");
        }
    }
    let stats = node.stats();
    let verbs: Vec<_> = stats.store_calls.iter().map(|calls| calls.verb).collect();
    assert!(!verbs.contains(&"draw"), "{verbs:?}");
    let errors: u64 = stats.store_calls.iter().flat_map(|calls| &calls.errors).map(|it| it.1).sum();
    assert_eq!(errors, 0, "{stats:?}");
}

/// Awaits a call while time passes.
async fn passing<T>(world: &World, call: impl Future<Output = T>) -> T {
    let mut call = std::pin::pin!(call);
    loop {
        tokio::select! {
            biased;
            result = &mut call => return result,
            () = world.pass(100) => {}
        }
    }
}

/// A caller that gives up before the store call does gets the error of an outage.
#[tokio::test]
async fn first_fetch_from_a_silent_store_is_unavailable() {
    let world = World::new();
    let (store, held) = (world.faulty(), Arc::new(tokio::sync::Notify::new()));
    let holds = Arc::clone(&store.faults.held);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    node.define("bills", &spec(r#"{"kind":"segment"}"#)).await.unwrap();
    let source = node.source("bills").await.unwrap();
    *holds.lock().unwrap() = Some(("reserve", Arc::clone(&held)));
    let error = passing(&world, source.mint(1, None, 300)).await.unwrap_err();
    assert_eq!(error.kind().code(), "unavailable", "{error}");
    assert!(error.to_string().contains("within 300 ms"), "{error}");
    held.notify_one();
    passing(&world, source.mint(1, None, 5_000)).await.unwrap();
}

/// Folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_is_counted() {
    let world = World::new();
    let number = random::number().unwrap();
    let dir = Scratch(std::env::temp_dir().join(format!("snowmint-stats-{number:x}")));
    let disk = Failing::never();
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let platform = Platform { disk: Arc::new(disk.clone()), ..world.platform() };
    let node = Node::open(world.handle(), settings, platform).await.unwrap();
    node.define("orders", &SourceSpec::default()).await.unwrap();
    node.source("orders").await.unwrap();
    world.pass(1_000).await;
    assert_eq!(node.stats().journal_errors, 0);
    disk.writes_left.store(0, Ordering::SeqCst);
    for _ in 0..100 {
        world.pass(100).await;
        if node.stats().journal_errors > 1 {
            break;
        }
    }
    assert!(node.stats().journal_errors > 1);
    assert!(!node.readiness().ready);
    disk.writes_left.store(u64::MAX, Ordering::SeqCst);
    for _ in 0..100 {
        world.pass(100).await;
        if node.readiness().ready {
            break;
        }
    }
    assert!(node.readiness().ready);
    node.close().await.unwrap();
}
