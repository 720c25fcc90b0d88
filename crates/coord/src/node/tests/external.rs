//! External leases: numbers for processes that mint by themselves.

use std::sync::atomic::Ordering;

use super::kills::in_time;
use super::*;
use crate::error::ErrorKind;
use crate::model::exclusive::Relinquish;
use crate::model::external::{ExternalClient, ExternalLease, ExternalLeaseStatus, KEEP_MS_MAX};
use crate::store::memory::MemoryClock;

const KEEP_MS: u64 = 5_000;
/// Largest distance between clocks that are compared with samples as old as a presence.
const APART_MS: u64 = 2 * 20_000;
/// Limit above the numbers of any of these scopes.
const MOST: u64 = 1_000;
const KEPT_MS: u64 = KEEP_MS + APART_MS;

fn called(label: &str) -> ExternalClient {
    ExternalClient { scope: "shop".into(), label: label.into() }
}

async fn joined(world: &World) -> Node {
    has_joined(world, world.open().await).await
}

/// Returns the node, once it is a member.
async fn has_joined(world: &World, node: Node) -> Node {
    for _ in 0..100 {
        if node.incarnation().is_some() {
            return node;
        }
        world.pass(100).await;
    }
    panic!("not joined: {:?}", node.readiness());
}

async fn lease_external(node: &Node, label: &str, width: u32) -> Result<ExternalLease> {
    node.lease_external(&called(label), width, KEEP_MS, MOST, &|_| false).await
}

async fn keep(node: &Node, label: &str) -> ExternalLeaseStatus {
    node.renew_external(&called(label), KEEP_MS).await.unwrap()
}

/// Clients that waited for a server call it when it starts to listen.
#[tokio::test]
async fn external_grant_waits_briefly_for_a_joining_node() {
    let world = World::new();
    let store = world.faulty();
    let held = Arc::clone(&store.faults.held);
    let joins = Arc::new(tokio::sync::Notify::new());
    *held.lock().unwrap() = Some(("join", Arc::clone(&joins)));
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    let asking = node.clone();
    let asking = tokio::spawn(async move { lease_external(&asking, "a", 1).await });
    world.pass(500).await;
    assert!(node.incarnation().is_none(), "it has joined early");
    joins.notify_one();
    assert_eq!(in_time(&world, asking).await.unwrap().unwrap().number, 0);

    let store = world.faulty();
    *store.faults.lacks.lock().unwrap() = Some("join");
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    let begun = world.timer.elapsed();
    let refused = in_time(&world, lease_external(&node, "b", 1)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    let waited_ms = world.timer.elapsed().since(begun);
    assert!(waited_ms <= 1_100, "{waited_ms}");
}

#[tokio::test]
async fn every_external_client_keeps_its_number() {
    let world = World::new();
    let (one, two) = (joined(&world).await, joined(&world).await);
    for (number, label) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let node = if number % 2 == 0 { &one } else { &two };
        let leased = lease_external(node, label, 2).await.unwrap();
        assert_eq!(leased, ExternalLease { number: number as u64, after: UnixMillis::ZERO });
    }
    let full = lease_external(&one, "e", 2).await.unwrap_err();
    assert!(matches!(full.kind(), ErrorKind::PoolFull(_)), "{full:?}");
    // Another width, and another scope, have their own numbers.
    assert_eq!(lease_external(&one, "e", 3).await.unwrap().number, 0);
    let elsewhere = ExternalClient { scope: "shop-2".into(), label: "a".into() };
    assert_eq!(
        two.lease_external(&elsewhere, 2, KEEP_MS, MOST, &|_| false).await.unwrap().number,
        0
    );
    // A client that calls again, anywhere, gets the same number, and may have minted until now.
    let again = lease_external(&two, "c", 2).await.unwrap();
    assert_eq!((again.number, again.after), (2, world.clock.unix_ms()));
    // They keep it as long as they call any server, however long that is.
    for round in 0..20 {
        world.pass(KEEP_MS / 2).await;
        for label in ["a", "b", "c", "d"] {
            let node = if round % 2 == 0 { &one } else { &two };
            assert_eq!(keep(node, label).await, ExternalLeaseStatus::Held);
        }
        assert!(lease_external(&one, "f", 2).await.is_err());
    }
}

