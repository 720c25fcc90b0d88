//! Store that an operator has recovered, under a running node.

use tokio::sync::oneshot;

use super::disk::Hanging;
use super::faulty::Meanwhile;
use super::kills::{Scratch, in_time};
use super::*;
use crate::journal::{DataDir, inspect};
use crate::model::history::{JOURNALS_MAX, JournalInfo, Recalled};
use crate::model::segment::{GiveBack, Reserve, Segment};

pub(super) const FIXED: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;

pub(super) async fn open(world: &World, dir: &Scratch) -> Node {
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
    joined(world, &node).await;
    node
}

pub(super) async fn joined(world: &World, node: &Node) {
    in_time(world, async {
        while node.incarnation().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub(super) async fn drawn(world: &World, node: &Node, count: u32) -> Vec<u64> {
    let source = in_time(world, node.source("bills")).await.unwrap();
    numbers(in_time(world, source.mint(count, None, 5_000)).await.unwrap())
}

/// Takes numbers for another process.
pub(super) async fn taken(world: &World, length: u64) -> Segment {
    let store = world.handle();
    let definition_version = store.get("bills").await.unwrap().version;
    let source = "bills".into();
    store.reserve(&Reserve { source, length, definition_version, within: None }).await.unwrap()
}

/// The numbers were this process's in the lost history, and are another's in the recovered one.
#[tokio::test]
async fn numbers_that_a_journal_kept_are_not_used_after_a_recovery() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 50).await.last(), Some(&50));
    // The rest cannot go back to the store.
    taken(&world, 100).await;
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let kept = inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record.tails;
    assert_eq!(kept.iter().map(|tail| (tail.first, tail.last)).collect::<Vec<_>>(), [(51, 100)]);

    let node = open(&world, &dir).await;
    world.store.restore(backup);
    let other = taken(&world, 150).await;
    assert_eq!((other.first, other.last), (1, 150));
    in_time(&world, async {
        while world.handle().standing().await.unwrap().doubt.is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let forward = FastForward {
        marks_at_least: Mark::from(world.clock.unix_ms().saturating_add(100_000)),
        segments: vec![("bills".into(), Mark::new(1_000))],
        writes_at_least: 1_000,
        ..FastForward::default()
    };
    world.handle().fast_forward(&forward).await.unwrap();
    joined(&world, &node).await;
    assert_eq!(drawn(&world, &node, 1).await, [1_000]);
    in_time(&world, node.close()).await.unwrap();
}

/// The handle learns once that another operator has moved the store.
#[tokio::test]
async fn recovery_right_after_another_is_planned_on_the_moved_store() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    let none = BTreeMap::new();
    let look = || node.recovery(&none, &[]);
    world.handle().fast_forward(&FastForward::default()).await.unwrap();
    let found = in_time(&world, look()).await.unwrap();
    assert!(found.doubt().is_none(), "{found:?}");
    joined(&world, &node).await;
    in_time(&world, node.close()).await.unwrap();
}

/// Returns the request of an embedded client.
pub(super) async fn wanted(world: &World, length: u64) -> Reserve {
    let definition_version = world.handle().get("bills").await.unwrap().version;
    Reserve { source: "bills".into(), length, definition_version, within: None }
}

pub(super) async fn for_program(node: &Node, wanted: &Reserve) -> Result<Segment> {
    node.reserve_for_client(&**node.store(), wanted).await
}

/// The client is gone: the process that it called reports its numbers.
#[tokio::test]
async fn numbers_reserved_for_embedded_clients_are_reported() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    let wanted = wanted(&world, 500).await;
    let taken = in_time(&world, for_program(&node, &wanted)).await.unwrap();
    assert_eq!((taken.first, taken.last), (1, 500));
    // The disk has the numbers before the client does.
    let on_disk = || inspect(&DataDir::lock(&dir.0).unwrap()).unwrap().record;
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    assert_eq!(on_disk().for_programs["bills"], Mark::new(501));
    world.store.restore(backup);
    let settings = NodeSettings {
        data_dir: Some(dir.0.clone()),
        waits_for_recovery: true,
        ..NodeSettings::default()
    };
    let node = Node::open(world.handle(), settings, world.platform()).await.unwrap();
    in_time(&world, async {
        while world.handle().standing().await.unwrap().missing().count() > 0
            || world.handle().standing().await.unwrap().doubt.is_none()
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let refused = in_time(&world, for_program(&node, &wanted)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back");
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    assert_eq!(recovery.known().ends["bills"], 501);
    let forward = recovery.plan(&recovery::RecoveryRequest::default()).unwrap();
    node.recover(&forward).await.unwrap();
    joined(&world, &node).await;
    assert_eq!(drawn(&world, &node, 1).await, [501]);
    in_time(&world, node.close()).await.unwrap();
}

/// No recovery waits for it, but it reports its numbers as long as it runs.
#[tokio::test]
async fn process_without_journal_reports_reserved_numbers() {
    let world = World::new();
    let node = Node::open(world.handle(), NodeSettings::default(), world.platform()).await.unwrap();
    joined(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    assert_eq!(drawn(&world, &node, 50).await.last(), Some(&50));
    world.store.restore(backup);
    in_time(&world, async {
        while world.handle().standing().await.unwrap().known.ends.is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let standing = world.handle().standing().await.unwrap();
    assert_eq!((standing.known.ends["bills"], standing.journals.len()), (101, 0));
    let recovery = in_time(&world, node.recovery(&BTreeMap::new(), &[])).await.unwrap();
    let unsaid = recovery.unsaid(&recovery::RecoveryRequest::default()).unwrap();
    assert!(unsaid.contains("--counters-above"), "{unsaid}");
    let request = recovery::RecoveryRequest { counters_above: Some(0), ..Default::default() };
    assert_eq!(recovery.unsaid(&request), None);
    let forward = recovery.plan(&request).unwrap();
    node.recover(&forward).await.unwrap();
    joined(&world, &node).await;
    assert_eq!(drawn(&world, &node, 1).await, [101]);
    in_time(&world, node.close()).await.unwrap();
}

/// They go through another process, of which this process's journal knows nothing.
#[tokio::test]
async fn numbers_that_a_program_gives_back_put_no_store_in_doubt() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let wanted = wanted(&world, 500).await;
    let taken = in_time(&world, for_program(&node, &wanted)).await.unwrap();
    let Segment { last, version, .. } = taken;
    let back = GiveBack { source: "bills".into(), first: 101, last, version };
    world.handle().give_back(&back).await.unwrap();
    in_time(&world, node.close()).await.unwrap();
    drop(node);
    settle().await;
    let node = open(&world, &dir).await;
    assert_eq!(drawn(&world, &node, 1).await, [101]);
    assert!(world.handle().standing().await.unwrap().doubt.is_none());
    in_time(&world, node.close()).await.unwrap();
}

/// Returns a node with a journal that is written only once `disk` continues, and the disk.
async fn with_a_slow_journal(world: &World, dir: &Scratch, source: &str) -> (Node, Arc<Hanging>) {
    let disk = Arc::new(Hanging::default());
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let platform = Platform { disk: Arc::clone(&disk) as _, ..world.platform() };
    let node = Node::open(world.handle(), settings, platform).await.unwrap();
    joined(world, &node).await;
    node.define("bills", &spec(source)).await.unwrap();
    (node, disk)
}

/// Recovers the store while the journal does not have the numbers yet.
async fn recovered_meanwhile(world: &World, node: &Node, disk: &Hanging) {
    let doubts = &node.core().ctx.doubts;
    let error = Error::store_rolled_back("write count", 2, 1);
    world.pass(100).await;
    node.core().ctx.doubt(&error);
    let raised = doubts.raised();
    assert!(doubts.end(raised, Recalled::Recovered));
    disk.hangs.send_replace(false);
    world.pass(2_000).await;
}

/// The journal may have reported to the recovered store before it had the numbers.
#[tokio::test]
async fn late_reports_over_a_recovery_leave_client_stripes() {
    let (world, dir) = (World::new(), Scratch::new());
    let (node, disk) = with_a_slow_journal(&world, &dir, FIXED).await;
    let wanted = wanted(&world, 500).await;
    world.pass(2_000).await;
    disk.hangs.send_replace(true);
    let (taken, ()) =
        tokio::join!(for_program(&node, &wanted), recovered_meanwhile(&world, &node, &disk));
    assert_eq!(taken.unwrap_err().kind().code(), "unavailable");
    in_time(&world, node.close()).await.unwrap();
}

/// The same for numbers that go from the store to a caller without being prefetched.
#[tokio::test]
async fn late_reports_over_a_recovery_reach_no_caller() {
    const ONE: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#;
    let (world, dir) = (World::new(), Scratch::new());
    let (node, disk) = with_a_slow_journal(&world, &dir, ONE).await;
    let source = in_time(&world, node.source("bills")).await.unwrap();
    world.pass(2_000).await;
    disk.hangs.send_replace(true);
    let (minted, ()) =
        tokio::join!(source.mint(1, None, 60_000), recovered_meanwhile(&world, &node, &disk));
    assert_eq!(numbers(minted.unwrap()), [2], "the first is not this process's any more");
    world.pass(2_000).await;
    disk.hangs.send_replace(true);
    let (row, ()) =
        tokio::join!(source.reserve_range(10, 60_000), recovered_meanwhile(&world, &node, &disk));
    assert_eq!(row.unwrap_err().kind().code(), "unavailable");
    in_time(&world, node.close()).await.unwrap();
}

/// Its handle reports a recovery of the store only once, to the first call, also while the node
/// joins.
#[tokio::test]
async fn recovery_during_a_join_is_survived() {
    let (world, dir) = (World::new(), Scratch::new());
    let store = world.faulty();
    let meanwhile = Arc::clone(&store.faults.meanwhile);
    let settings = NodeSettings { data_dir: Some(dir.0.clone()), ..NodeSettings::default() };
    let node = Node::open(Arc::new(store), settings, world.platform()).await.unwrap();
    joined(&world, &node).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let backup = world.store.backup();
    drawn(&world, &node, 50).await;
    world.store.restore(backup);
    taken(&world, 1).await;
    in_time(&world, async {
        while world.handle().standing().await.unwrap().doubt.is_none()
            || node.incarnation().is_some()
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let ctx = Arc::clone(&node.core().ctx);
    let while_joining = move || {
        ctx.doubt(&Error::store_rolled_back("write count", 2, 1));
    };
    *meanwhile.lock().unwrap() = Some(("join", Meanwhile(Box::new(while_joining))));
    let forward = past_bills();
    world.handle().fast_forward(&forward).await.unwrap();
    in_time(&world, async {
        while !node.readiness().ready || meanwhile.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(drawn(&world, &node, 1).await, [1_000]);
    in_time(&world, node.close()).await.unwrap();
}

/// A result that was in flight during a recovery shows the state before it.
#[tokio::test]
async fn late_result_from_before_a_recovery_raises_no_doubt() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    node.define("bills", &spec(FIXED)).await.unwrap();
    let ctx = Arc::clone(&node.core().ctx);
    let joins = ctx.doubts.recoveries();
    let (give_error, awaited) = oneshot::channel::<Error>();
    let late = ctx.store_call(Verb::List, async { Err::<(), _>(awaited.await.unwrap()) });
    let mut late = std::pin::pin!(late);
    tokio::select! {
        biased;
        early = &mut late => panic!("{early:?}"),
        () = std::future::ready(()) => {}
    }

    let backup = world.store.backup();
    drawn(&world, &node, 50).await;
    world.store.restore(backup);
    taken(&world, 1).await;
    in_time(&world, async {
        while node.incarnation().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let forward = past_bills();
    world.handle().fast_forward(&forward).await.unwrap();
    joined(&world, &node).await;
    give_error.send(Error::store_rolled_back("write count", 2, 1)).unwrap();
    assert_eq!(late.await.unwrap_err().kind().code(), "store_rolled_back");
    ctx.doubt_since(joins, &Error::contradiction("mark of slot 1", 2, 1));
    assert!(ctx.doubts.check().is_ok());
    assert_eq!(drawn(&world, &node, 1).await, [1_000]);
    in_time(&world, node.close()).await.unwrap();
}

/// A recovery waits only for journals that the store knows.
#[tokio::test]
async fn a_journal_that_the_store_has_forgotten_joins_again() {
    let (world, dir) = (World::new(), Scratch::new());
    let node = open(&world, &dir).await;
    settle().await;
    let own = only_journal(&world).await;
    let store = world.handle();
    for number in 0..JOURNALS_MAX {
        let journal = JournalInfo {
            id: format!("other-{number}"),
            owner: String::new(),
            host: String::new(),
            seen_at_ms: START.get() + 1,
            has_reported: false,
            is_heard_of: false,
            reports: 0,
            far_mark: 0,
        };
        store.report(&journal, None).await.unwrap();
    }
    let is_known = async || {
        let standing = store.standing().await.unwrap();
        standing.journals.iter().any(|journal| journal.id == own)
    };
    assert!(!is_known().await, "the store must have forgotten it");
    // Each new process is a reason to read the list.
    store
        .define(&crate::model::catalog::NewDefinition {
            name: "bills".into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        })
        .await
        .unwrap();
    in_time(&world, async {
        while !is_known().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
    in_time(&world, node.close()).await.unwrap();
}

/// Returns the one journal that the store knows.
pub(super) async fn only_journal(world: &World) -> String {
    let standing = world.handle().standing().await.unwrap();
    let [journal] = standing.journals.as_slice() else { panic!("{standing:?}") };
    journal.id.clone()
}
