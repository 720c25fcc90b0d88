//! A node on the store of servers: its IDs, its calls, and the clock that it trusts.

use crate::common;
use std::sync::Arc;

use snowmint_client::{RemoteStore, Settings};
use snowmint_coord::spec::Kind;
use snowmint_coord::{IdBatch, MemoryStore, Node, NodeSettings, Platform, SourceSpec, Store};
use snowmint_core::{Clock as _, ManualClock, SystemClock};
use snowmint_server::Handle;

/// Long limit: these machines are noisy.
const WITHIN_MS: u64 = 60_000;

/// Starts a server that mints, too: its node is on the store that it offers.
async fn serve(store: &MemoryStore) -> (Handle, Node) {
    let http = common::any().await;
    let address = format!("http={}", http.local_addr().unwrap());
    let settings = NodeSettings { builtin: true, address, ..common::node_settings() };
    let own = Arc::new(store.handle("all").unwrap());
    let node = Node::open(own, settings, Platform::system()).await.unwrap();
    (common::serve(node.clone(), Some(Arc::clone(node.store())), http), node)
}

async fn remote(servers: &[&Handle]) -> Arc<RemoteStore> {
    let addresses: Vec<_> =
        servers.iter().map(|server| server.http().unwrap().to_string()).collect();
    let url = format!("snowmint://{}", addresses.join(","));
    Arc::new(common::open(&url, Settings::default()).await.unwrap())
}

