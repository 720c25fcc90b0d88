//! A store that becomes another one: once any call has found this, nothing is minted, prefetched or
//! new, until the node has joined again.

use super::disk::Failing;
use super::faulty::{Faults, Meanwhile};
use super::kills::{Scratch, in_time};
use super::*;
use crate::model::catalog::NewDefinition;
use crate::model::history::Recalled;
use crate::model::segment::Reserve;
use crate::sources::NumberStats;
use crate::store::memory::MemoryBackup;

pub(super) const FIXED: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;
const ONE: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#;
const BY_STORE: &str = r#"{"layout":"redis","mint":"store","worker":77}"#;
const PREFILLED: &str = r#"{"prefill":{"enabled":true,"boost":0},"on_rollback":"borrow"}"#;
const GLOBAL: &str = r#"{"order":"global","layout":"twitter"}"#;

/// Returns a node with a source of each kind that depends on the store, and the switch that makes
/// its store another.
pub(super) async fn with_each_kind(
    world: &World,
) -> (Node, Vec<Source>, Arc<Mutex<Vec<&'static str>>>) {
    let store = world.faulty();
    let astray = Arc::clone(&store.faults.astray);
    let (node, sources) = each_kind_on(world, store).await;
    (node, sources, astray)
}

/// Returns the same, on a store that fails in another way.
pub(super) async fn each_kind_on(world: &World, store: Faulty) -> (Node, Vec<Source>) {
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    let mut sources = Vec::new();
    for (name, json) in [
        ("segment", FIXED),
        ("one", ONE),
        ("by-store", BY_STORE),
        ("snowflake", "{}"),
        ("prefilled", PREFILLED),
        ("global", GLOBAL),
    ] {
        node.define(name, &spec(json)).await.unwrap();
        sources.push(in_time(world, node.source(name)).await.unwrap());
    }
    (node, sources)
}

pub(super) async fn some(world: &World, source: &Source) -> Result<Vec<u64>> {
    let minted = in_time(world, source.mint(3, None, 2_000)).await;
    minted.map(numbers)
}

/// Holds for any verb that finds it first, also where it is the only one, and for a store that is
/// set to lose what it acknowledged.
#[tokio::test]
async fn exchanged_store_stops_minting_until_rejoin() {
    for (first, astray_verbs) in
        [("reserve", &[Faults::EVERY_VERB][..]), ("renew", &["renew", "join"])]
    {
        let world = World::new();
        let (node, sources, astray) = with_each_kind(&world).await;
        let mut seen = HashSet::new();
        for source in &sources {
            let minted = some(&world, source).await.unwrap();
            assert!(minted.into_iter().all(|id| seen.insert((source.name().to_owned(), id))));
        }
        assert!(sources[0].try_mint().is_ok_and(|id| seen.insert(("segment".into(), id))));
        *astray.lock().unwrap() = astray_verbs.to_vec();
        match first {
            "reserve" => {
                let refused = some(&world, &sources[1]).await.unwrap_err();
                assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
            }
            _ => world.pass(4_000).await,
        }
        settle().await;
        for source in &sources {
            let name = source.name();
            assert!(source.try_mint().is_err(), "{first}: {name}, prefetched");
            let refused = some(&world, source).await;
            assert!(refused.is_err(), "{first}: {name} gave {refused:?}");
        }
        assert!(!node.readiness().ready, "{first}");
        let lost = sources[0].stats().numbers.unwrap().lost;
        assert!(lost >= 96, "{first}: what was prefetched is counted as lost, not {lost}");

        astray.lock().unwrap().clear();
        world.pass(5_000).await;
        for source in &sources {
            let name = source.name();
            let minted =
                some(&world, source).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(minted.into_iter().all(|id| seen.insert((name.to_owned(), id))), "{name}");
        }
        assert!(node.readiness().ready, "{first}: {:?}", node.readiness());
    }
}

