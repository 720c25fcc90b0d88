//! Each program acts for itself alone, and moves marks only as far as definitions allow.

use std::sync::Arc;

use futures_util::FutureExt as _;
use snowmint_client::RemoteStore;
use snowmint_coord::external::{ExternalClient, external_pool};
use snowmint_coord::segment::NumberInterval;
use snowmint_coord::{
    BootTimer, Bounds, ClaimRequest, Extend, Incarnation, Lease, Mark, Member, MemoryStore,
    NewDefinition, Node, NodeSettings, Platform, Pool, Preference, Presence, Release, Relinquish,
    Reserve, Reuse, Store, Ticks, Timer as _, random,
};
use snowmint_core::{Clock as _, Layout, SystemClock, UnixMillis};

use crate::common::{self, soon};
use crate::tokens::{ADMIN, BILLS, ENOUGH, ORDERS, TTL_MS, define, remote, serve};

pub(super) fn now() -> UnixMillis {
    SystemClock.unix_ms()
}

pub(super) fn presence() -> Presence {
    Presence { sample: now(), renewals: 1, ttl_ms: TTL_MS }
}

pub(super) fn code<T: std::fmt::Debug>(outcome: snowmint_coord::Result<T>) -> &'static str {
    outcome.unwrap_err().kind().code()
}

pub(super) fn workers() -> Pool {
    Pool { name: "workers-10".into(), slots: 1_024, group: 1, reuse: Reuse::Recycle }
}

pub(super) fn claim(pool: Pool, member: Incarnation) -> ClaimRequest {
    ClaimRequest {
        pool,
        member,
        owner: "it".into(),
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: random::request().unwrap(),
    }
}

pub(super) async fn joined(store: &dyn Store, number: u128) -> Incarnation {
    joined_at(store, number, "").await
}

/// Joins a member that claims to be reached at this address.
async fn joined_at(store: &dyn Store, number: u128, address: &str) -> Incarnation {
    let incarnation = Incarnation::new(number);
    let (owner, host, address) = ("it".into(), "here".into(), address.to_owned());
    let member = Member { incarnation, owner, host, process: 1, address };
    store.join(&member, presence(), now()).await.unwrap();
    incarnation
}

/// Returns a member with a slot, with its mark at 1,000.
async fn holding(store: &dyn Store, number: u128) -> (Incarnation, Lease) {
    let member = joined(store, number).await;
    let lease = store.claim(&claim(workers(), member), now()).await.unwrap().remove(0);
    moved(store, &lease, Some(member), 1_000).await.unwrap();
    (member, Lease { mark: Mark::new(1_000), ..lease })
}

pub(super) async fn moved(
    store: &dyn Store,
    lease: &Lease,
    holder: Option<Incarnation>,
    to: u64,
) -> snowmint_coord::Result<Mark> {
    let Lease { pool, slot, term, mark: from, .. } = lease.clone();
    let (to, request) = (Mark::new(to), to);
    let item = Extend { pool, slot, term, holder, from, to, request, ahead_max_ms: None };
    store.extend(&[item], now()).await?.remove(0).map(|moved| moved.mark)
}

/// Tries all that a program with another token can do to a member, under each name that it can see.
async fn harms(store: &dyn Store, names: &[Incarnation], lease: &Lease) {
    let own = joined(store, 666).await;
    for &name in names {
        assert_eq!(code(store.renew(name, presence(), now()).await), "not_found");
        // Leaving succeeds for any unknown member: it is gone either way.
        store.leave(name, now()).await.unwrap();
        assert_eq!(code(store.claim(&claim(workers(), name), now()).await), "not_found");
        let exactly = Preference::Exactly(lease.slot);
        let supersedes = Some(name);
        let claim = ClaimRequest { supersedes, preference: exactly, ..claim(workers(), own) };
        assert_eq!(code(store.claim(&claim, now()).await), "pool_full");
    }
    for &name in names.iter().chain([&own]) {
        assert_eq!(code(moved(store, lease, Some(name), 5_000).await), "fenced");
        let sent = Release { holder: Some(name), mark: lease.floor, ..lease.unused() };
        assert_eq!(code(store.release(&sent, now()).await), "fenced");
    }
    assert_eq!(
        code(moved(store, lease, None, 5_000).await),
        "unsupported",
        "the move must name its member"
    );
    let sent = Release { holder: None, ..lease.unused() };
    assert_eq!(code(store.release(&sent, now()).await), "unsupported");
    let relinquish =
        Relinquish { pool: lease.pool.clone(), member: own, slots: vec![(lease.slot, lease.term)] };
    assert_eq!(code(store.relinquish(&relinquish, now()).await), "unsupported", "not an operator");
    store.leave(own, now()).await.unwrap();
}