#[tokio::test]
async fn unrenewed_external_lease_ends_after_every_clock() {
    let world = World::new();
    let (one, two) = (joined(&world).await, joined(&world).await);
    let requested_at = world.clock.unix_ms();
    assert_eq!(lease_external(&one, "a", 1).await.unwrap().number, 0);
    assert_eq!(lease_external(&one, "b", 1).await.unwrap().number, 1);
    world.pass(KEPT_MS - 100).await;
    assert!(lease_external(&two, "c", 1).await.is_err());
    assert_eq!(keep(&two, "b").await, ExternalLeaseStatus::Held);
    world.pass(100).await;
    // No other client has it yet, so it still belongs to the first.
    assert_eq!(keep(&two, "a").await, ExternalLeaseStatus::Held);
    world.pass(KEPT_MS).await;
    let leased = lease_external(&two, "c", 1).await.unwrap();
    assert_eq!(leased.number, 0);
    assert!(
        leased.after >= requested_at.saturating_add(KEPT_MS),
        "all that a minted lies before: {leased:?}"
    );
    assert_eq!(keep(&one, "a").await, ExternalLeaseStatus::Lost);
    assert_eq!(keep(&one, "a").await, ExternalLeaseStatus::Unknown);
    assert_eq!(keep(&two, "absent").await, ExternalLeaseStatus::Unknown);
    assert_eq!(keep(&one, "c").await, ExternalLeaseStatus::Held);
}

#[tokio::test]
async fn external_lease_outlives_its_server() {
    let world = World::new();
    let (one, two) = (joined(&world).await, joined(&world).await);
    let leased = lease_external(&one, "a", 1).await.unwrap();
    drop(one);
    // Its presence has expired by then: the mark protects the client.
    for _ in 0..10 {
        world.pass(KEEP_MS).await;
        assert_eq!(keep(&two, "a").await, ExternalLeaseStatus::Held);
    }
    assert_eq!(lease_external(&two, "b", 1).await.unwrap().number, 1);
    assert!(lease_external(&two, "c", 1).await.is_err());
    assert_eq!(lease_external(&two, "a", 1).await.unwrap().number, leased.number);
    two.close().await.unwrap();
    let three = joined(&world).await;
    assert!(lease_external(&three, "c", 1).await.is_err());
    assert_eq!(keep(&three, "a").await, ExternalLeaseStatus::Held);
}

#[tokio::test]
async fn returned_number_is_free_after_every_clock_passed() {
    let world = World::new();
    let node = joined(&world).await;
    let forever = called("stable");
    assert_eq!(
        node.lease_external(&forever, 1, u64::MAX, MOST, &|_| false).await.unwrap().number,
        0
    );
    assert_eq!(lease_external(&node, "a", 1).await.unwrap().number, 1);
    let back = world.clock.unix_ms();
    assert!(node.release_external(&called("a")).await.unwrap());
    assert!(node.release_external(&called("a")).await.unwrap(), "twice is as once");
    assert!(!node.release_external(&called("absent")).await.unwrap());
    assert!(lease_external(&node, "b", 1).await.is_err());
    world.pass(APART_MS).await;
    let leased = lease_external(&node, "b", 1).await.unwrap();
    assert!(leased.number == 1 && leased.after >= back, "{leased:?}");
    // A silence of a year does not matter to a lease that is kept for ever.
    world.clock.advance_ms(KEEP_MS_MAX / 100);
    let mark = node.workers().await.unwrap()[0].mark.unix_millis();
    assert!(mark > world.clock.unix_ms() && mark < UnixMillis::new(u64::MAX / 4));
}

