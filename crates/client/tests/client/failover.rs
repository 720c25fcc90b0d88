//! Unreachable, wrong or slow servers: which calls are retried, which are not, and the errors.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use snowmint_client::{RemoteStore, Settings};
use snowmint_coord::{
    BootTimer, ClaimRequest, Definition, Error, Extend, Mark, Member, MemoryStore, NewDefinition,
    Pool, Preference, Presence, Reserve, Reuse, SlotInfo, SourceSpec, Store, Timer as _,
};
use snowmint_core::UnixMillis;
use snowmint_server::Handle;
use snowmint_testkit::proxy::{Proxy, Way};
use snowmint_testkit::servers::free_port;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;

use crate::common::{self, soon};

const NOW: UnixMillis = UnixMillis::new(1_900_000_000_000);
/// Long limits: only a test of one of them shortens it.
const SETTINGS: Settings = Settings {
    connect_ms: 30_000,
    attempt_ms: 30_000,
    call_ms: 60_000,
    retries_at_once: 100,
    retries_per_second: 100,
};

fn memory(namespace: &str) -> MemoryStore {
    MemoryStore::new(namespace).unwrap()
}

/// Starts a server that offers this store, or none.
async fn serve(offered: Option<MemoryStore>) -> Handle {
    serve_at(offered, common::any().await).await
}

async fn serve_at(offered: Option<MemoryStore>, http: TcpListener) -> Handle {
    let offered = offered.map(|store| Arc::new(store) as _);
    common::serve(common::idle_node().await, offered, http)
}

fn port(server: &Handle) -> u16 {
    server.http().unwrap().port()
}

async fn open(ports: &[u16], settings: Settings) -> snowmint_coord::Result<RemoteStore> {
    let servers: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    common::open(&format!("snowmint://{}", servers.join(",")), settings).await
}

fn numbers() -> NewDefinition {
    NewDefinition {
        name: "numbers".into(),
        spec: "{}".into(),
        identity: SourceSpec::default().identity().unwrap(),
        enabled: None,
    }
}

fn reserve(definition_version: u64) -> Reserve {
    Reserve { source: "numbers".into(), length: 5, definition_version, within: None }
}

fn code<T: std::fmt::Debug>(outcome: snowmint_coord::Result<T>) -> &'static str {
    outcome.unwrap_err().kind().code()
}

#[tokio::test]
async fn next_server_is_used_when_one_is_gone_or_offers_nothing() {
    let store = memory("all");
    let offers = serve(Some(store.handle("all").unwrap())).await;
    let offers_nothing = serve(None).await;
    let gone = free_port();
    // Any of the servers may be the first.
    for _ in 0..8 {
        let remote = open(&[gone, port(&offers_nothing), port(&offers)], SETTINGS).await.unwrap();
        let version = remote.define(&numbers()).await.unwrap().version;
        remote.reserve(&reserve(version)).await.unwrap();
    }
    assert_eq!(store.get("numbers").await.unwrap().segment.mark, Mark::new(41));
    let none_reached = open(&[gone], Settings { call_ms: 500, ..SETTINGS }).await;
    assert_eq!(code(none_reached), "unavailable");
    assert_eq!(code(open(&[port(&offers_nothing)], SETTINGS).await), "unsupported");
}

#[tokio::test]
async fn cause_is_reported_though_the_retries_timed_out() {
    let listener = common::any().await;
    let port = listener.local_addr().unwrap().port();
    let silent = tokio::spawn(async move {
        let mut held = Vec::new();
        // The first few connections are closed at once; later ones wait.
        for _ in 0..4 {
            drop(listener.accept().await.unwrap());
        }
        loop {
            held.push(listener.accept().await.unwrap());
        }
    });
    let settings = Settings { call_ms: 3_000, ..SETTINGS };
    let message = open(&[port], settings).await.unwrap_err().to_string();
    assert!(!message.contains("did not connect within"), "{message}");
    // No other reason is known when one connection used up all the time.
    let message = open(&[port], settings).await.unwrap_err().to_string();
    assert!(message.contains("did not connect within"), "{message}");
    silent.abort();
}

