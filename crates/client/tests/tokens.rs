//! Programs by different tokens: each speaks for itself alone.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use snowmint_client::{Credentials, Parts as Shown, RemoteStore, Settings};
use snowmint_coord::lend::{Borrower, lent_pool};
use snowmint_coord::segment::Within;
use snowmint_coord::{
    BootTimer, Bounds, ClaimRequest, Extend, Incarnation, Lease, LetGo, Mark, Member, MemoryStore,
    NewDefinition, Node, NodeSettings, Parts, Pool, Presence, Release, Reserve, Retry, Reuse,
    SourceSpec, Store, Ticks, Timer as _, Wish, random,
};
use snowmint_core::{Clock as _, Layout, SystemClock, UnixMillis};
use snowmint_server::{Access, Handle, TokenHash, TokenSettings, Tokens};

use self::common::SETTINGS;

const ORDERS: &str = "orders-0123456789abcdef0123456789";
const BILLS: &str = "bills-0123456789abcdef0123456789";
const ADMIN: &str = "admin-0123456789abcdef0123456789";
const ENOUGH: &str = "10000000/s *";

fn access(rate: &str) -> Access {
    let token = |name: &str, secret: &str, grant: &str, rate: &str| {
        let token = TokenSettings {
            hashes: vec![TokenHash::of(secret.as_bytes()).to_string()],
            grants: vec![grant.to_owned()],
            rates: vec![rate.to_owned()],
            ..TokenSettings::default()
        };
        (name.to_owned(), token)
    };
    let tokens = [
        token("orders", ORDERS, "mint,reserve *", ENOUGH),
        token("bills", BILLS, "mint,reserve bills*", rate),
        token("admin", ADMIN, "mint,reserve,decode,admin *", ENOUGH),
    ];
    let tokens = Tokens { tokens: tokens.into(), peers: Vec::new(), open_metrics: false };
    Access::new("all", &tokens, Arc::new(BootTimer)).unwrap()
}

/// A server on this store, which mints, too.
async fn serve(store: &MemoryStore, rate: &str) -> (Handle, Node) {
    let http = common::any().await;
    let address = format!("http={}", http.local_addr().unwrap());
    let settings = NodeSettings { address, builtin: true, ..NodeSettings::default() };
    let own = Arc::new(store.handle("all").unwrap());
    let node = Node::open(own, settings, Parts::system()).await.unwrap();
    let offered = Some(Arc::clone(node.store()));
    (common::serve_for(Some(access(rate)), node.clone(), offered, http), node)
}

async fn remote(token: &str, servers: &[&Handle]) -> Arc<RemoteStore> {
    remote_with(token, servers, SETTINGS).await
}

async fn remote_with(token: &str, servers: &[&Handle], settings: Settings) -> Arc<RemoteStore> {
    let addresses: Vec<_> =
        servers.iter().map(|server| server.http().unwrap().to_string()).collect();
    let url = format!("snowmint://{}", addresses.join(","));
    let shown = Shown { credentials: Credentials::new().token(token), ..Shown::default() };
    Arc::new(RemoteStore::open_with(&url, "all", settings, shown).await.unwrap())
}

fn now() -> UnixMillis {
    SystemClock.unix_ms()
}

fn presence() -> Presence {
    Presence { sample: now(), renewals: 1, ttl_ms: 600_000 }
}

fn code<T: std::fmt::Debug>(outcome: snowmint_coord::Result<T>) -> &'static str {
    outcome.unwrap_err().kind().code()
}

fn workers() -> Pool {
    Pool { name: "workers-9".into(), slots: 512, group: 1, reuse: Reuse::Recycle }
}

fn claim(pool: Pool, member: Incarnation) -> ClaimRequest {
    ClaimRequest {
        pool,
        member,
        owner: "it".into(),
        count: 1,
        wish: Wish::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: random::request().unwrap(),
    }
}

async fn joined(store: &dyn Store, number: u128) -> Incarnation {
    joined_at(store, number, "").await
}

/// A member that says that it is reached at this address.
async fn joined_at(store: &dyn Store, number: u128, address: &str) -> Incarnation {
    let incarnation = Incarnation::new(number);
    let (owner, host, address) = ("it".into(), "here".into(), address.to_owned());
    let member = Member { incarnation, owner, host, process: 1, address };
    store.join(&member, presence(), now()).await.unwrap();
    incarnation
}