/// A pattern matches any number of scopes.
#[tokio::test]
async fn scopes_counted_together_share_one_limit() {
    let world = World::new();
    let node = joined(&world).await;
    let lease_external = async |scope: &str| {
        let client = ExternalClient { scope: scope.into(), label: "a".into() };
        node.lease_external(&client, 10, u64::MAX, 3, &|other| other.starts_with("tmp-")).await
    };
    for scope in ["tmp-1", "tmp-2", "tmp-3"] {
        assert_eq!(lease_external(scope).await.unwrap().number, 0);
    }
    let refused = lease_external("tmp-4").await.unwrap_err();
    assert_eq!(refused.kind().code(), "limit_exceeded", "{refused}");
    for part in ["scope \"tmp-4\" makes 4, limit 3", "compat.cosid.machines_max"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
    assert_eq!(node.workers().await.unwrap().len(), 3);
    assert_eq!(lease_external("tmp-2").await.unwrap().number, 0, "a holder gets the same number");
    // The numbers of other scopes do not count.
    let other = called("a");
    assert_eq!(node.lease_external(&other, 10, KEEP_MS, 1, &|_| false).await.unwrap().number, 0);
}

#[tokio::test]
async fn scope_stays_within_its_limit_and_serves_on() {
    let world = World::new();
    let (one, two) = (joined(&world).await, joined(&world).await);
    let lease_external = async |node: &Node, label: &str, width| {
        node.lease_external(&called(label), width, KEEP_MS, 3, &|_| false).await
    };
    let rows = async || one.workers().await.unwrap().len();
    for (number, label) in (0..).zip(["a", "b", "c"]) {
        assert_eq!(lease_external(&one, label, 10).await.unwrap().number, number);
    }
    // The limit is for all widths together, on any server; other scopes have their own.
    for (node, width) in [(&one, 10), (&two, 10), (&one, 20)] {
        let refused = lease_external(node, "d", width).await.unwrap_err();
        assert_eq!(refused.kind().code(), "limit_exceeded", "{refused}");
        for part in ["scope \"shop\" makes 4, limit 3", "compat.cosid.machines_max"] {
            assert!(refused.to_string().contains(part), "{part}: {refused}");
        }
    }
    let elsewhere = ExternalClient { scope: "shop-2".into(), label: "d".into() };
    two.lease_external(&elsewhere, 10, KEEP_MS, 3, &|_| false).await.unwrap();
    assert_eq!(rows().await, 4);
    // A client with a number keeps it, and gets the same one.
    assert_eq!(
        (lease_external(&two, "b", 10).await.unwrap().number, keep(&one, "c").await),
        (1, ExternalLeaseStatus::Held)
    );
    // A free number is granted again: the one that has been free for longest.
    assert!(two.release_external(&called("c")).await.unwrap());
    world.pass(APART_MS).await;
    assert_eq!(
        (keep(&one, "a").await, keep(&one, "b").await),
        (ExternalLeaseStatus::Held, ExternalLeaseStatus::Held)
    );
    assert_eq!(lease_external(&one, "d", 10).await.unwrap().number, 2);
    assert_eq!(lease_external(&two, "e", 10).await.unwrap_err().kind().code(), "limit_exceeded");
    world.pass(2 * KEPT_MS).await;
    for number in 0..20_u64 {
        lease_external(&one, &format!("new-{number}"), 10).await.unwrap();
        world.pass(KEPT_MS).await;
    }
    assert_eq!(rows().await, 4);
}

#[tokio::test]
async fn known_external_client_costs_no_list() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    let store = Arc::new(store);
    let node = Node::open(store, NodeSettings::default(), world.platform()).await.unwrap();
    let node = has_joined(&world, node).await;
    let leased = lease_external(&node, "a", 4).await.unwrap();
    world.pass(KEEP_MS / 2).await;
    *lacks.lock().unwrap() = Some("workers");
    let again = lease_external(&node, "a", 4).await.unwrap();
    assert_eq!((again.number, again.after), (leased.number, world.clock.unix_ms()));
    assert!(lease_external(&node, "b", 4).await.is_err(), "who is not known has to be looked for");
}

#[tokio::test]
async fn accepted_lead_leaves_external_leases_alone() {
    let world = World::new();
    let node = joined(&world).await;
    lease_external(&node, "a", 1).await.unwrap();
    lease_external(&node, "b", 1).await.unwrap();
    let until = Mark::from(world.clock.unix_ms().saturating_add(KEEP_MS_MAX));
    world.store.accept_lead(until).await.unwrap();
    assert!(lease_external(&node, "c", 1).await.is_err());
    assert_eq!(
        (keep(&node, "a").await, keep(&node, "b").await),
        (ExternalLeaseStatus::Held, ExternalLeaseStatus::Held)
    );
}