#[tokio::test]
async fn other_store_or_namespace_is_detected() {
    let stores = [memory("all"), memory("all")];
    let mut servers = Vec::new();
    for store in &stores {
        servers.push(serve(Some(store.handle("all").unwrap())).await);
    }
    let other_server = serve(Some(memory("elsewhere"))).await;
    assert_eq!(code(open(&[port(&other_server)], SETTINGS).await), "conflict");
    let (first, later) = (servers[0].http().unwrap(), common::any().await.local_addr().unwrap());
    let remote = open(&[first.port(), later.port()], SETTINGS).await.unwrap();
    // Later, both addresses lead to the other store.
    for server in servers {
        server.stop();
        server.stopped().await;
    }
    let mut servers = Vec::new();
    for address in [first, later] {
        let other = stores[1].handle("all").unwrap();
        servers.push(serve_at(Some(other), TcpListener::bind(address).await.unwrap()).await);
    }
    let refused = remote.identity().await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    assert!(refused.to_string().contains(&first.to_string()), "{refused}");
    assert_eq!(code(remote.define(&numbers()).await), "store_mismatch");
    assert_eq!(stores[1].list().await.unwrap().definitions, []);
}

/// Covers an address that leads to another store later.
#[tokio::test]
async fn replaced_server_is_described_again() {
    let store = memory("all");
    let server = serve(Some(store.handle("all").unwrap())).await;
    let address = server.http().unwrap();
    let remote = open(&[address.port()], SETTINGS).await.unwrap();
    let identity = remote.identity().await.unwrap();
    let restart = async |server: Handle, store: MemoryStore| {
        server.stop();
        server.stopped().await;
        serve_at(Some(store), TcpListener::bind(address).await.unwrap()).await
    };
    let server = restart(server, store.handle("all").unwrap()).await;
    assert_eq!(remote.identity().await.unwrap(), identity, "the same store");
    let server = restart(server, memory("all")).await;
    assert_eq!(code(remote.identity().await), "store_mismatch");
    let _server = restart(server, store).await;
    assert_eq!(remote.identity().await.unwrap(), identity);
}

/// Runs a test from outside of a runtime, where proxies may end.
fn behind_proxies(count: usize, test: impl AsyncFnOnce(MemoryStore, RemoteStore, &[Proxy])) {
    behind_proxies_with(SETTINGS, count, test);
}

fn behind_proxies_with(
    settings: Settings,
    count: usize,
    test: impl AsyncFnOnce(MemoryStore, RemoteStore, &[Proxy]),
) {
    let runtime = Runtime::new().unwrap();
    let store = memory("all");
    let servers: Vec<_> =
        (0..count).map(|_| runtime.block_on(serve(Some(store.handle("all").unwrap())))).collect();
    let proxies: Vec<_> = servers.iter().map(|server| Proxy::start(port(server))).collect();
    let ports: Vec<_> = proxies.iter().map(Proxy::port).collect();
    runtime.block_on(async {
        let remote = open(&ports, settings).await.unwrap();
        test(store, remote, &proxies).await;
    });
    drop(servers);
    runtime.shutdown_timeout(Duration::from_secs(10));
}

