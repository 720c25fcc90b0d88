//! Journals that a recovery waits for.

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, joined};
use super::*;
use crate::model::history::Standing;
use crate::node::recovery::{JournalState, RecoveryRequest};

/// Opens a server of this name, with a journal of its own.
async fn open(world: &World, dir: &Scratch, owner: &str) -> Node {
    let settings = NodeSettings {
        owner: owner.into(),
        data_dir: Some(dir.0.clone()),
        waits_for_recovery: true,
        ..NodeSettings::default()
    };
    Node::open(world.handle(), settings, world.platform()).await.unwrap()
}

/// Returns the store's standing, once this many journals have reported.
async fn once_reported(world: &World, count: usize) -> Standing {
    in_time(world, async {
        loop {
            let standing = world.handle().standing().await.unwrap();
            if standing.journals.iter().filter(|journal| journal.has_reported).count() >= count {
                return standing;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// The restored store does not know of it: the other journals do.
#[tokio::test]
async fn a_journal_that_joined_after_the_backup_is_missed() {
    let (world, dirs) = (World::new(), [Scratch::new(), Scratch::new(), Scratch::new()]);
    let one = open(&world, &dirs[0], "one").await;
    let two = open(&world, &dirs[1], "two").await;
    for node in [&one, &two] {
        joined(&world, node).await;
    }
    one.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    let three = open(&world, &dirs[2], "three").await;
    joined(&world, &three).await;
    let mut seen: HashSet<_> = drawn(&world, &three, 50).await.into_iter().collect();
    // Several renewals, by which the other nodes learn of the new start and read the journals.
    world.pass(30_000).await;
    drop(three);
    settle().await;

    world.store.restore(backup);
    let standing = once_reported(&world, 2).await;
    let missing: Vec<_> = standing.missing().map(|journal| journal.owner.as_str()).collect();
    assert_eq!(missing, ["three"], "{standing:?}");
    let recovery = in_time(&world, one.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let states: Vec<_> =
        recovery.journals().map(|(journal, state)| (journal.owner.as_str(), state)).collect();
    assert!(states.contains(&("three", JournalState::HeardOf)), "{states:?}");
    let unsaid = recovery.unsaid(&RecoveryRequest::default()).unwrap();
    assert!(unsaid.contains("of three on "), "{unsaid}");

    // Only this process knows what it has taken.
    let three = open(&world, &dirs[2], "three").await;
    once_reported(&world, 3).await;
    in_time(&world, one.noticed_doubt()).await.unwrap();
    let recovery = in_time(&world, one.recovery(&BTreeMap::new(), &[])).await.unwrap();
    assert_eq!(recovery.unsaid(&RecoveryRequest::default()), None);
    let forward = recovery.plan(&RecoveryRequest::default()).unwrap();
    one.recover(&forward).await.unwrap();
    for node in [&one, &two, &three] {
        joined(&world, node).await;
        for number in drawn(&world, node, 50).await {
            assert!(seen.insert(number), "{number} came twice");
        }
    }
    for node in [one, two, three] {
        in_time(&world, node.close()).await.unwrap();
    }
}