#[tokio::test]
async fn concurrent_external_clients_get_distinct_numbers() {
    let world = World::new();
    let nodes = [joined(&world).await, joined(&world).await, joined(&world).await];
    let mut asking = Vec::new();
    for number in 0..60_u64 {
        let node = nodes[usize::try_from(number % 3).unwrap()].clone();
        asking.push(tokio::spawn(async move {
            lease_external(&node, &format!("client-{}", number / 2), 6).await.unwrap().number
        }));
    }
    let mut numbers: Vec<HashSet<u64>> = vec![HashSet::new(); 30];
    for (number, task) in asking.into_iter().enumerate() {
        numbers[number / 2].insert(task.await.unwrap());
    }
    let mut seen = HashSet::new();
    for own in numbers {
        // A client that called twice at the same time may have two: both are its own.
        assert!(own.into_iter().all(|number| seen.insert(number)), "{seen:?}");
    }
}

/// A clock that is an hour off would find every mark passed, or keep a number up to a time that is
/// over.
#[tokio::test]
async fn node_with_a_wrong_clock_changes_no_external_lease() {
    let time = MemoryClock::new(START);
    let store = MemoryStore::with_clock("default", time.clone()).unwrap();
    let world = World { store, ..World::new() };
    let node = joined(&world).await;
    lease_external(&node, "a", 1).await.unwrap();
    lease_external(&node, "b", 1).await.unwrap();
    let refused = async |code: &str| {
        let leased = lease_external(&node, "c", 1).await.unwrap_err();
        let kept = node.renew_external(&called("a"), KEEP_MS).await.unwrap_err();
        let taken = node.release_external(&called("a")).await.unwrap_err();
        for error in [leased, kept, taken] {
            assert_eq!(error.kind().code(), code, "{error}");
        }
    };
    // Only the store can have noticed: elapsed time stands still.
    world.clock.set(time.now().saturating_add(3_600_000));
    refused("clock_ahead").await;
    world.clock.set(time.now().saturating_sub(3_600_000));
    refused("clock_behind").await;
    world.clock.set(time.now());
    assert_eq!(
        (keep(&node, "a").await, keep(&node, "b").await),
        (ExternalLeaseStatus::Held, ExternalLeaseStatus::Held)
    );
}

#[tokio::test]
async fn unconfirmed_clock_jump_grants_no_external_lease() {
    let world = World::new();
    let node = joined(&world).await;
    lease_external(&node, "a", 1).await.unwrap();
    lease_external(&node, "b", 1).await.unwrap();
    world.clock.advance_ms(3_600_000);
    world.pass(2_000).await;
    assert_eq!(lease_external(&node, "c", 1).await.unwrap_err().kind().code(), "clock_ahead");
}

#[tokio::test]
async fn revoked_external_lease_is_not_renewed_from_cache() {
    let world = World::new();
    let (one, two) = (joined(&world).await, joined(&world).await);
    one.lease_external(&called("a"), 1, KEEP_MS * 100, MOST, &|_| false).await.unwrap();
    two.lease_external(&called("b"), 1, u64::MAX, MOST, &|_| false).await.unwrap();
    assert!(two.release_external(&called("a")).await.unwrap());
    world.pass(APART_MS).await;
    assert_eq!(lease_external(&two, "c", 1).await.unwrap().number, 0);
    assert_eq!(one.renew_external(&called("a"), 1).await.unwrap(), ExternalLeaseStatus::Lost);
}

/// It is then unknown whether the store has relinquished the number, so its term is unknown as
/// well.
#[tokio::test]
async fn external_lease_survives_a_failed_relinquish() {
    let world = World::new();
    let store = world.faulty();
    let lacks = Arc::clone(&store.faults.lacks);
    *lacks.lock().unwrap() = Some("relinquish");
    let store = Arc::new(store);
    let node = Node::open(store, NodeSettings::default(), world.platform()).await.unwrap();
    let node = has_joined(&world, node).await;
    assert_eq!(lease_external(&node, "a", 1).await.unwrap().number, 0);
    let sent = world.handle().workers(START).await.unwrap().remove(0);
    for _ in 0..30 {
        world.pass(KEEP_MS / 2).await;
        assert_eq!(keep(&node, "a").await, ExternalLeaseStatus::Held);
    }
    // The delayed request arrives now, and takes nothing away.
    let slots = vec![(sent.slot, sent.term)];
    let late = Relinquish { pool: sent.pool, member: node.incarnation().unwrap(), slots };
    world.handle().relinquish(&late, world.clock.unix_ms()).await.unwrap();
    let row = world.handle().workers(START).await.unwrap().remove(0);
    assert_eq!((row.holder, row.mark > Mark::from(world.clock.unix_ms())), (None, true));
    let other = joined(&world).await;
    assert_eq!(lease_external(&other, "b", 1).await.unwrap().number, 1);
    assert!(lease_external(&other, "c", 1).await.is_err());
    assert_eq!(keep(&node, "a").await, ExternalLeaseStatus::Held);
}