#[test]
fn at_most_once_call_is_sent_once() {
    behind_proxies(1, async |store, remote, proxies| {
        let version = store.define(&numbers()).await.unwrap().version;
        assert_eq!(remote.reserve(&reserve(version)).await.unwrap().first, 1);
        // The response is lost after the store has applied the call.
        let lost_when = async |is_done: fn(&Definition) -> bool| {
            proxies[0].hold(Way::ToClient);
            let done = async {
                while !is_done(&store.get("numbers").await.unwrap()) {
                    BootTimer.sleep_ms(10).await;
                }
            };
            soon(done).await;
            proxies[0].cut();
            proxies[0].heal();
        };
        let reserved = lost_when(|numbers| numbers.segment.mark > Mark::new(6));
        let reserve_request = reserve(version);
        let ((), lost) = tokio::join!(reserved, remote.reserve(&reserve_request));
        let lost = lost.unwrap_err();
        assert_eq!(lost.kind().code(), "unavailable");
        assert!(lost.to_string().contains("may have been applied"), "{lost}");
        assert_eq!(remote.get("numbers").await.unwrap().segment.mark, Mark::new(11), "done once");
        let altered = NewDefinition { spec: "{\"a\":1}".into(), ..numbers() };
        let is_altered = lost_when(|numbers| numbers.spec.contains('a'));
        let ((), lost) = tokio::join!(is_altered, remote.alter(&altered, Some(version)));
        assert_eq!(code(lost), "unavailable");
        assert_eq!(remote.get("numbers").await.unwrap().spec, altered.spec);
        let version = remote.get("numbers").await.unwrap().version;
        assert_eq!(remote.reserve(&reserve(version)).await.unwrap().first, 11);
    });
}

/// Each call ends before a connection would be given up.
#[test]
fn short_calls_leave_a_server_that_does_not_connect() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(Some(memory("all"))));
    let proxy = Proxy::start(port(&server));
    runtime.block_on(async {
        let (silent, _silent) = silent().await;
        let settings = Settings { call_ms: 3_000, ..SETTINGS };
        // The first server is chosen by chance.
        let mut opened = Err(Error::unavailable("not tried"));
        while opened.is_err() {
            opened = open(&[silent, proxy.port()], settings).await;
        }
        let remote = opened.unwrap();
        remote.identity().await.unwrap();
        // Each call reaches the silent one, where its time ends.
        proxy.refuse();
        assert_eq!(code(remote.identity().await), "unavailable");
        proxy.heal();
        remote.identity().await.unwrap();
    });
    drop(server);
    runtime.shutdown_timeout(Duration::from_secs(10));
}

#[test]
fn recognised_call_is_repeated_and_applied_once() {
    behind_proxies(2, async |store, remote, proxies| {
        let member = Member {
            incarnation: snowmint_coord::random::incarnation().unwrap(),
            owner: "orders".into(),
            host: String::new(),
            process: 1,
            address: String::new(),
        };
        let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 600_000 };
        remote.join(&member, presence, NOW).await.unwrap();
        let pool = Pool { name: "workers".into(), slots: 8, group: 1, reuse: Reuse::Recycle };
        let claim = ClaimRequest {
            pool,
            member: member.incarnation,
            owner: member.owner,
            count: 1,
            preference: Preference::Any,
            supersedes: None,
            mark_at_most: Mark::MAX,
            request: 77,
        };
        // All responses are lost on every way until the store has applied the call.
        let lost_until = async |is_done: fn(&[SlotInfo]) -> bool| {
            proxies.iter().for_each(|proxy| proxy.hold(Way::ToClient));
            let done = async {
                while !is_done(&store.workers(NOW).await.unwrap()) {
                    BootTimer.sleep_ms(10).await;
                }
            };
            soon(done).await;
            proxies.iter().for_each(|proxy| {
                proxy.cut();
                proxy.heal();
            });
        };
        let claimed = lost_until(|slots| !slots.is_empty());
        let ((), leases) = tokio::join!(claimed, remote.claim(&claim, NOW));
        let lease = leases.unwrap().remove(0);
        assert_eq!(store.workers(NOW).await.unwrap().len(), 1, "claimed once");
        let item = Extend {
            pool: lease.pool,
            slot: lease.slot,
            term: lease.term,
            holder: lease.holder,
            from: lease.mark,
            to: Mark::new(50),
            request: 78,
            ahead_max_ms: None,
        };
        let items = [item.clone()];
        let extended = lost_until(|slots| slots[0].mark == Mark::new(50));
        let ((), moved) = tokio::join!(extended, remote.extend(&items, NOW));
        assert_eq!(moved.unwrap().remove(0).unwrap().mark, Mark::new(50));
        // Without a request number, the store cannot recognise the repeat.
        let items = [Extend { from: Mark::new(50), to: Mark::new(60), request: 0, ..item }];
        let extended = lost_until(|slots| slots[0].mark == Mark::new(60));
        let ((), unknown) = tokio::join!(extended, remote.extend(&items, NOW));
        assert_eq!(code(unknown), "unavailable");
        assert_eq!(store.workers(NOW).await.unwrap()[0].mark, Mark::new(60));
    });
}