/// A member with a slot, whose mark is at 1,000.
async fn holding(store: &dyn Store, number: u128) -> (Incarnation, Lease) {
    let member = joined(store, number).await;
    let lease = store.claim(&claim(workers(), member), now()).await.unwrap().remove(0);
    moved(store, &lease, Some(member), 1_000).await.unwrap();
    (member, Lease { mark: Mark::new(1_000), ..lease })
}

async fn moved(
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

/// All that somebody by another token can say about a member, under each name that there is to be seen.
async fn harms(store: &dyn Store, names: &[Incarnation], lease: &Lease) {
    let own = joined(store, 666).await;
    for &name in names {
        assert_eq!(code(store.renew(name, presence(), now()).await), "not_found");
        // To leave is to be gone, whoever says it of nobody.
        store.leave(name, now()).await.unwrap();
        assert_eq!(code(store.claim(&claim(workers(), name), now()).await), "not_found");
        let exactly = Wish::Exactly(lease.slot);
        let supersedes = Some(name);
        let claim = ClaimRequest { supersedes, wish: exactly, ..claim(workers(), own) };
        assert_eq!(code(store.claim(&claim, now()).await), "pool_full");
    }
    for &name in names.iter().chain([&own]) {
        assert_eq!(code(moved(store, lease, Some(name), 5_000).await), "fenced");
        let sent = Release { holder: Some(name), mark: lease.floor, ..lease.unused() };
        assert_eq!(code(store.release(&sent, now()).await), "fenced");
    }
    assert_eq!(code(moved(store, lease, None, 5_000).await), "unsupported", "he must say for whom");
    let sent = Release { holder: None, ..lease.unused() };
    assert_eq!(code(store.release(&sent, now()).await), "unsupported");
    let let_go =
        LetGo { pool: lease.pool.clone(), member: own, slots: vec![(lease.slot, lease.term)] };
    assert_eq!(code(store.let_go(&let_go, now()).await), "unsupported", "not an operator");
    store.leave(own, now()).await.unwrap();
}

#[tokio::test]
async fn nobody_speaks_for_the_members_of_another_token_or_of_the_servers() {
    let store = MemoryStore::new("all").unwrap();
    let (one, _) = serve(&store, ENOUGH).await;
    let (two, _) = serve(&store, ENOUGH).await;
    let orders = remote(ORDERS, &[&one]).await;
    let bills = remote(BILLS, &[&one]).await;
    let (own, lease) = holding(&*orders, 1).await;
    let (servers, of_server) = holding(&store, 2).await;

    // Lists name a member by what it is known as, and itself by its own name.
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

    // Programs by the same token are of one mind, whichever server they ask.
    let elsewhere = remote(ORDERS, &[&two]).await;
    elsewhere.renew(own, presence(), now()).await.unwrap();
    let mark = moved(&*elsewhere, &lease, Some(own), 2_000).await.unwrap();
    // Whoever operates the store may do so by the term.
    let admin = remote(ADMIN, &[&one]).await;
    let mark = moved(&*admin, &Lease { mark, ..lease.clone() }, None, 3_000).await.unwrap();
    let lease = Lease { mark, ..lease };
    let anew = ClaimRequest { supersedes: Some(own), request: 77, ..claim(workers(), own) };
    let wish = Wish::Exactly(lease.slot);
    let successor = joined(&*elsewhere, 3).await;
    let anew = ClaimRequest { member: successor, wish, ..anew };
    let anew = elsewhere.claim(&anew, now()).await.unwrap().remove(0);
    assert_eq!((anew.slot, anew.term), (lease.slot, lease.term.next()));
    assert_eq!(code(moved(&*orders, &lease, Some(own), 4_000).await), "fenced");
    elsewhere.release(&anew.unused(), now()).await.unwrap();
    orders.leave(own, now()).await.unwrap();
    assert!(!names(store.members(now()).await.unwrap()).contains(&known_as));
}

/// Servers show the members at these addresses their own token, which may do everything, and give up sections to them.
#[tokio::test]
async fn who_joins_by_a_token_is_no_server_whatever_address_it_says() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    let counters = node.source("counters").await.unwrap();
    counters.count(b"alice", 1, 60_000).await.unwrap();
    let listener = common::any().await;
    let address = format!("http={}", listener.local_addr().unwrap());
    for (number, token) in [(1, BILLS), (2, ADMIN)] {
        joined_at(&*remote(token, &[&server]).await, number, &address).await;
    }
    // Whoever is in the store itself is one; whoever sees him has seen all who came before.
    joined_at(&store, 3, "http=server:7700").await;
    let servers = || {
        let servers = node.shares().servers().to_vec();
        servers.into_iter().map(|server| server.address).collect::<Vec<_>>()
    };
    while !servers().contains(&"http=server:7700".to_owned()) {
        BootTimer.sleep_ms(20).await;
    }
    assert!(!servers().contains(&address), "{:?}", servers());
    assert_eq!(node.others().await.unwrap(), ["http=server:7700"]);

    let admin = remote(ADMIN, &[&server]).await;
    let known = store.get("numbers").await.unwrap();
    let (spec, identity) = (known.spec, known.identity);
    let new = NewDefinition { name: "numbers".into(), spec, identity, enabled: Some(false) };
    admin.alter(&new, None).await.unwrap();
    let told = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(told.is_err(), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_by_a_token_finds_itself_and_mints() {
    let store = MemoryStore::new("all").unwrap();
    let (one, _) = serve(&store, ENOUGH).await;
    let (two, _) = serve(&store, ENOUGH).await;
    let settings = NodeSettings { builtin: true, ..NodeSettings::default() };
    let remote = remote(ADMIN, &[&one, &two]).await;
    let node = Node::open(remote, settings, Parts::system()).await.unwrap();
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
async fn numbers_that_are_lent_are_for_those_who_may_lend_in_their_space() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    node.source("default").await.unwrap().mint(1, None, 60_000).await.unwrap();
    let borrower = Borrower { space: "shop".into(), label: "it".into() };
    let number = node.lend(&borrower, 10, 600_000, 100).await.unwrap().number;
    let pool = lent_pool("shop", 10).unwrap();
    let slots = store.workers(now()).await.unwrap();
    let lent = slots.into_iter().find(|slot| slot.pool == pool.name).unwrap();
    assert_eq!(lent.slot, number);
    let lease = Lease {
        pool: lent.pool,
        slot: lent.slot,
        term: lent.term,
        holder: lent.holder,
        floor: Mark::ZERO,
        mark: lent.mark,
    };
    let bills = remote(BILLS, &[&server]).await;
    let own = joined(&*bills, 1).await;
    assert_eq!(code(bills.claim(&claim(pool.clone(), own), now()).await), "unsupported");
    // What servers count and order by is not claimed either.
    for name in ["sections", "another"] {
        let pool = Pool { name: name.into(), reuse: Reuse::Ordered, ..workers() };
        assert_eq!(code(bills.claim(&claim(pool, own), now()).await), "unsupported", "{name}");
    }
    assert_eq!(code(moved(&*bills, &lease, None, Mark::MAX.get() / 2).await), "unsupported");
    assert_eq!(code(bills.release(&lease.unused(), now()).await), "unsupported");
    let slots = vec![(lease.slot, lease.term)];
    let let_go = LetGo { pool: pool.name.clone(), member: own, slots };
    assert_eq!(code(bills.let_go(&let_go, now()).await), "unsupported");
    let orders = remote(ORDERS, &[&server]).await;
    moved(&*orders, &lease, None, lease.mark.get() + 1).await.unwrap();
}

/// A mark never goes back: whoever could say any length, or any bounds, could end a source for everybody.
#[tokio::test]
async fn a_program_moves_a_mark_as_far_as_the_definition_has_programs_move_it() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, ENOUGH).await;
    let bills = remote(BILLS, &[&server]).await;
    let admin = remote(ADMIN, &[&server]).await;
    let reserve = async |by: &RemoteStore, name: &str, length, within| {
        let version = store.get(name).await.unwrap().version;
        let source = name.to_owned();
        by.reserve(&Reserve { source, length, definition_version: version, within }).await
    };
    let range = |first| Some(Bounds::Range(Within { first, end: first + 1_000 }));

    define(&node, "bills", r#"{"kind":"segment"}"#).await;
    define(&node, "bills-wide", r#"{"kind":"segment","step":{"max":3000000}}"#).await;
    for (name, most) in [("bills", 1_000_000), ("bills-wide", 3_000_000)] {
        reserve(&bills, name, most, None).await.unwrap();
        reserve(&bills, name, 1, Some(Bounds::Range(Within { first: 1, end: u64::MAX })))
            .await
            .unwrap();
        let before = store.get(name).await.unwrap();
        for (length, within, why) in
            [(1, range(1 << 62), "unsupported"), (1, now_until(u64::MAX), "unsupported")]
        {
            assert_eq!(
                code(reserve(&bills, name, length, within).await),
                why,
                "{length} {within:?}"
            );
        }
        assert_eq!(store.get(name).await.unwrap(), before);
        for length in [most + 1, u64::MAX >> 1] {
            let taken = reserve(&bills, name, length, None).await.unwrap();
            assert_eq!(taken.last - taken.first, most - 1, "{length}");
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
    // What is left of the day, and nothing of the next.
    let end = today - today % 1_000_000 + 1_000_000;
    let all = Some(Bounds::Range(Within { first: 1, end: u64::MAX }));
    assert_eq!(reserve(&bills, "bills-daily", 1_000_000, all).await.unwrap().last, end - 1);
    for first in [1, end, end + 1] {
        let onwards = Some(Bounds::Range(Within { first, end: u64::MAX }));
        assert!(reserve(&bills, "bills-daily", 1, onwards).await.is_err(), "{first}");
        assert_eq!(store.get("bills-daily").await.unwrap().segment.mark.get(), end);
    }

    define(&node, "bills-old", r#"{"kind":"segment","until":50}"#).await;
    for within in [None, all] {
        let _ = reserve(&bills, "bills-old", 100, within).await;
        assert_eq!(store.get("bills-old").await.unwrap().segment.mark.get(), 50, "{within:?}");
    }
    define(&node, "bills-keyed", r#"{"kind":"counter"}"#).await;
    for within in [None, range(1 << 40)] {
        assert_eq!(code(reserve(&bills, "bills-keyed", 1, within).await), "invalid");
    }

    let by_store = r#"{"kind":"snowflake","mint":"store","worker":3}"#;
    define(&node, "bills-times", by_store).await;
    for (within, why) in [(None, "invalid"), (range(1 << 62), "invalid")] {
        assert_eq!(code(reserve(&bills, "bills-times", 1, within).await), why, "{within:?}");
    }
    let taken = reserve(&bills, "bills-times", 5_000_000, now_until(u64::MAX)).await.unwrap();
    assert!(taken.at.unwrap() <= now());
    assert!(taken.last - taken.first < 4_096 * 200, "{taken:?}");
    mints(&bills, "bills-times").await;
}

/// Ticks as somebody says who means to move the mark far.
fn now_until(lead: u64) -> Option<Bounds> {
    let now = UnixMillis::new(now().get() << 8);
    Some(Bounds::Now(Ticks { lead, ..Ticks::of(&Layout::TWITTER, 0, 0, now) }))
}

async fn define(node: &Node, name: &str, spec: &str) {
    node.define(name, &SourceSpec::from_json(spec).unwrap()).await.unwrap();
}

/// A program that means well gets IDs.
async fn mints(store: &Arc<RemoteStore>, name: &str) {
    let own: Arc<dyn Store> = Arc::clone(store) as _;
    let node = Node::open(own, NodeSettings::default(), Parts::system()).await.unwrap();
    node.source(name).await.unwrap().mint(5, None, 60_000).await.unwrap();
    node.close().await.unwrap();
}

#[tokio::test]
async fn what_a_program_reserves_is_counted_against_its_rate() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _) = serve(&store, "10/h burst=100 *").await;
    let spec = r#"{"kind":"segment"}"#.to_owned();
    let new = NewDefinition { name: "bills".into(), identity: spec.clone(), spec, enabled: None };
    let version = store.define(&new).await.unwrap().version;
    let within = None;
    let wanted =
        |length| Reserve { source: "bills".into(), length, definition_version: version, within };
    let settings = Settings { call_ms: 1_000, ..SETTINGS };
    let url = format!("snowmint://{}", server.http().unwrap());
    let shown = Shown { credentials: Credentials::new().token(BILLS), ..Shown::default() };
    let bills = RemoteStore::open_with(&url, "all", settings, shown).await.unwrap();
    let first = bills.reserve(&wanted(90)).await.unwrap();
    assert_eq!(first.last - first.first, 89);
    let refused = bills.reserve(&wanted(90)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    assert_eq!(store.get("bills").await.unwrap().segment.mark, Mark::new(first.last + 1));
    // More than there can ever be at once: as many as that.
    let refused = bills.reserve(&wanted(1_000)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    // Another's is another count.
    let orders = remote(ORDERS, &[&server]).await;
    orders.reserve(&wanted(1_000)).await.unwrap();
}

/// Over its rate a program asks again when it may, and not at all where that is too late for the call. No other call's
/// repeats are used up for it.
#[tokio::test]
async fn a_program_over_its_rate_asks_again_when_it_may() {
    let within_ms = 10_000;
    let none_left = Settings { retries_at_once: 0, call_ms: within_ms, ..SETTINGS };
    for (rate, comes) in [("2/s burst=1 *", true), ("1/h *", false)] {
        let store = MemoryStore::new("all").unwrap();
        let (server, node) = serve(&store, rate).await;
        define(&node, "bills", r#"{"kind":"counter"}"#).await;
        define(&node, "bills-rows", r#"{"kind":"segment"}"#).await;
        let bills = remote_with(BILLS, &[&server], none_left).await;
        let owners = bills.owners().unwrap();
        let count = async || owners.count("bills", b"alice", 1, within_ms).await.map(|_| ());
        let reserve = async || {
            let definition_version = store.get("bills-rows").await?.version;
            let source = "bills-rows".into();
            let row = Reserve { source, length: 1, definition_version, within: None };
            bills.reserve(&row).await.map(|_| ())
        };
        // Each source has a rate of its own.
        count().await.unwrap();
        reserve().await.unwrap();
        for by_the_store in [false, true] {
            let begun = BootTimer.elapsed();
            let next = if by_the_store { reserve().await } else { count().await };
            assert_eq!(next.is_ok(), comes, "{rate}: {next:?}");
            let took_ms = BootTimer.elapsed().since(begun);
            assert!(took_ms < within_ms / 2, "{rate}: {took_ms} ms");
            if let Err(error) = next {
                assert!(matches!(error.retry(), Retry::AfterMs(1_800_000..)), "{error:?}");
            }
        }
    }
}

/// Nobody has got the numbers of a call that was refused.
#[tokio::test]
async fn numbers_that_were_refused_for_a_rate_are_not_lost() {
    let store = MemoryStore::new("all").unwrap();
    let (server, node) = serve(&store, "1/h burst=10 *").await;
    define(&node, "bills", r#"{"kind":"segment","step":{"rule":"fixed","size":10}}"#).await;
    let own: Arc<dyn Store> = remote(BILLS, &[&server]).await;
    let node = Node::open(own, NodeSettings::default(), Parts::system()).await.unwrap();
    let source = node.source("bills").await.unwrap();
    source.mint(10, None, 60_000).await.unwrap();
    let refused = source.mint(1, None, 2_000).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused}");
    let numbers = source.stats().numbers.unwrap();
    assert_eq!((numbers.fetched, numbers.lost), (10, 0), "{numbers:?}");
}

/// How many numbers are fetched at once follows the pace and the definition, and knows of no rate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_within_its_rate_gets_what_it_asks_for_whatever_is_fetched_at_once() {
    for spec in
        [r#"{"kind":"segment"}"#, r#"{"kind":"segment","step":{"rule":"fixed","size":900}}"#]
    {
        let store = MemoryStore::new("all").unwrap();
        let (server, node) = serve(&store, "200/s *").await;
        define(&node, "bills", spec).await;
        let own: Arc<dyn Store> = remote(BILLS, &[&server]).await;
        let program = Node::open(own, NodeSettings::default(), Parts::system()).await.unwrap();
        let bills = program.source("bills").await.unwrap();
        // At this pace, ten seconds take 1,000 and more.
        for _ in 0..100 {
            bills.mint(5, None, 10_000).await.unwrap();
            BootTimer.sleep_ms(40).await;
        }
        // Fewer in a row are no row.
        let refused = bills.row(3_000, 10_000).await.unwrap_err();
        assert_eq!(refused.kind().code(), "too_many", "{refused}");
        assert!(refused.to_string().contains("200"), "{refused}");
        program.close().await.unwrap();
    }
}
