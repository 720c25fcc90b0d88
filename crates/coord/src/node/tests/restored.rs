//! Store that was restored to a state before changes of its definitions, and recovered.

use std::collections::HashSet;

use super::kills::{Scratch, in_time};
use super::recovered::{FIXED, drawn, for_program, joined, taken};
use super::*;
use crate::journal::{DataDir, inspect};
use crate::model::segment::Reserve;
use crate::node::recovery::RecoveryRequest;

pub(super) fn settings(dir: Option<&Scratch>) -> NodeSettings {
    let data_dir = dir.map(|dir| dir.0.clone());
    NodeSettings { data_dir, waits_for_recovery: true, ..NodeSettings::default() }
}

pub(super) async fn open(world: &World, dir: Option<&Scratch>) -> Node {
    let node = Node::open(world.handle(), settings(dir), world.platform()).await.unwrap();
    joined(world, &node).await;
    node
}

/// Stripe of deployment 5 of 16.
const FIVE_OF_16: NewStripe = NewStripe { offset: 5, increment: 16, first: None, if_version: None };
const TWO_OF_16: NewStripe = NewStripe { offset: 2, ..FIVE_OF_16 };

pub(super) async fn in_doubt(world: &World) {
    in_time(world, async {
        while world.handle().standing().await.unwrap().doubt.is_none()
            || world.handle().standing().await.unwrap().known.writes == 0
            || world.handle().standing().await.unwrap().missing().count() > 0
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Recovers the store through this node, by the reports.
pub(super) async fn recover(world: &World, node: &Node) {
    in_doubt(world).await;
    // Processes without a journal, for which no recovery waits, have reported too.
    world.pass(5_000).await;
    in_time(world, node.noticed_doubt()).await.unwrap();
    let recovery = in_time(world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    // Without a journal, an operator has to say what was counted.
    let is_journalless = recovery.journals().next().is_none();
    let counters_above = is_journalless.then_some(0);
    let request = RecoveryRequest { counters_above, ..RecoveryRequest::default() };
    assert_eq!(recovery.unsaid(&request), None);
    let forward = recovery.plan(&request).unwrap();
    node.recover(&forward).await.unwrap();
    joined(world, node).await;
}

/// User of the numbers that are handed out after the backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Journalled,
    Journalless,
    Programs,
}

/// Hands out numbers, and returns them as IDs.
async fn handed_out(world: &World, node: &Node, whose: Whose, count: u32) -> Vec<u64> {
    if whose != Whose::Programs {
        return drawn(world, node, count).await;
    }
    let stored = world.handle().get("bills").await.unwrap();
    let stripe = crate::model::stripe::Stripe::of_text(&stored.spec).unwrap();
    let (source, definition_version) = ("bills".into(), stored.version);
    let wanted = Reserve { source, length: count.into(), definition_version, within: None };
    let segment = in_time(world, for_program(node, &wanted)).await.unwrap();
    (segment.first..=segment.last).map(|number| stripe.id_of_any(number).unwrap()).collect()
}

/// Its callers would take it for one that never existed.
#[tokio::test]
async fn source_that_a_store_in_doubt_has_lost_is_not_unknown() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, Some(&dir)).await;
    let backup = world.store.backup();
    node.define("bills", &spec(FIXED)).await.unwrap();
    drawn(&world, &node, 1).await;
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    world.store.restore(backup);
    let node = Node::open(world.handle(), settings(Some(&dir)), world.platform()).await.unwrap();
    in_doubt(&world).await;
    let refused = in_time(&world, node.source("bills")).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    recover(&world, &node).await;
    let unknown = in_time(&world, node.source("bills")).await.unwrap_err();
    assert_eq!(unknown.kind().code(), "not_found", "{unknown}");
}

/// Numbers that were not handed out become, by the recovered store's older stripe, IDs that were.
#[tokio::test]
async fn ids_of_a_stripe_that_was_lost_do_not_come_again() {
    for whose in [Whose::Journalled, Whose::Journalless, Whose::Programs] {
        let (world, dir) = (World::new(), Scratch::new());
        let dir = Some(&dir).filter(|_| whose != Whose::Journalless);
        let node = open(&world, dir).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
        let mut ids = handed_out(&world, &node, whose, 100).await;
        let backup = world.store.backup();
        let lost = node.restripe("bills", FIVE_OF_16).await.unwrap();
        ids.extend(handed_out(&world, &node, whose, 1_000).await);
        let highest = *ids.last().unwrap();
        assert!(highest > 16_000, "{highest}");

        let node = match dir {
            // A process without a journal knows as long as it runs.
            None => {
                world.store.restore(backup);
                node
            }
            Some(dir) => {
                in_time(&world, node.close()).await.unwrap();
                drop(node);
                settle().await;
                world.store.restore(backup);
                Node::open(world.handle(), settings(Some(dir)), world.platform()).await.unwrap()
            }
        };
        recover(&world, &node).await;
        let mut seen: HashSet<_> = ids.into_iter().collect();
        for id in handed_out(&world, &node, whose, 1_200).await {
            assert!(seen.insert(id) && id > highest, "{whose:?}: {id} was handed out before");
        }
        let again = node.restripe("bills", TWO_OF_16).await.unwrap();
        assert!(again.version > lost.version, "{again:?} has the number of what was lost");
        for id in handed_out(&world, &node, whose, 1_200).await {
            assert!(seen.insert(id), "{whose:?}: {id} was handed out before");
        }
        in_time(&world, node.close()).await.unwrap();
    }
}

/// The replica that took over has all numbers that were handed out, or lacks some. The node reports
/// only once an operator has accepted its server.
#[tokio::test]
async fn node_continues_once_the_new_server_is_accepted() {
    for loses in [false, true] {
        let (world, dir) = (World::new(), Scratch::new());
        let node = open(&world, Some(&dir)).await;
        node.define("bills", &spec(FIXED)).await.unwrap();
        let mut replica = world.store.backup();
        let mut seen: HashSet<_> = drawn(&world, &node, 250).await.into_iter().collect();
        if !loses {
            replica = world.store.backup();
        }
        world.store.take_over(replica);
        in_time(&world, async {
            while node.incarnation().is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        world.pass(10_000).await;
        assert_eq!(world.handle().standing().await.unwrap().doubt, None);
        in_time(&world, node.accept_other_server()).await.unwrap();
        recover(&world, &node).await;
        for number in drawn(&world, &node, 250).await {
            assert!(seen.insert(number), "{number} came twice");
        }
        in_time(&world, node.close()).await.unwrap();
    }
}

/// Journals of earlier versions have no IDs, and old journals can be read.
#[tokio::test]
async fn journal_records_ids_that_differ_from_numbers() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, Some(&dir)).await;
    let read = |dir: &Scratch| inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record;
    node.define("bills", &spec(FIXED)).await.unwrap();
    drawn(&world, &node, 100).await;
    node.define("more", &spec(r#"{"kind":"segment","offset":3,"increment":4}"#)).await.unwrap();
    let source = in_time(&world, node.source("more")).await.unwrap();
    let last = numbers(in_time(&world, source.mint(10, None, 5_000)).await.unwrap()).pop().unwrap();
    let version = world.handle().list().await.unwrap().version;
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let record = read(&dir);
    assert_eq!(record.ids.keys().collect::<Vec<_>>(), ["more"]);
    assert!(record.ids["more"] > last, "{record:?}");
    assert_eq!(record.catalog, version);
}

/// Version numbers continue above those that were lost, and a running node's versions are not
/// newer.
#[tokio::test]
async fn definitions_that_were_lost_end_with_their_history() {
    let world = World::new();
    let node = open(&world, None).await;
    let other = open(&world, None).await;
    let json = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;
    node.define("bills", &spec(FIXED)).await.unwrap();
    drawn(&world, &node, 10).await;
    drawn(&world, &other, 10).await;
    let backup = world.store.backup();
    for size in 1..5 {
        let altered = spec(&json.replace("100", &(200 + size).to_string()));
        node.alter("bills", &altered, None).await.unwrap();
    }
    // Defined after the backup; one of them will be another source.
    for name in ["kept", "changed"] {
        node.define(name, &spec(FIXED)).await.unwrap();
        in_time(&world, node.source(name)).await.unwrap();
    }
    let kept = in_time(&world, node.source("kept")).await.unwrap();
    let mut seen: HashSet<_> =
        numbers(in_time(&world, kept.mint(10, None, 5_000)).await.unwrap()).into_iter().collect();
    let lost = node.restripe("bills", FIVE_OF_16).await.unwrap();
    drawn(&world, &node, 10).await;
    drawn(&world, &other, 10).await;

    world.store.restore(backup);
    recover(&world, &node).await;
    joined(&world, &other).await;
    for node in [&node, &other] {
        let ids = drawn(&world, node, 100).await;
        assert!(ids.iter().any(|id| id % 16 != 5), "not by the stripe of the store: {ids:?}");
    }
    assert!(node.definition("bills").await.unwrap().version < lost.version);
    let off = kept.try_mint().unwrap_err();
    assert!(off.to_string().contains("deleted"), "{off}");
    node.define("kept", &spec(FIXED)).await.unwrap();
    for id in numbers(in_time(&world, kept.mint(10, None, 5_000)).await.unwrap()) {
        assert!(seen.insert(id), "{id} came again");
    }
    let changed = other.define("changed", &spec(r#"{"layout":"twitter"}"#)).await.unwrap();
    assert!(changed.version > lost.version);
    // Until the clock has reached the marks.
    world.pass(100_000).await;
    let source = in_time(&world, node.source("changed")).await.unwrap();
    let id = numbers(in_time(&world, source.mint(1, None, 5_000)).await.unwrap())[0];
    assert!(id > 1 << 40, "{id} is none of another source that had the name");
    for node in [node, other] {
        in_time(&world, node.close()).await.unwrap();
    }
}

/// The response may have reached another caller, or none: for example, an embedded client of this
/// process.
#[tokio::test]
async fn a_node_finds_by_itself_that_its_store_was_recovered() {
    let world = World::new();
    let node = open(&world, None).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 50).await.last(), Some(&50));
    let before = node.incarnation();
    world.store.restore(backup);
    let forward = past_bills();
    world.handle().fast_forward(&forward).await.unwrap();
    // Its member is in the restored state, so nothing else would show it.
    let error = node.store().get("bills").await.unwrap_err();
    assert_eq!(error.kind().code(), "store_rolled_back");
    node.store().get("bills").await.expect("only one call fails");
    in_time(&world, async {
        while node.incarnation() == before || node.incarnation().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(drawn(&world, &node, 1).await, [1_000], "and not prefetched ones");
    in_time(&world, node.close()).await.unwrap();
}

/// An error for an embedded client of this process also reaches the process.
#[tokio::test]
async fn rollback_error_of_an_embedded_client_raises_doubt() {
    let world = World::new();
    let node = open(&world, None).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let definition_version = world.handle().get("bills").await.unwrap().version;
    let wanted = Reserve { source: "bills".into(), length: 5, definition_version, within: None };
    let backup = world.store.backup();
    in_time(&world, for_program(&node, &wanted)).await.unwrap();
    world.store.restore(backup);
    let forward = FastForward { writes_at_least: 1_000, ..FastForward::default() };
    world.handle().fast_forward(&forward).await.unwrap();
    let refused = for_program(&node, &wanted).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back");
    let doubted = node.core().ctx.doubts.check().unwrap_err();
    assert_eq!(doubted.kind().code(), "store_rolled_back");
    in_time(&world, async {
        while node.core().ctx.doubts.recoveries() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    in_time(&world, for_program(&node, &wanted)).await.unwrap();
    in_time(&world, node.close()).await.unwrap();
}

/// Its numbers from the lost history are never used, although it mints nothing any more.
#[tokio::test]
async fn node_ending_at_a_recovered_join_keeps_no_lost_state() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, Some(&dir)).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 50).await.last(), Some(&50));
    // The rest cannot go back to the store.
    taken(&world, 100).await;
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let tails = || inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record.tails;
    assert_eq!(tails().len(), 1);

    world.store.restore(backup);
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let node = Node::open(Arc::new(store), settings(Some(&dir)), world.platform()).await.unwrap();
    in_doubt(&world).await;
    let resume = Arc::new(tokio::sync::Notify::new());
    *held.lock().unwrap() = Some(("join", Arc::clone(&resume)));
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let forward = recovery.plan(&RecoveryRequest::default()).unwrap();
    world.handle().fast_forward(&forward).await.unwrap();
    in_time(&world, async {
        while held.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let closing = node.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    settle().await;
    resume.notify_one();
    in_time(&world, closing).await.unwrap().unwrap();
    drop(node);
    settle().await;
    assert!(tails().is_empty(), "{:?}", tails());
}

/// The node's report from before the join lacks the numbers that are taken during it.
#[tokio::test]
async fn numbers_reserved_during_join_are_reported() {
    let world = World::new();
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let node = Node::open(Arc::new(store), settings(None), world.platform()).await.unwrap();
    joined(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    drawn(&world, &node, 10).await;
    // The node is to join again, for a reason that is not a doubt about the store.
    let resume = Arc::new(tokio::sync::Notify::new());
    *held.lock().unwrap() = Some(("recall", Arc::clone(&resume)));
    world.handle().leave(node.incarnation().unwrap(), world.clock.unix_ms()).await.unwrap();
    in_time(&world, async {
        while held.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let last = *drawn(&world, &node, 500).await.last().unwrap();
    world.store.restore(backup);
    resume.notify_one();
    in_time(&world, async {
        while world.handle().standing().await.unwrap().known.ends.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let standing = world.handle().standing().await.unwrap();
    assert!(standing.known.ends["bills"] > last, "{standing:?} says nothing of {last}");
}

/// Only the highest mark records a number that is never used again.
#[tokio::test]
async fn marks_of_numbers_that_are_never_used_again_are_reported() {
    for (journalled, killed) in [(true, false), (true, true), (false, false)] {
        let (world, dir) = (World::new(), Scratch::new());
        let dir = Some(&dir).filter(|_| journalled);
        let never = || NodeSettings { reuse: crate::model::pool::Reuse::Never, ..settings(dir) };
        let node = Node::open(world.handle(), never(), world.platform()).await.unwrap();
        joined(&world, &node).await;
        node.define("orders", &spec("{}")).await.unwrap();
        let backup = world.store.backup();
        let minted_from = world.clock.unix_ms();
        let source = in_time(&world, node.source("orders")).await.unwrap();
        in_time(&world, source.mint(10, None, 5_000)).await.unwrap();
        let node = if journalled {
            if !killed {
                in_time(&world, node.close()).await.unwrap();
            }
            drop((node, source));
            settle().await;
            // A start and a stop without minting.
            let node = Node::open(world.handle(), never(), world.platform()).await.unwrap();
            joined(&world, &node).await;
            in_time(&world, node.close()).await.unwrap();
            drop(node);
            settle().await;
            world.store.restore(backup);
            Node::open(world.handle(), never(), world.platform()).await.unwrap()
        } else {
            world.store.restore(backup);
            node
        };
        in_doubt(&world).await;
        let known = world.handle().standing().await.unwrap().known;
        assert!(known.mark >= minted_from.get(), "{journalled} {killed}: {known:?}");
        drop(node);
    }
}