fn numbers(values: IdBatch) -> Vec<u64> {
    match values {
        IdBatch::Numbers(numbers) => numbers,
        IdBatch::Texts(texts) => panic!("{texts:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_with_one_owner_are_served_by_the_servers() {
    let store = MemoryStore::new("all").unwrap();
    let (one, owner) = serve(&store).await;
    let (two, other) = serve(&store).await;
    let remote = remote(&[&one, &two]).await;
    let node = Node::open(remote, common::node_settings(), Platform::system()).await.unwrap();

    let counters = node.source("counters").await.unwrap();
    assert!(counters.is_per_request());
    let here = owner.source("counters").await.unwrap();
    let there = other.source("counters").await.unwrap();
    let mut last = 0;
    for _ in 0..5 {
        let (first, end) = counters.count(b"alice", 3, WITHIN_MS).await.unwrap();
        assert!(first > last && end == first + 2);
        last = end;
        // The servers' own callers continue above: those of the section owner.
        let mut counted = Vec::new();
        for server in [&here, &there] {
            match server.count(b"alice", 1, WITHIN_MS).await {
                Ok((number, _)) => counted.push(number),
                Err(error) => assert_eq!(error.kind().code(), "not_owner", "{error}"),
            }
        }
        assert!(counted.len() == 1 && counted[0] > last, "{counted:?} after {last}");
        last = counted[0];
    }
    assert_eq!(counters.bound_of(b"alice", WITHIN_MS).await.unwrap(), last);
    assert_eq!(counters.section(b"alice").unwrap(), here.section(b"alice").unwrap());
    let minted = counters.mint(2, Some("alice"), WITHIN_MS).await.unwrap();
    assert_eq!(numbers(minted), [last + 1, last + 2]);

    let refused = |error: snowmint_coord::Error| error.kind().code();
    assert_eq!(counters.try_count(b"alice", 1).map_err(refused), Err("unsupported"));
    let no_key = counters.mint(1, None, WITHIN_MS).await;
    assert_eq!(no_key.map_err(refused), Err("invalid"));
    assert_eq!(counters.count(b"", 1, WITHIN_MS).await.map_err(refused), Err("invalid"));
    assert_eq!(counters.count(b"\xff", 1, WITHIN_MS).await.map_err(refused), Err("invalid"));
    assert_eq!(counters.count(b"a", 0, WITHIN_MS).await.map_err(refused), Err("invalid"));
    assert_eq!(counters.count(b"a", 999_999, WITHIN_MS).await.map_err(refused), Err("invalid"));

    let mut spec = SourceSpec::of(Kind::Snowflake);
    spec.order = Some(snowmint_coord::spec::Order::Global);
    node.define("timeline", &spec).await.unwrap();
    let timeline = node.source("timeline").await.unwrap();
    assert!(timeline.is_per_request() && timeline.is_ordered());
    let mut before = 0;
    for _ in 0..5 {
        for id in numbers(timeline.mint(4, None, WITHIN_MS).await.unwrap()) {
            assert!(id > before, "{id} after {before}");
            before = id;
        }
    }
    assert_eq!(timeline.try_mint().map_err(refused), Err("unsupported"));

    // No caller is sent to this process, which owns no section.
    assert_eq!(node.stats().sections, 0);
    assert_eq!(owner.others().await.unwrap().len(), 1);
    assert_eq!(other.others().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_servers_define_built_in_sources() {
    let store = MemoryStore::new("all").unwrap();
    let (server, owner) = serve(&store).await;
    owner.delete("numbers").await.unwrap();
    let settings = NodeSettings { builtin: true, ..common::node_settings() };
    let node = Node::open(remote(&[&server]).await, settings, Platform::system()).await.unwrap();
    let refused = node.source("numbers").await.unwrap_err();
    assert_eq!(refused.kind().code(), "not_found");
    // The server sees a change by this node at once, because it was notified.
    node.define("numbers", &SourceSpec::of(Kind::Segment)).await.unwrap();
    assert_eq!(owner.source("numbers").await.unwrap().name(), "numbers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_clock_is_found_by_the_servers_clocks() {
    let store = MemoryStore::new("all").unwrap();
    let (server, owner) = serve(&store).await;
    let years_ms = 10 * 365 * 24 * 3_600_000;
    for wrong_ms in [years_ms, 3_600_000] {
        let clock = Arc::new(ManualClock::new(SystemClock.unix_ms().saturating_add(wrong_ms)));
        let settings = NodeSettings { open_wait_ms: 60_000, ..common::node_settings() };
        let parts = Platform { clock, ..Platform::system() };
        let node = Node::open(remote(&[&server]).await, settings, parts).await.unwrap();
        let refused = node.source("default").await.unwrap_err();
        let reasons = node.readiness().summary();
        assert!(refused.to_string().contains("the server's clock"), "{refused} ({reasons})");
    }
    let marks = store.handle("all").unwrap().workers(SystemClock.unix_ms()).await.unwrap();
    let ahead = |slot: &snowmint_coord::SlotInfo| {
        slot.pool.starts_with("workers")
            && slot.mark.unix_millis() > SystemClock.unix_ms().saturating_add(600_000)
    };
    assert!(!marks.iter().any(ahead), "no mark was moved by a wrong clock: {marks:?}");
    owner.source("default").await.unwrap().mint(1, None, WITHIN_MS).await.unwrap();
}

/// Returns the address of a relay to a server, and the number of connections over it.
async fn relay(server: &Handle) -> (String, tokio::sync::watch::Receiver<usize>) {
    let listener = common::any().await;
    let address = listener.local_addr().unwrap().to_string();
    let (to, (count, counted)) = (server.http().unwrap(), tokio::sync::watch::channel(0));
    tokio::spawn(async move {
        while let Ok((mut here, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                count.send_modify(|open| *open += 1);
                let mut there = tokio::net::TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
                count.send_modify(|open| *open -= 1);
            });
        }
    });
    (address, counted)
}

/// Servers would also serve their sections to a node after its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_node_leaves_its_servers_and_calls_none() {
    let store = MemoryStore::new("all").unwrap();
    let (server, _owner) = serve(&store).await;
    let (address, mut open) = relay(&server).await;
    let url = format!("snowmint://{address}");
    let remote = common::open(&url, Settings::default()).await.unwrap();
    let remote: Arc<dyn Store> = Arc::new(remote);
    let node = Node::open(remote, common::node_settings(), Platform::system()).await.unwrap();
    let mut spec = SourceSpec::of(Kind::Snowflake);
    spec.order = Some(snowmint_coord::spec::Order::Global);
    node.define("timeline", &spec).await.unwrap();
    node.define("events", &SourceSpec::of(Kind::Uuid)).await.unwrap();
    let counters = node.source("counters").await.unwrap();
    let timeline = node.source("timeline").await.unwrap();
    let events = node.source("events").await.unwrap();
    counters.count(b"alice", 1, WITHIN_MS).await.unwrap();
    timeline.mint(1, None, WITHIN_MS).await.unwrap();
    assert!(*open.borrow() > 0);

    node.close().await.unwrap();
    let ended = [
        counters.count(b"alice", 1, WITHIN_MS).await.map(drop),
        counters.count_each(&[b"alice"], WITHIN_MS).await.map(drop),
        counters.bound_of(b"alice", WITHIN_MS).await.map(drop),
        counters.mint(1, Some("alice"), WITHIN_MS).await.map(drop),
        timeline.mint(1, None, WITHIN_MS).await.map(drop),
        events.mint(1, None, WITHIN_MS).await.map(drop),
    ];
    for ended in ended {
        assert_eq!(ended.map_err(|error| error.kind().code()), Err("closed"));
    }
    let owner_client = node.store().owner_client().unwrap();
    node.store().close().await.unwrap();
    common::soon(open.wait_for(|open| *open == 0)).await.unwrap();
    let late_call = owner_client.count("counters", b"alice", 1, WITHIN_MS).await;
    assert_eq!(late_call.map_err(|error| error.kind().code()), Err("closed"));
    assert_eq!(*open.borrow(), 0);
}
