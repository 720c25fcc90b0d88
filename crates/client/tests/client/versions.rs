//! Servers of other versions in one cluster: one with an older form of `snowmint.store.v1`, and one
//! with a newer form. Both have their own wire messages, and forward to a real server.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_client::RemoteStore;
use snowmint_coord::spec::Kind;
use snowmint_coord::store::{StoreConnector, StoreConnectors};
use snowmint_coord::{
    Exclude, Extend, IdBatch, Mark, MemoryStore, NewDefinition, Node, NodeSettings, Platform, Pool,
    Reuse, SourceSpec, SourceState, Store, Term,
};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_server::Handle;
use snowmint_store_rpc::StoreRequest as _;
use snowmint_wire::grpc::store as proto;
use tokio::net::TcpListener;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::between::{self, Between, Form};
use crate::common::{self, SETTINGS};

/// Long limit: these machines are noisy.
const WITHIN_MS: u64 = 60_000;

/// A server of the tested version, which mints, too.
struct Now {
    handle: Handle,
    node: Node,
}

impl Now {
    async fn start(store: &MemoryStore, http: TcpListener) -> Self {
        Self::start_with_secondary(store, http, StoreConnectors::new()).await
    }

    async fn start_with_secondary(
        store: &MemoryStore,
        http: TcpListener,
        secondary_stores: StoreConnectors,
    ) -> Self {
        let address = format!("http={}", http.local_addr().unwrap());
        let settings =
            NodeSettings { builtin: true, address, secondary_stores, ..common::node_settings() };
        let own = Arc::new(store.handle("all").unwrap());
        let node = Node::open(own, settings, Platform::system()).await.unwrap();
        let handle = common::serve(node.clone(), Some(Arc::clone(node.store())), http);
        Self { handle, node }
    }

    fn address(&self) -> String {
        self.handle.http().unwrap().to_string()
    }

    async fn stop(self) {
        self.handle.stop();
        self.handle.stopped().await;
        self.node.close().await.unwrap();
    }
}

/// A secondary store in a server's configuration.
#[derive(Debug)]
struct MemoryConnector(MemoryStore);

#[async_trait]
impl StoreConnector for MemoryConnector {
    async fn open(&self) -> snowmint_coord::Result<Arc<dyn Store>> {
        Ok(Arc::new(self.0.handle("all")?))
    }
}

async fn remote(addresses: &[&str]) -> Arc<RemoteStore> {
    let url = format!("snowmint://{}", addresses.join(","));
    Arc::new(common::open(&url, SETTINGS).await.unwrap())
}

/// A program that mints through servers, and the numbers that it has seen.
struct Program {
    node: Node,
    seen: HashSet<u64>,
    counted: u64,
}

impl Program {
    async fn open(addresses: &[&str]) -> Self {
        let store = remote(addresses).await;
        let node = Node::open(store, common::node_settings(), Platform::system()).await.unwrap();
        Self { node, seen: HashSet::new(), counted: 0 }
    }

    /// Mints some of everything, and checks that all of it is new.
    async fn round(&mut self) {
        for (source, key) in [("default", None), ("numbers", None), ("counters", Some("alice"))] {
            let source = self.node.source(source).await.unwrap();
            let IdBatch::Numbers(ids) = source.mint(20, key, WITHIN_MS).await.unwrap() else {
                panic!("texts")
            };
            match key {
                None => ids.into_iter().for_each(|id| assert!(self.seen.insert(id), "{id} twice")),
                Some(_) => {
                    assert!(ids[0] > self.counted, "{} after {}", ids[0], self.counted);
                    self.counted = *ids.last().unwrap();
                }
            }
        }
    }
}

/// Sends a message to a method, without the checks of a client.
async fn send<Q, A>(server: &Now, path: &'static str, message: Request<Q>) -> Result<A, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address())).unwrap();
    let mut grpc = Grpc::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    Ok(grpc.unary(message, PathAndQuery::from_static(path), codec).await?.into_inner())
}