/// A setting can be changed while a process runs.
#[tokio::test]
async fn unsafe_store_settings_stop_minting() {
    let world = World::new();
    let store = world.faulty();
    let losing = Arc::clone(&store.faults.losing);
    let (node, sources) = each_kind_on(&world, store).await;
    let mut seen = HashSet::new();
    for source in &sources {
        let minted = some(&world, source).await.unwrap();
        assert!(minted.into_iter().all(|id| seen.insert((source.name().to_owned(), id))));
    }
    *losing.lock().unwrap() = vec!["renew", "join"];
    world.pass(5_000).await;
    let summary = node.readiness().summary();
    assert!(summary.contains(Faults::LOSING), "{summary}");
    for source in &sources {
        let name = source.name();
        assert!(source.try_mint().is_err(), "{name}, prefetched");
        let refused = some(&world, source).await;
        assert!(refused.is_err(), "{name} gave {refused:?}");
    }

    losing.lock().unwrap().clear();
    world.pass(5_000).await;
    for source in &sources {
        let name = source.name();
        let minted = some(&world, source).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(minted.into_iter().all(|id| seen.insert((name.to_owned(), id))), "{name}");
    }
    assert!(node.readiness().ready, "{:?}", node.readiness());
}

fn with_journal(dir: &Scratch) -> NodeSettings {
    NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() }
}

async fn bills(world: &World, node: &Node) -> Source {
    in_time(world, node.source("bills")).await.unwrap()
}

/// Returns a node that has written more than a copy of its store holds, the copy, and a copy of the
/// present store.
async fn ahead_of_a_copy(world: &World) -> (Node, MemoryBackup, MemoryBackup) {
    let node = world.open().await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = bills(world, &node).await;
    some(world, &source).await.unwrap();
    in_time(world, ready(&node)).await;
    let copy = world.store.backup();
    numbers(in_time(world, source.mint(150, None, 5_000)).await.unwrap());
    settle().await;
    (node, copy, world.store.backup())
}