#[tokio::test]
async fn token_acts_only_for_its_own_members() {
    let store = MemoryStore::new("all").unwrap();
    let (one, _) = serve(&store, ENOUGH).await;
    let (two, _) = serve(&store, ENOUGH).await;
    let orders = remote(ORDERS, &[&one]).await;
    let bills = remote(BILLS, &[&one]).await;
    let (own, lease) = holding(&*orders, 1).await;
    let (servers, of_server) = holding(&store, 2).await;

    // Lists show another member's alias, and the caller's own incarnation.
    let names = |listed: Vec<snowmint_coord::MemberInfo>| {
        listed.into_iter().map(|info| info.member.incarnation).collect::<Vec<_>>()
    };
    let holder = |slots: Vec<snowmint_coord::SlotInfo>| {
        let mut slots = slots.into_iter();
        slots.find(|slot| (&*slot.pool, slot.slot) == (&*lease.pool, lease.slot)).unwrap().holder
    };
    assert!(names(orders.members(now()).await.unwrap()).contains(&own));
    assert_eq!(holder(orders.workers(now()).await.unwrap()), Some(own));
    let known_as = holder(bills.workers(now()).await.unwrap()).unwrap();
    assert_ne!(known_as, own);
    assert_eq!(holder(store.workers(now()).await.unwrap()), Some(known_as));
    let seen = names(bills.members(now()).await.unwrap());
    assert!(seen.contains(&known_as) && seen.contains(&servers) && !seen.contains(&own));

    let before = (store.members(now()).await.unwrap(), store.workers(now()).await.unwrap());
    harms(&*bills, &[own, known_as], &lease).await;
    harms(&*bills, &[servers], &of_server).await;
    let after = (store.members(now()).await.unwrap(), store.workers(now()).await.unwrap());
    assert_eq!(before, after);

    // Programs with the same token may act for one another, at any server.
    let other_server = remote(ORDERS, &[&two]).await;
    other_server.renew(own, presence(), now()).await.unwrap();
    let mark = moved(&*other_server, &lease, Some(own), 2_000).await.unwrap();
    // An operator's token may do so by the term alone.
    let admin = remote(ADMIN, &[&one]).await;
    let mark = moved(&*admin, &Lease { mark, ..lease.clone() }, None, 3_000).await.unwrap();
    let lease = Lease { mark, ..lease };
    let reclaimed = ClaimRequest { supersedes: Some(own), request: 77, ..claim(workers(), own) };
    let preference = Preference::Exactly(lease.slot);
    let successor = joined(&*other_server, 3).await;
    let reclaimed = ClaimRequest { member: successor, preference, ..reclaimed };
    let reclaimed = other_server.claim(&reclaimed, now()).await.unwrap().remove(0);
    assert_eq!((reclaimed.slot, reclaimed.term), (lease.slot, lease.term.next()));
    assert_eq!(code(moved(&*orders, &lease, Some(own), 4_000).await), "fenced");
    other_server.release(&reclaimed.unused(), now()).await.unwrap();
    orders.leave(own, now()).await.unwrap();
    assert!(!names(store.members(now()).await.unwrap()).contains(&known_as));
}

/// A server that restarts would otherwise end with exit code 3.
#[tokio::test]
async fn server_takes_its_configured_number_from_a_program() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, ENOUGH).await;
    let bills = remote(BILLS, &[&server]).await;
    let member = joined(&*bills, 1).await;
    let nine = ClaimRequest { preference: Preference::Exactly(9), ..claim(workers(), member) };
    let lease = bills.claim(&nine, now()).await.unwrap().remove(0);

    let settings =
        NodeSettings { worker: Some(9), presence_ttl_ms: TTL_MS, ..common::node_settings() };
    let own = Arc::new(store.handle("all").unwrap());
    let node = Node::open(own, settings, Platform::system()).await.unwrap();
    node.source("default").await.unwrap().mint(1, None, 60_000).await.unwrap();
    let slots = store.workers(now()).await.unwrap();
    let holder = slots.iter().find(|slot| slot.slot == 9).and_then(|slot| slot.holder);
    assert_eq!(holder, node.incarnation());
    assert_eq!(code(moved(&*bills, &lease, Some(member), 1_000).await), "fenced");
    let again = ClaimRequest { request: random::request().unwrap(), ..nine };
    assert_eq!(code(bills.claim(&again, now()).await), "pool_full");
}