/// A number held by a live server would not become free after its client has been silent for long
/// enough.
#[tokio::test]
async fn server_relinquishes_unknown_held_numbers() {
    let world = World::new();
    let store = world.faulty();
    let (lacks, unheard) = (Arc::clone(&store.faults.lacks), Arc::clone(&store.faults.unheard));
    let store = Arc::new(store);
    let node = Node::open(store, NodeSettings::default(), world.platform()).await.unwrap();
    let node = has_joined(&world, node).await;
    *lacks.lock().unwrap() = Some("relinquish");
    assert_eq!(lease_external(&node, "a", 1).await.unwrap().number, 0);
    *lacks.lock().unwrap() = None;
    *unheard.lock().unwrap() = Some("claim");
    assert!(lease_external(&node, "b", 1).await.is_err());
    *unheard.lock().unwrap() = None;
    world.pass(KEPT_MS + 100).await;
    let numbers = [lease_external(&node, "c", 1).await, lease_external(&node, "d", 1).await];
    let numbers: HashSet<u64> = numbers.into_iter().map(|leased| leased.unwrap().number).collect();
    assert_eq!(numbers, [0, 1].into());
}

/// A client that gets a number again has the same term: the mark tells an old request from the
/// present state.
#[tokio::test]
async fn late_release_changes_no_renewed_external_lease() {
    let world = World::new();
    let store = world.faulty();
    let (lacks, releases) = (Arc::clone(&store.faults.lacks), Arc::clone(&store.faults.releases));
    let store = Arc::new(store);
    let node = Node::open(store, NodeSettings::default(), world.platform()).await.unwrap();
    let (node, other) = (has_joined(&world, node).await, joined(&world).await);
    for keep_ms in [KEEP_MS, KEEP_MS * 10, 1] {
        let number = lease_external(&node, "a", 1).await.unwrap().number;
        *lacks.lock().unwrap() = Some("release");
        assert!(node.release_external(&called("a")).await.is_err());
        *lacks.lock().unwrap() = None;
        world.pass(1_000).await;
        let again = other.lease_external(&called("a"), 1, keep_ms, MOST, &|_| false).await.unwrap();
        assert_eq!(again.number, number);
        let late = releases.lock().unwrap().pop().unwrap();
        let refused = world.handle().release(&late, world.clock.unix_ms()).await.unwrap_err();
        assert_eq!(refused.kind().code(), "mark_moved", "{refused}");
        assert_eq!(
            other.renew_external(&called("a"), keep_ms).await.unwrap(),
            ExternalLeaseStatus::Held
        );
    }
    // A lease that was extended meanwhile is read again, and taken back.
    assert!(node.release_external(&called("a")).await.unwrap());
    assert_eq!(releases.lock().unwrap().len(), 1);
}

/// The granting server may be the first to see it, and the only one.
#[tokio::test]
async fn rollback_below_an_external_lease_raises_doubt() {
    let world = World::new();
    let store = world.faulty();
    let outlived = Arc::clone(&store.faults.outlived);
    let node =
        Node::open(Arc::new(store), NodeSettings::default(), world.platform()).await.unwrap();
    let node = has_joined(&world, node).await;
    in_time(&world, lease_external(&node, "a", 10)).await.unwrap();
    outlived.store(true, Ordering::SeqCst);
    let refused = node.renew_external(&called("a"), 10 * KEEP_MS).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    assert!(node.core().ctx.doubts.rolled_back().is_some(), "only this node has the doubt");
}
