//! Journals with a worker mark far ahead of the clock, which an operator may leave out of a recovery.

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, only_journal, open};
use super::*;
use crate::journal::{Journal, Record};
use crate::model::fast_forward::FastForward;
use crate::model::history::{Doubt, Evidence};

/// Returns a node that has reported a mark far ahead of its clock to its restored store, and the
/// mark.
async fn with_a_far_mark(world: &World, dir: &Scratch) -> (Node, Mark) {
    let node = open(world, dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    drawn(world, &node, 50).await;
    in_time(world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    // Its clock was five years ahead for a moment.
    let far = Mark::from(START.saturating_add(5 * 365 * 86_400_000));
    let disk = world.platform().disk;
    let opened = Journal::open_in(disk.lock(&dir.0).unwrap(), &disk.machine().unwrap());
    let (mut journal, past) = opened.unwrap();
    journal.write(&Record { mark: far, ..past.unwrap().record }).unwrap();
    drop(journal);
    world.store.restore(backup);

    let (data_dir, waits_for_recovery) = (Some(dir.0.clone()), true);
    let settings = NodeSettings { data_dir, waits_for_recovery, ..NodeSettings::default() };
    let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
    restored::in_doubt(world).await;
    (node, far)
}

/// An operator vouches for the mark, so the node does not reject the store below it, nor does its
/// next process.
#[tokio::test]
async fn node_whose_far_mark_is_left_out_continues() {
    let (world, dir) = (World::new(), Scratch::new());
    let (node, far) = with_a_far_mark(&world, &dir).await;
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let unsaid = recovery.unsaid(&recovery::RecoveryRequest::default()).unwrap();
    let own = only_journal(&world).await;
    assert!(unsaid.contains("--no-ids-ahead") && unsaid.contains(&own), "{unsaid}");
    let mark = Some(recovery.now());
    let request = recovery::RecoveryRequest { mark, no_ids_ahead: true, ..Default::default() };
    assert_eq!(recovery.unsaid(&request), None);
    let forward = recovery.plan(&request).unwrap();
    assert!(forward.marks_at_least < far);
    node.recover(&forward).await.unwrap();
    // It ends before it has seen the recovery.
    drop(node);
    settle().await;
    let node = open(&world, &dir).await;
    // The lost store got the rest back.
    assert_eq!(drawn(&world, &node, 1).await, [51]);
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let (journal, state) = recovery.journals().next().unwrap();
    assert_eq!(journal.far_mark, far.get());
    let text = recovery.state_text(journal, state);
    assert!(!text.contains("worker mark"), "the store is not in doubt: {text}");
    in_time(&world, node.close()).await.unwrap();
}

/// A failover made the report void, so the operator who left the journal out saw no mark of it.
#[tokio::test]
async fn void_report_of_a_far_mark_does_not_count() {
    let (world, dir) = (World::new(), Scratch::new());
    let (node, far) = with_a_far_mark(&world, &dir).await;
    let (store, own) = (world.handle(), only_journal(&world).await);
    let reported = store.standing().await.unwrap();
    assert_eq!(reported.journals[0].far_mark, far.get());
    world.store.take_over(world.store.backup());
    let doubt = Doubt { evidence: "another server".into(), seen: 0, found: 0 };
    store.doubt(&doubt, &Evidence::of_operator(reported.id)).await.unwrap();
    let void = store.standing().await.unwrap();
    assert_eq!((void.journals[0].has_reported, void.journals[0].far_mark), (false, 0));
    let forward = FastForward {
        marks_at_least: Mark::from(START),
        segments: reported
            .known
            .ends
            .iter()
            .map(|(name, end)| (name.clone(), Mark::new(*end)))
            .collect(),
        writes_at_least: reported.known.writes,
        catalog_at_least: reported.known.catalog,
        forget_journals: vec![own],
        ..FastForward::default()
    };
    store.fast_forward(&forward).await.unwrap();
    world.pass(60_000).await;
    assert_eq!(node.incarnation(), None, "it knows of a mark above the store's");
    let standing = store.standing().await.unwrap();
    assert_eq!(standing.doubt, None);
}

/// The store of a recovery that left the mark out is restored, and moved forward without reports.
#[tokio::test]
async fn far_mark_of_an_earlier_recovery_does_not_count() {
    let (world, dir) = (World::new(), Scratch::new());
    let (node, far) = with_a_far_mark(&world, &dir).await;
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let mark = Some(recovery.now());
    let request = recovery::RecoveryRequest { mark, no_ids_ahead: true, ..Default::default() };
    node.recover(&recovery.plan(&request).unwrap()).await.unwrap();
    drop(node);
    settle().await;
    let store = world.handle();
    let kept = || async { store.standing().await.unwrap().journals[0].far_mark };
    assert_eq!(kept().await, far.get());
    let raised = FastForward { values_only: true, ..FastForward::default() };
    store.fast_forward(&raised).await.unwrap();
    assert_eq!(kept().await, far.get(), "that was no recovery");
    store.fast_forward(&FastForward { values_only: false, ..raised }).await.unwrap();
    assert_eq!(kept().await, 0);
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let opened = Node::open(world.handle(), settings, world.platform()).await;
    assert_eq!(opened.unwrap_err().kind().code(), "store_rolled_back");
}