/// Servers would send their own token, which may do everything, to the members at these addresses,
/// and hand over sections to them.
#[tokio::test]
async fn member_joined_by_a_token_is_never_a_server() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    let counters = node.source("counters").await.unwrap();
    counters.count(b"alice", 1, 60_000).await.unwrap();
    let (listener, of_server) = (common::any().await, common::any().await);
    let [address, server_address] =
        [&listener, &of_server].map(|at| format!("http={}", at.local_addr().unwrap()));
    for (number, token) in [(1, BILLS), (2, ADMIN)] {
        joined_at(&*remote(token, &[&server]).await, number, &address).await;
    }
    // A member that joined the store itself is a server; a node that sees it has seen all members
    // that joined before.
    joined_at(&store, 3, &server_address).await;
    let servers = || {
        let servers = node.section_assignment().servers().to_vec();
        servers.into_iter().map(|server| server.address).collect::<Vec<_>>()
    };
    let seen = async {
        while !servers().contains(&server_address) {
            BootTimer.sleep_ms(20).await;
        }
    };
    soon(seen).await;
    assert!(!servers().contains(&address), "{:?}", servers());
    assert_eq!(node.others().await.unwrap(), [server_address]);

    let admin = remote(ADMIN, &[&server]).await;
    let known = store.get("numbers").await.unwrap();
    let (spec, identity) = (known.spec, known.identity);
    let new = NewDefinition { name: "numbers".into(), spec, identity, enabled: Some(false) };
    admin.alter(&new, None).await.unwrap();
    // All servers are notified at once: when the real one was notified, so would have been the
    // other.
    drop(soon(of_server.accept()).await.unwrap());
    soon(admin.list()).await.unwrap();
    let connection = listener.accept().now_or_never();
    assert!(connection.is_none(), "{connection:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_with_a_token_finds_itself_and_mints() {
    let store = MemoryStore::new("all").unwrap();
    let (one, _) = serve(&store, ENOUGH).await;
    let (two, _) = serve(&store, ENOUGH).await;
    let settings = NodeSettings { builtin: true, ..common::node_settings() };
    let remote = remote(ADMIN, &[&one, &two]).await;
    let node = Node::open(remote, settings, Platform::system()).await.unwrap();
    node.source("default").await.unwrap().mint(5, None, 60_000).await.unwrap();
    let held = |slots: Vec<snowmint_coord::SlotInfo>, member| {
        slots.into_iter().filter(|slot| slot.holder == member).count()
    };
    assert!(node.incarnation().is_some());
    assert!(held(node.store().workers(now()).await.unwrap(), node.incarnation()) > 0);
    assert_eq!(held(store.workers(now()).await.unwrap(), node.incarnation()), 0);
    let all = store.workers(now()).await.unwrap().len();
    let given_up = held(store.workers(now()).await.unwrap(), None);
    node.close().await.unwrap();
    assert!(held(store.workers(now()).await.unwrap(), None) > given_up, "of {all}");
}

#[tokio::test]
async fn external_leases_need_the_right_over_their_scope() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    node.source("default").await.unwrap().mint(1, None, 60_000).await.unwrap();
    let external_client = ExternalClient { scope: "shop".into(), label: "it".into() };
    let number =
        node.lease_external(&external_client, 10, 600_000, 100, &|_| false).await.unwrap().number;
    let pool = external_pool("shop", 10).unwrap();
    let slots = store.workers(now()).await.unwrap();
    let leased = slots.into_iter().find(|slot| slot.pool == pool.name).unwrap();
    assert_eq!(leased.slot, number);
    let lease = Lease {
        pool: leased.pool,
        slot: leased.slot,
        term: leased.term,
        holder: leased.holder,
        floor: Mark::ZERO,
        mark: leased.mark,
    };
    let bills = remote(BILLS, &[&server]).await;
    let own = joined(&*bills, 1).await;
    assert_eq!(code(bills.claim(&claim(pool.clone(), own), now()).await), "unsupported");
    // Pools of sections and of global order cannot be claimed either.
    for name in ["sections", "another"] {
        let pool = Pool { name: name.into(), reuse: Reuse::Ordered, ..workers() };
        assert_eq!(code(bills.claim(&claim(pool, own), now()).await), "unsupported", "{name}");
    }
    assert_eq!(code(moved(&*bills, &lease, None, Mark::MAX.get() / 2).await), "unsupported");
    assert_eq!(code(bills.release(&lease.unused(), now()).await), "unsupported");
    let slots = vec![(lease.slot, lease.term)];
    let relinquish = Relinquish { pool: pool.name.clone(), member: own, slots };
    assert_eq!(code(bills.relinquish(&relinquish, now()).await), "unsupported");
    let orders = remote(ORDERS, &[&server]).await;
    moved(&*orders, &lease, None, lease.mark.get() + 1).await.unwrap();
}

