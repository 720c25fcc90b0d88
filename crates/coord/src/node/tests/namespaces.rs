//! Effect of a recovery of one namespace on the others of a store, where they share its history.

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, joined};
use super::*;
use crate::node::recovery::RecoveryRequest;

const NAMES: [&str; 2] = ["default", "other"];

async fn open(world: &World, namespace: &str, dir: Option<&Scratch>) -> Node {
    let settings = NodeSettings {
        data_dir: dir.map(|dir| dir.0.clone()),
        waits_for_recovery: true,
        ..NodeSettings::default()
    };
    let store = Arc::new(world.store.handle(namespace).unwrap());
    let node = Node::open(store, settings, world.platform()).await.unwrap();
    joined(world, &node).await;
    node
}

/// Checks that a node has joined again, as another member, and mints numbers that were not minted
/// before.
async fn continues(world: &World, node: &Node, seen: &mut HashSet<u64>) {
    joined(world, node).await;
    for number in drawn(world, node, 50).await {
        assert!(seen.insert(number), "{number} came twice");
    }
}

#[tokio::test]
async fn recovery_of_another_namespace_ends_no_minting() {
    for journalled in [false, true] {
        let (world, dir) = (World::new(), Scratch::new());
        let node = open(&world, NAMES[0], Some(&dir).filter(|_| journalled)).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
        let mut seen = HashSet::new();
        for _ in 0..3 {
            continues(&world, &node, &mut seen).await;
            let before = node.incarnation();
            let other = world.store.handle(NAMES[1]).unwrap();
            other.fast_forward(&FastForward::default()).await.unwrap();
            // Its numbers may belong to a lost history.
            in_time(&world, async {
                while node.incarnation() == before {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        continues(&world, &node, &mut seen).await;
        in_time(&world, node.close()).await.unwrap();
    }
}

#[tokio::test]
async fn namespaces_of_a_rolled_back_store_recover_one_by_one() {
    let (world, dirs) = (World::new(), [Scratch::new(), Scratch::new()]);
    let mut nodes = Vec::new();
    for (namespace, dir) in NAMES.iter().zip(&dirs) {
        let node = open(&world, namespace, Some(dir)).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
        nodes.push((node, HashSet::new()));
    }
    let backup = world.store.backup();
    for (node, seen) in &mut nodes {
        continues(&world, node, seen).await;
    }
    world.store.restore(backup);
    for (node, _) in &nodes {
        in_time(&world, node.noticed_doubt()).await.unwrap();
    }
    for recovered in 0..nodes.len() {
        let (node, seen) = &mut nodes[recovered];
        let recovery = in_time(&world, async {
            loop {
                let recovery = node.recovery(&BTreeMap::new(), &[]).await.unwrap();
                if recovery.unsaid(&RecoveryRequest::default()).is_none()
                    && recovery.doubt().is_some()
                {
                    return recovery;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        let forward = recovery.plan(&RecoveryRequest::default()).unwrap();
        node.recover(&forward).await.unwrap();
        continues(&world, node, seen).await;
        // The other namespace is still in doubt.
        for (waits, _) in &nodes[recovered + 1..] {
            world.pass(5_000).await;
            assert_eq!(waits.incarnation(), None);
        }
    }
    for (node, seen) in &mut nodes {
        world.pass(5_000).await;
        continues(&world, node, seen).await;
        in_time(&world, node.close()).await.unwrap();
    }
}