pub(super) async fn ready(node: &Node) {
    while !node.readiness().ready || node.incarnation().is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn process_that_read_a_replica_continues_after_failback() {
    let world = World::new();
    let (node, replica, first) = ahead_of_a_copy(&world).await;
    world.store.take_over(replica);
    assert!(node.workers().await.is_err(), "it reads");
    world.pass(10_000).await;
    assert!(!node.readiness().ready);
    world.store.restore(first);
    in_time(&world, ready(&node)).await;
    some(&world, &bills(&world, &node).await).await.unwrap();
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
}

/// A replica looks like a store rollback where no server reports its identity.
#[tokio::test]
async fn doubt_from_a_replica_is_not_written_to_the_first() {
    let world = World::new();
    let store = world.faulty();
    let meanwhile = Arc::clone(&store.faults.meanwhile);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = bills(&world, &node).await;
    in_time(&world, ready(&node)).await;
    let replica = world.store.backup();
    some(&world, &source).await.unwrap();
    let (first, back) = (world.store.backup(), world.store.handle("default").unwrap());
    let fail_back = Meanwhile(Box::new(move || back.restore(first)));
    *meanwhile.lock().unwrap() = Some(("doubt", fail_back));
    world.store.restore(replica);
    in_time(&world, async {
        while meanwhile.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    settle().await;
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
}

/// Its first request to the store is lost, and the next one reaches another store.
#[tokio::test]
async fn journal_rejects_another_store() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = Node::open(world.handle(), with_journal(&dir), world.platform()).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = bills(&world, &node).await;
    some(&world, &source).await.unwrap();
    in_time(&world, node.close()).await.unwrap();
    drop((node, source));
    settle().await;

    let own = world.store.backup();
    let other = MemoryStore::new("default").unwrap();
    let there = Node::open(
        Arc::new(other.handle("default").unwrap()),
        NodeSettings::default(),
        world.platform(),
    );
    there.await.unwrap().define("bills", &spec(FIXED)).await.unwrap();
    world.store.restore(other.backup());
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    *lacks.lock().unwrap() = Some("recall");
    let node = Node::open(Arc::new(store), with_journal(&dir), world.platform()).await.unwrap();
    let refused = node.workers().await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    *lacks.lock().unwrap() = None;
    world.pass(1_000).await;
    assert!(!node.readiness().ready);
    world.store.restore(own);
    in_time(&world, ready(&node)).await;
    some(&world, &bills(&world, &node).await).await.unwrap();
}

/// Unused numbers went to the store again after the copy was made.
#[tokio::test]
async fn end_in_a_restored_journal_raises_no_doubt() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = Node::open(world.handle(), with_journal(&dir), world.platform()).await.unwrap();
    node.define("bills", &spec(FIXED)).await.unwrap();
    let source = bills(&world, &node).await;
    assert_eq!(some(&world, &source).await.unwrap(), [1, 2, 3]);
    settle().await;
    let (file, copy) = (dir.0.join("journal"), dir.0.join("copy"));
    std::fs::copy(&file, &copy).unwrap();
    in_time(&world, node.close()).await.unwrap();
    drop((node, source));
    settle().await;
    assert_eq!(
        world.handle().get("bills").await.unwrap().segment.mark.get(),
        4,
        "it is the older state"
    );
    let copied = std::fs::read(&copy).unwrap();
    std::fs::write(&file, copied).unwrap();

    let platform = || Platform { disk: Arc::new(Failing::touched()), ..world.platform() };
    let node = Node::open(world.handle(), with_journal(&dir), platform()).await.unwrap();
    in_time(&world, ready(&node)).await;
    assert_eq!(some(&world, &bills(&world, &node).await).await.unwrap(), [4, 5, 6]);
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let node = Node::open(world.handle(), with_journal(&dir), world.platform()).await.unwrap();
    in_time(&world, ready(&node)).await;
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
}

/// Monitoring takes a falling total for a restarted process.
#[tokio::test]
async fn totals_never_fall_when_prefetched_numbers_drop() {
    let world = World::new();
    let (node, sources, astray) = with_each_kind(&world).await;
    let source = &sources[0];
    some(&world, source).await.unwrap();
    let now = || source.stats().numbers.unwrap();
    assert_eq!((now().fetched, now().lost), (100, 0));
    *astray.lock().unwrap() = vec![Faults::EVERY_VERB];
    world.pass(5_000).await;
    let NumberStats { prefetched, fetched, lost, .. } = now();
    assert_eq!((prefetched, fetched - lost), (0, 3), "{:?}", now());
    assert!(fetched >= 100, "{:?}", now());
    astray.lock().unwrap().clear();
    world.pass(5_000).await;
    some(&world, source).await.unwrap();
    let before = now();
    assert!(before.fetched >= fetched + 100 && before.lost >= lost, "{before:?}");
    assert_eq!(before.fetched, before.lost + before.prefetched + 6);

    // The same holds when the source continues per-request.
    node.alter("segment", &spec(ONE), None).await.unwrap();
    some(&world, source).await.unwrap();
    assert!(now().fetched >= before.fetched && now().lost >= before.lost, "{:?}", now());
}

/// A server may carry out a step and then reject the caller, because the server turns out to be
/// another one.
#[tokio::test]
async fn count_of_a_replica_is_not_remembered() {
    let world = World::new();
    let (ours, others) = (world.handle(), world.handle());
    let new = NewDefinition::of("bills", &spec(FIXED)).unwrap();
    let source = ours.define(&new).await.unwrap();
    let (definition_version, length) = (source.version, 10);
    let reserve = Reserve { source: source.name, length, definition_version, within: None };
    ours.reserve(&reserve).await.unwrap();
    let first = world.store.backup();
    for _ in 0..10 {
        others.reserve(&reserve).await.unwrap();
    }
    let counted = world.store.backup();
    let seen = ours.seen().unwrap();
    world.store.take_over(counted);
    ours.list().await.unwrap();
    assert_eq!(ours.recall("the journal", &seen).await.unwrap(), Recalled::Same);
    assert_eq!(ours.seen().unwrap(), seen);
    world.store.restore(first);
    ours.list().await.unwrap();
    ours.reserve(&reserve).await.unwrap();
}