/// A mark never falls: a program that could send any length, or any bounds, could use up a source
/// for all callers.
#[tokio::test]
async fn client_moves_a_mark_only_as_far_as_the_definition_allows() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    let bills = remote(BILLS, &[&server]).await;
    let admin = remote(ADMIN, &[&server]).await;
    let reserve = async |by: &RemoteStore, name: &str, length, within| {
        let version = store.get(name).await.unwrap().version;
        let source = name.to_owned();
        by.reserve(&Reserve { source, length, definition_version: version, within }).await
    };
    let range = |first| Some(Bounds::Range(NumberInterval { first, end: first + 1_000 }));

    define(&node, "bills", r#"{"kind":"segment"}"#).await;
    define(&node, "bills-wide", r#"{"kind":"segment","step":{"max":3000000}}"#).await;
    for (name, most) in [("bills", 1_000_000), ("bills-wide", 3_000_000)] {
        reserve(&bills, name, most, None).await.unwrap();
        reserve(&bills, name, 1, Some(Bounds::Range(NumberInterval { first: 1, end: u64::MAX })))
            .await
            .unwrap();
        let before = store.get(name).await.unwrap();
        for (length, within, expected) in
            [(1, range(1 << 62), "unsupported"), (1, now_until(u64::MAX), "unsupported")]
        {
            assert_eq!(
                code(reserve(&bills, name, length, within).await),
                expected,
                "{length} {within:?}"
            );
        }
        assert_eq!(store.get(name).await.unwrap(), before);
        for length in [most + 1, u64::MAX >> 1] {
            let reserved = reserve(&bills, name, length, None).await.unwrap();
            assert_eq!(reserved.last - reserved.first, most - 1, "{length}");
        }
        reserve(&admin, name, most + 1, range(1 << 40)).await.unwrap();
        assert_eq!(store.get(name).await.unwrap().segment.mark.get(), (1 << 40) + 1_000);
    }

    let serial = r#"{"kind":"segment","serial":{"date":"yyyyMMdd","width":6}}"#;
    define(&node, "bills-daily", serial).await;
    mints(&bills, "bills-daily").await;
    let today = store.get("bills-daily").await.unwrap().segment.mark.get();
    let in_a_week = range(today + 7_000_000);
    assert_eq!(code(reserve(&bills, "bills-daily", 1, in_a_week).await), "unsupported");
    assert_eq!(code(reserve(&bills, "bills-daily", 1_000_000, None).await), "invalid");
    assert_eq!(store.get("bills-daily").await.unwrap().segment.mark.get(), today);
    mints(&bills, "bills-daily").await;
    // The rest of the day is available, and nothing of the next day.
    let end = today - today % 1_000_000 + 1_000_000;
    let all = Some(Bounds::Range(NumberInterval { first: 1, end: u64::MAX }));
    assert_eq!(reserve(&bills, "bills-daily", 1_000_000, all).await.unwrap().last, end - 1);
    for first in [1, end, end + 1] {
        let onwards = Some(Bounds::Range(NumberInterval { first, end: u64::MAX }));
        assert!(reserve(&bills, "bills-daily", 1, onwards).await.is_err(), "{first}");
        assert_eq!(store.get("bills-daily").await.unwrap().segment.mark.get(), end);
    }

    define(&node, "bills-old", r#"{"kind":"segment","until":50}"#).await;
    for (within, wanted) in [(None, Ok(49)), (all, Err("mark_moved"))] {
        let reserved = reserve(&bills, "bills-old", 100, within).await;
        assert_eq!(reserved.map(|row| row.last).map_err(|error| error.kind().code()), wanted);
        assert_eq!(store.get("bills-old").await.unwrap().segment.mark.get(), 50, "{within:?}");
    }
    define(&node, "bills-keyed", r#"{"kind":"counter"}"#).await;
    for within in [None, range(1 << 40)] {
        assert_eq!(code(reserve(&bills, "bills-keyed", 1, within).await), "invalid");
    }

    let by_store = r#"{"kind":"snowflake","mint":"store","worker":3}"#;
    define(&node, "bills-times", by_store).await;
    for (within, expected) in [(None, "invalid"), (range(1 << 62), "invalid")] {
        assert_eq!(code(reserve(&bills, "bills-times", 1, within).await), expected, "{within:?}");
    }
    let reserved = reserve(&bills, "bills-times", 5_000_000, now_until(u64::MAX)).await.unwrap();
    assert!(reserved.at.unwrap() <= now());
    assert!(reserved.last - reserved.first < 4_096 * 200, "{reserved:?}");
    mints(&bills, "bills-times").await;
}

/// Returns the ticks of a caller that tries to move the mark far.
fn now_until(lead: u64) -> Option<Bounds> {
    let now = UnixMillis::new(now().get() << 8);
    Some(Bounds::Now(Ticks { lead, ..Ticks::of(&Layout::TWITTER, 0, 0, now) }))
}

/// Checks that an honest program gets IDs.
async fn mints(store: &Arc<RemoteStore>, name: &str) {
    let own: Arc<dyn Store> = Arc::clone(store) as _;
    let node = Node::open(own, common::node_settings(), Platform::system()).await.unwrap();
    node.source(name).await.unwrap().mint(5, None, 60_000).await.unwrap();
    node.close().await.unwrap();
}