fn refused<T: std::fmt::Debug>(outcome: snowmint_coord::Result<T>) -> (&'static str, String) {
    let error = outcome.unwrap_err();
    (error.kind().code(), error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_client_mints_through_servers_of_three_versions() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    let older = Between::start(Form::Older, &now.address(), "127.0.0.1:0").await;
    let newer = Between::start(Form::Newer, &now.address(), "127.0.0.1:0").await;
    let (old, this, new) = (older.address(), now.address(), newer.address());
    // Each version alone, upgraded and downgraded on the same numbers; then all together.
    for addresses in [&[&*old][..], &[&*this], &[&*new], &[&*old], &[&*old, &*this, &*new]] {
        let mut program = Program::open(addresses).await;
        for _ in 0..3 {
            program.round().await;
        }
        program.node.close().await.unwrap();
    }
    assert!(older.passed() > 10 && newer.passed() > 10, "both were asked");
    now.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_unknown_to_another_version_is_reported() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    let older = Between::start(Form::Older, &now.address(), "127.0.0.1:0").await;
    let newer = Between::start(Form::Newer, &now.address(), "127.0.0.1:0").await;
    let pool = Pool { name: "workers-10".into(), slots: 1024, group: 1, reuse: Reuse::Recycle };
    let (slots, label) = (vec![7], "another system".to_owned());
    let exclude = Exclude { pool, slots, until: Mark::MAX, label };

    // A verb that an older server lacks: the error says so, or another server is called where there
    // is one.
    let clock = SystemClock.unix_ms();
    let (code, message) = refused(remote(&[&older.address()]).await.exclude(&exclude, clock).await);
    assert_eq!(code, "unsupported");
    let path = "does not support /snowmint.store.v1.Store/Exclude; update the server";
    assert!(message.contains(path), "{message}");
    for _ in 0..4 {
        remote(&[&older.address(), &now.address()]).await.exclude(&exclude, clock).await.unwrap();
    }

    // Values of a newer server that are unknown here.
    let remote = remote(&[&newer.address()]).await;
    let (code, message) = refused(remote.get(between::REFUSED).await);
    assert_eq!((code, message.contains("too blue")), ("unsupported", true), "{message}");
    let (code, message) = refused(remote.get(between::IN_ANOTHER_STATE).await);
    assert_eq!(code, "unsupported");
    assert!(message.contains("unknown to this version") && message.contains("update"), "{message}");
    // In a list it appears as disabled; the other sources are unchanged.
    let listed = remote.list().await.unwrap().definitions;
    let state = |name: &str| listed.iter().find(|source| source.name == name).map(|it| it.state);
    assert_eq!(state(between::IN_ANOTHER_STATE), Some(SourceState::Disabled));
    assert_eq!(state("default"), Some(SourceState::Enabled));
    now.stop().await;
}

/// A side of version 1 would take a rolled back store for a call that the other does not support.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn version_with_other_codes_is_rejected_by_both_sides() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    let first = Between::start(Form::First, &now.address(), "127.0.0.1:0").await;
    let url = format!("snowmint://{}", first.address());
    let (code, message) = refused(common::open(&url, SETTINGS).await);
    assert_eq!(code, "unsupported");
    assert!(
        message.contains("speaks version 1") && message.contains("update the server"),
        "{message}"
    );
    for version in [0, 1] {
        let question = proto::DescribeRequest { version, ..proto::DescribeRequest::default() };
        let described = send(&now, proto::DESCRIBE, Request::new(question)).await;
        let status = described.map(|_: proto::DescribeResponse| ()).unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unimplemented, "{status:?}");
        for part in ["speaks version 1 of", "update the program"] {
            assert!(status.message().contains(part), "{status:?}");
        }
    }
    now.stop().await;
}

/// Servers lead to their configured secondary stores; an older server is skipped, or the error
/// names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_server_leads_to_no_secondary_store() {
    let (own, secondary_store) =
        (MemoryStore::new("all").unwrap(), MemoryStore::new("all").unwrap());
    let at: Arc<dyn StoreConnector> =
        Arc::new(MemoryConnector(secondary_store.handle("all").unwrap()));
    let now =
        Now::start_with_secondary(&own, common::any().await, [("a".to_owned(), at)].into()).await;
    let older = Between::start(Form::Older, &now.address(), "127.0.0.1:0").await;
    let (old, this) = (older.address(), now.address());
    let found = |addresses: Vec<String>, name: &'static str| async move {
        let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
        let place = remote(&addresses).await.secondary_store(name).unwrap();
        place.open().await
    };
    let (code, message) = refused(found(vec![old.clone()], "a").await);
    assert_eq!(code, "unsupported");
    assert!(
        message.contains("does not know secondary stores") && message.contains("update"),
        "{message}"
    );
    for addresses in [vec![this.clone()], vec![old, this.clone()]] {
        let store = found(addresses, "a").await.unwrap();
        // Handles write new starts meanwhile, each in its own time.
        let found = store.identity().await.unwrap().store();
        assert_eq!(found, secondary_store.identity().await.unwrap().store());
        assert_ne!(found, own.identity().await.unwrap().store());
        assert!(store.secondary_store("a").is_none(), "it leads no further");
    }
    let (code, message) = refused(found(vec![this], "absent").await);
    assert_eq!((code, message.contains("absent")), ("not_found", true), "{message}");
    now.stop().await;
}