#[tokio::test]
async fn servers_of_two_stores_in_one_url_are_rejected() {
    let (one, other) = (serve(Some(memory("all"))).await, serve(Some(memory("all"))).await);
    let gone = free_port();
    for _ in 0..8 {
        let refused = open(&[port(&one), gone, port(&other)], SETTINGS).await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
        for server in [&one, &other] {
            let address = server.http().unwrap().to_string();
            assert!(refused.to_string().contains(&address), "{address}: {refused}");
        }
    }
}

/// A short outage of the servers, with a wrong server in the list, must not cost a worker number.
#[tokio::test]
async fn wrong_server_does_not_replace_unreachable_ones() {
    let store = memory("all");
    let server = serve(Some(store.handle("all").unwrap())).await;
    let (address, later) = (server.http().unwrap(), common::any().await.local_addr().unwrap());
    let brief = Settings { call_ms: 3_000, ..SETTINGS };
    let remote = open(&[address.port(), later.port()], brief).await.unwrap();
    let identity = remote.identity().await.unwrap();
    let _stranger = serve_at(Some(memory("all")), TcpListener::bind(later).await.unwrap()).await;
    server.stop();
    server.stopped().await;
    for _ in 0..2 {
        let away = remote.identity().await.unwrap_err();
        assert_eq!(away.kind().code(), "unavailable", "{away}");
        assert!(away.to_string().contains(&address.to_string()), "{away}");
    }
    let back = async {
        BootTimer.sleep_ms(500).await;
        serve_at(Some(store), TcpListener::bind(address).await.unwrap()).await
    };
    let (found, _server) = tokio::join!(remote.identity(), back);
    assert_eq!(found.unwrap(), identity);
}

/// Returns an address that neither accepts nor rejects connections: its queue is full. A client
/// that found it full still waits after later clients were accepted at another address.
async fn silent() -> (u16, (TcpListener, Vec<TcpStream>)) {
    let other_server = common::any().await;
    let let_in = async || {
        for _ in 0..50 {
            let later = TcpStream::connect(other_server.local_addr().unwrap());
            tokio::try_join!(later, other_server.accept()).unwrap();
        }
    };
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            biased;
            accepted = TcpStream::connect(address) => waiting.push(accepted.unwrap()),
            () = let_in() => return (address.port(), (listener, waiting)),
        }
    }
}

/// The addresses of a name are tried one after the other, and share the time for a connection. So
/// each needs a limit of its own, before the limit for all of them, after which no time is left for
/// the others.
#[tokio::test]
async fn silent_address_leaves_time_for_the_other_addresses() {
    let (port, _silent) = silent().await;
    let settings = Settings { connect_ms: 2_000, call_ms: 2_200, ..SETTINGS };
    let message = open(&[port], settings).await.unwrap_err().to_string();
    assert!(!message.contains("did not connect within"), "{message}");
}

#[test]
fn first_attempt_needs_no_retry_budget() {
    let few = Settings {
        attempt_ms: 1_000,
        call_ms: 20_000,
        retries_at_once: 4,
        retries_per_second: 1,
        ..SETTINGS
    };
    behind_proxies_with(few, 2, async |store, remote, proxies| {
        store.define(&numbers()).await.unwrap();
        // One of the proxies is the first to be called.
        for proxy in proxies {
            proxy.hold(Way::ToClient);
            let results = join_all((0..50).map(|_| remote.get("numbers"))).await;
            let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
            assert!(failed.is_empty(), "{} of 50: {}", failed.len(), failed[0]);
            proxy.cut();
            proxy.heal();
        }
    });
}
