//! A rolled back store with a history that has everything that was seen: an earlier process has
//! continued to count, or only a row was set back. The ends of its sources alone show the
//! rollback.

use tokio::sync::Notify;

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, joined};
use super::*;
use crate::journal::{DataDir, inspect};
use crate::model::catalog::NewDefinition;
use crate::model::segment::{GiveBack, Reserve};
use crate::node::recovery::RecoveryRequest;

/// Interval at which a node reads the catalog, and the longest time between two of its polls.
const CATALOG_MS: u64 = 3_400 + 1_000;

async fn open(world: &World, store: Arc<dyn Store>, dir: &Scratch) -> Node {
    let settings = NodeSettings {
        data_dir: Some(dir.0.clone()),
        waits_for_recovery: true,
        ..NodeSettings::default()
    };
    Node::open(store, settings, world.platform()).await.unwrap()
}

/// Returns a definition that only raises the count of writes.
pub(super) fn another(number: u32) -> NewDefinition {
    NewDefinition {
        name: format!("another-{number}"),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    }
}

/// The numbers were this process's in the lost state, and may be any process's in the recovered
/// one. A history without a sign of the loss is no reason to keep them.
#[tokio::test]
async fn journal_tails_are_unused_when_an_end_shows_a_rollback() {
    let (world, dir) = (World::new(), Scratch::new());
    let other = world.handle();
    other.define(&another(0)).await.unwrap();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let node = open(&world, Arc::new(store), &dir).await;
    joined(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 50).await.last(), Some(&50));
    // The rest cannot go back to the store, which does not show whether it is the newest.
    *lacks.lock().unwrap() = Some("get");
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let tails = || inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record.tails;
    let kept: Vec<_> = tails().iter().map(|tail| (tail.first, tail.last)).collect();
    assert_eq!(kept, [(51, 100)]);

    world.store.restore(backup);
    let definition_version = other.get("bills").await.unwrap().version;
    let reserve = Reserve { source: "bills".into(), length: 60, definition_version, within: None };
    let taken = other.reserve(&reserve).await.unwrap();
    assert_eq!((taken.first, taken.last), (1, 60));
    for number in 1..=50 {
        other.define(&another(number)).await.unwrap();
    }

    let node = open(&world, world.handle(), &dir).await;
    let doubt = in_time(&world, async {
        loop {
            let standing = world.handle().standing().await.unwrap();
            if standing.missing().count() == 0
                && let Some(doubt) = standing.doubt
            {
                return doubt;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(doubt.evidence.contains(r#"next number of source "bills""#), "{doubt:?}");
    in_time(&world, node.noticed_doubt()).await.unwrap();
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let forward = recovery.plan(&RecoveryRequest::default()).unwrap();
    node.recover(&forward).await.unwrap();
    joined(&world, &node).await;
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    assert!(tails().is_empty(), "{:?}", tails());
    let node = open(&world, world.handle(), &dir).await;
    joined(&world, &node).await;
    assert_eq!(drawn(&world, &node, 1).await, [101]);
    in_time(&world, node.close()).await.unwrap();
}

/// Makes the store forget that the newest numbers of `bills` were issued.
async fn set_back(world: &World) {
    let row = world.handle().get("bills").await.unwrap().segment;
    let (first, last) = (row.floor.get(), row.mark.get() - 1);
    let back = GiveBack { source: "bills".into(), first, last, version: row.version };
    world.handle().give_back(&back).await.unwrap();
}

/// Only a row was set back by hand, so the history has everything, and no caller requests a number.
/// The source may not even be open.
#[tokio::test]
async fn source_set_back_under_an_idle_node_is_noticed() {
    for is_open in [true, false] {
        let (world, dir) = (World::new(), Scratch::new());
        let mut node = open(&world, world.handle(), &dir).await;
        joined(&world, &node).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
        assert_eq!(drawn(&world, &node, 3).await, [1, 2, 3]);
        if !is_open {
            // Killed: the journal alone knows the numbers.
            drop(node);
            settle().await;
            node = open(&world, world.handle(), &dir).await;
            joined(&world, &node).await;
        }
        world.pass(3 * CATALOG_MS).await;
        assert!(node.readiness().ready, "{:?}", node.readiness());
        set_back(&world).await;
        world.pass(CATALOG_MS).await;
        let readiness = node.readiness();
        let named = r#"next number of source "bills" seen by the journal"#;
        assert!(!readiness.ready && readiness.summary().contains(named), "{readiness:?}");
        let doubt = world.handle().standing().await.unwrap().doubt.unwrap();
        assert!(doubt.evidence.starts_with(named), "{doubt:?}");
        assert_eq!((doubt.seen, doubt.found), (101, 1));
        // The numbers that the source still had prefetched may be another process's by now.
        let source = in_time(&world, node.source("bills")).await.unwrap();
        assert!(source.try_mint().is_err());
    }
}

/// The list was read before numbers were reserved, and arrives after that.
#[tokio::test]
async fn numbers_reserved_during_a_catalog_read_raise_no_doubt() {
    let (world, dir) = (World::new(), Scratch::new());
    let store = world.faulty();
    let late = Arc::clone(&store.faults.late);
    let node = open(&world, Arc::new(store), &dir).await;
    joined(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    drawn(&world, &node, 3).await;
    let resume = Arc::new(Notify::new());
    *late.lock().unwrap() = Some(("list", Arc::clone(&resume)));
    in_time(&world, async {
        while late.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drawn(&world, &node, 300).await;
    resume.notify_one();
    world.pass(3 * CATALOG_MS).await;
    assert!(node.readiness().ready, "{:?}", node.readiness());
    assert_eq!(world.handle().standing().await.unwrap().doubt, None);
    in_time(&world, node.close()).await.unwrap();
}