/// Covers a source that a newer version has defined with a key that this version does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_definition_does_not_affect_other_sources() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    now.node.define("orders", &SourceSpec::of(Kind::Segment)).await.unwrap();
    let text = |text: &str| text.to_owned();
    let spec = text(r#"{"kind":"segment","colour":"blue"}"#);
    let new = NewDefinition {
        name: text("odd"),
        spec,
        identity: text(r#"{"kind":"segment"}"#),
        enabled: None,
    };
    store.handle("all").unwrap().define(&new).await.unwrap();
    for node in [&now.node, &Program::open(&[&now.address()]).await.node] {
        let listed = node.sources().await.unwrap();
        let names: Vec<_> = listed.sources.iter().map(|source| source.name.as_str()).collect();
        assert_eq!(names, ["counters", "default", "numbers", "orders"]);
        let [(name, error)] = &listed.unreadable[..] else { panic!("{:?}", listed.unreadable) };
        assert_eq!(name, "odd");
        assert!(error.to_string().contains("colour"), "{error}");
        assert!(node.source("odd").await.is_err());
        node.source("orders").await.unwrap().mint(1, None, WITHIN_MS).await.unwrap();
    }
    now.stop().await;
}

/// The server is the older one, and its caller sends values that only a newer server knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_server_reports_that_it_is_older() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    let question = proto::DescribeRequest { version: 9, ..proto::DescribeRequest::default() };
    let described = send(&now, proto::DESCRIBE, Request::new(question)).await;
    let described: proto::DescribeResponse = described.unwrap();
    assert_eq!(described.version, proto::VERSION);
    let unknown = proto::SetStateRequest { name: "default".into(), state: 9 };
    let mut unknown = Request::new(unknown);
    unknown.metadata_mut().insert(proto::INSTANCE, described.instance.parse().unwrap());
    let outcome = send(&now, proto::SetStateRequest::PATH, unknown).await;
    let status = outcome.map(|_: proto::DefinitionResponse| ()).unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented, "{status:?}");
    assert!(status.message().contains("unknown to this version"), "{status:?}");
    assert_eq!(store.get("default").await.unwrap().state, SourceState::Enabled);
    now.stop().await;
}

/// Servers of an older form are replaced one after the other while a program mints: no failure, no
/// number twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_upgraded_one_by_one_and_back() {
    let store = MemoryStore::new("all").unwrap();
    let mut inner = Vec::new();
    let mut outer = Vec::new();
    for _ in 0..3 {
        let now = Now::start(&store, common::any().await).await;
        outer.push(Between::start(Form::Older, &now.address(), "127.0.0.1:0").await);
        inner.push(now);
    }
    let addresses: Vec<_> = outer.iter().map(Between::address).collect();
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let mut program = Program::open(&addresses).await;
    for form in [Form::Newer, Form::Older] {
        for (at, address) in addresses.iter().enumerate() {
            program.round().await;
            outer.remove(0).stop().await;
            program.round().await;
            inner.remove(0).stop().await;
            program.round().await;
            let now = Now::start(&store, common::any().await).await;
            outer.push(Between::start(form, &now.address(), address).await);
            inner.push(now);
            program.round().await;
            assert_eq!(inner.len(), 3, "{at}");
        }
    }
    assert!(program.seen.len() > 900, "{}", program.seen.len());
    program.node.close().await.unwrap();
    for now in inner {
        now.stop().await;
    }
}

/// One server cannot reach its store, the other can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_counts_through_a_server_that_reaches_its_store() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    let cut_off = Between::start(Form::CutOff, &now.address(), "127.0.0.1:0").await;
    let mut last = 0;
    // Any of the servers may be the first.
    for _ in 0..4 {
        let program = Program::open(&[&cut_off.address(), &now.address()]).await;
        let counters = program.node.source("counters").await.unwrap();
        for _ in 0..3 {
            let (first, end) = counters.count(b"alice", 2, WITHIN_MS).await.unwrap();
            assert!(last == 0 || first == last + 1, "{first} after {last}: counted once");
            last = end;
        }
        program.node.close().await.unwrap();
    }
    now.stop().await;
}

/// Results of an extend belong to its items by their order, and each ID to a caller that waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_with_another_number_of_items_is_rejected() {
    let store = MemoryStore::new("all").unwrap();
    let now = Now::start(&store, common::any().await).await;
    let extend = |slot| Extend {
        pool: "workers-10".into(),
        slot,
        term: Term::new(1),
        holder: None,
        from: Mark::ZERO,
        to: Mark::new(1),
        request: 7,
        ahead_max_ms: None,
    };
    let items = [extend(0), extend(1)];
    let clock = SystemClock.unix_ms();
    let counted = remote(&[&now.address()]).await.extend(&items, clock).await.unwrap();
    assert!(counted.len() == 2 && counted.iter().all(Result::is_err), "{counted:?}");
    for (form, results, ids) in [(Form::Fewer, 1, 4), (Form::More, 3, 6)] {
        let between = Between::start(form, &now.address(), "127.0.0.1:0").await;
        let remote = remote(&[&between.address()]).await;
        let owner = remote.owner_client().unwrap();
        let extended = remote.extend(&items, clock).await.map(drop);
        let minted = owner.mint("default", 5, WITHIN_MS).await.map(drop);
        let counted = owner.count("counters", b"alice", 5, WITHIN_MS).await.map(drop);
        let of = |source| format!("{ids} IDs of source {source:?}, expected 5;");
        for (outcome, part) in [
            (extended, format!("{results} results, expected 2;")),
            (minted, of("default")),
            (counted, of("counters")),
        ] {
            let (code, message) = refused(outcome);
            assert_eq!(code, "internal", "{message}");
            assert!(message.contains(&part), "{message}");
        }
    }
    now.stop().await;
}
