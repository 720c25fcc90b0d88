//! Tests of a store that responds slowly: how many may wait for it, and which callers are served
//! meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::secondary::{StoreConnector, StoreConnectors};
use snowmint_coord::segment::NumberInterval;
use snowmint_coord::spec::Span;
use snowmint_coord::{
    Acquire, Acquired, Catalog, ClaimRequest, Definition, Doubt, Evidence, Exclude, Extend,
    Extended, FastForward, GiveBack, Incarnation, JournalInfo, Known, Lease, Mark, Member,
    MemberInfo, MemberStatus, MemoryStore, NewDefinition, Node, NodeSettings, Platform, Presence,
    Recalled, Reclaim, Reclaimed, Release, Relinquish, Reserve, Restripe, Result, Segment,
    SlotInfo, SourceSpec, SourceState, Standing, Store, StoreIdentity, Upstream,
};
use snowmint_core::UnixMillis;
use snowmint_server::{Access, Secret, Tokens};
use snowmint_wire::grpc::DeleteSourceRequest;
use snowmint_wire::grpc::store::store_client::StoreClient;
use snowmint_wire::grpc::store::{DescribeRequest, FastForwardRequest, INSTANCE, ReserveRequest};
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tonic::Request;

use super::common::{
    Client, Server, describe_request, in_time, server_for, server_of, settings, soon, timer,
};
use super::grpc::{mint, wish};
use super::recovery::doubted;

/// Length from which on a reservation waits: the server's own are shorter.
const LONG: u64 = 10_000;
/// Calls of one client at the store at the same time.
const AT_THE_STORE: usize = 8;

/// A memory store with calls that wait until the test releases them: lists, long reservations,
/// confirmations of counters, restripes and deletions. A move finds it in doubt.
#[derive(Debug)]
struct BlockedStore {
    store: MemoryStore,
    is_held: watch::Sender<bool>,
    /// Calls that wait, apart from lists, and the most that have waited at the same time.
    waiting: watch::Sender<(usize, usize)>,
}

impl BlockedStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new("test").unwrap(),
            is_held: watch::Sender::new(false),
            waiting: watch::Sender::default(),
        })
    }

    /// Opens a node on this store.
    async fn node(self: &Arc<Self>) -> Node {
        self.node_with(StoreConnectors::new()).await
    }

    /// Opens a node on this store, with these secondary stores.
    async fn node_with(self: &Arc<Self>, secondary_stores: StoreConnectors) -> Node {
        // The name tells its acquires from confirmations, which have none. The time is long enough
        // for any slow machine.
        let (owner, store_call_ms) = ("server".to_owned(), 600_000);
        let patient = NodeSettings {
            builtin: true,
            owner,
            store_call_ms,
            secondary_stores,
            ..NodeSettings::default()
        };
        let store = Arc::clone(self) as Arc<dyn Store>;
        Node::open(store, patient, Platform::system()).await.unwrap()
    }

    /// Waits, and is counted, until the test releases the store.
    async fn wait(&self) {
        self.waiting.send_modify(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
        self.released().await;
        self.waiting.send_modify(|(now, _)| *now -= 1);
    }

    async fn released(&self) {
        // The sender lives in self.
        let _ = self.is_held.subscribe().wait_for(|is_held| !is_held).await;
    }
}

/// All wait at the same time, and each has the whole list in the end.
#[tokio::test]
async fn waiting_lists_of_a_client_are_limited() {
    const WAITING: usize = 2;
    let store = BlockedStore::new();
    let mut limits = settings();
    // With 67 rows, each counting as 16, two lists are a client's share.
    limits.limits.unsent_max = 8_000;
    let server = server_of(store.node().await, limits).await;
    for number in 0..64 {
        let body = format!("{{\"name\":\"source-{number}\",\"kind\":\"segment\"}}");
        assert_eq!(server.post("/v1/sources", &body).await.status, 200);
    }
    assert_eq!(server.get("/v1/sources").await.status, 200);

    store.is_held.send_replace(true);
    let mut asking: FuturesUnordered<_> = (0..10).map(|_| server.get("/v1/sources")).collect();
    for _ in WAITING..10 {
        let refused = soon(asking.next()).await.unwrap();
        assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        assert!(refused.body.contains("lists of sources"), "{refused:?}");
    }
    assert_eq!(server.get("/v1/ids/default").await.ids().len(), 1);
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
    let mut other = Client(socket.connect(server.http).await.unwrap());
    other.send("GET /v1/sources HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    store.is_held.send_replace(false);
    other.expect("HTTP/1.1 200 OK\r\n").await;
    for _ in 0..WAITING {
        assert_eq!(soon(asking.next()).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn waiting_store_calls_of_a_client_are_limited() {
    few_at_the_store(async |server| {
        let reserved = server.post(PATH, &long()).await;
        assert_eq!(reserved.status, 200, "{reserved:?}");
    })
    .await;
}

/// Each call of this service is one of the store.
#[tokio::test]
async fn store_calls_of_one_program_are_few_and_others_are_served() {
    few_at_the_store(async |server| {
        let mut client = StoreClient::new(server.channel().await);
        let described = client.describe(describe_request()).await.unwrap().into_inner();
        let reserve = ReserveRequest {
            source: "numbers".into(),
            length: LONG,
            definition_version: 2,
            ..ReserveRequest::default()
        };
        let mut request = Request::new(reserve);
        request.metadata_mut().insert(INSTANCE, described.instance.parse().unwrap());
        let reserved = client.reserve(request).await.unwrap().into_inner();
        assert_eq!(reserved.error, None);
    })
    .await;
}

/// Place of a store that a test holds.
#[derive(Debug)]
struct There(Arc<BlockedStore>);

#[async_trait]
impl StoreConnector for There {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::clone(&self.0) as _)
    }
}

/// Place of a store that never responds. Counts the attempts to open it.
#[derive(Debug)]
struct Silent(watch::Sender<usize>);

#[async_trait]
impl StoreConnector for Silent {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        self.0.send_modify(|opened| *opened += 1);
        std::future::pending().await
    }
}

/// One client has all its turns at a secondary store, and is served by the primary one.
#[tokio::test]
async fn slow_secondary_store_keeps_no_turn_at_the_primary() {
    let (own, slow) = (BlockedStore::new(), BlockedStore::new());
    let place = Arc::new(There(Arc::clone(&slow))) as Arc<dyn StoreConnector>;
    let node = own.node_with([("slow".to_owned(), place)].into()).await;
    let server = server_of(node, settings()).await;
    let bills = SourceSpec::from_json(r#"{"kind":"segment"}"#).unwrap();
    let bills = slow.store.define(&NewDefinition::of("bills", &bills).unwrap()).await.unwrap();
    let definition_version = bills.version;
    let mut client = StoreClient::new(server.channel().await);
    let describe = DescribeRequest { store: "slow".into(), ..describe_request() };
    let described = soon(client.describe(describe)).await.unwrap().into_inner();
    assert!(described.instance.ends_with("/slow"), "{described:?}");

    slow.is_held.send_replace(true);
    let mut waiting = slow.waiting.subscribe();
    let reserve = || {
        let (source, length) = ("bills".into(), LONG);
        let reserve =
            ReserveRequest { source, length, definition_version, ..ReserveRequest::default() };
        let mut request = Request::new(reserve);
        request.metadata_mut().insert(INSTANCE, described.instance.parse().unwrap());
        let mut client = client.clone();
        async move { client.reserve(request).await.unwrap().into_inner() }
    };
    let greedy = async {
        let mut calling: FuturesUnordered<_> = (0..2 * AT_THE_STORE).map(|_| reserve()).collect();
        while let Some(reserved) = calling.next().await {
            assert_eq!(reserved.error, None);
        }
    };
    let at_primary = async {
        soon(waiting.wait_for(|(now, _)| *now == AT_THE_STORE)).await.unwrap();
        let reserved = soon(server.post(PATH, &long())).await;
        assert_eq!(reserved.status, 200, "{reserved:?}");
        slow.is_held.send_replace(false);
    };
    soon(async { tokio::join!(greedy, at_primary) }).await;
    assert_eq!(slow.waiting.borrow().1, AT_THE_STORE, "the secondary store has its bound, too");
}

/// Each change asks a secondary store whether another one may leave the source. Meanwhile it has no
/// turn at the primary store, and no other definition waits for it.
#[tokio::test]
async fn change_that_asks_a_silent_store_delays_no_other() {
    let opened = watch::Sender::new(0);
    let place = || Arc::new(Silent(opened.clone())) as Arc<dyn StoreConnector>;
    let names = || (0..AT_THE_STORE).map(|number| format!("b{number}"));
    let silent = names().chain(["a".to_owned(), "c".to_owned()]);
    let places = silent.map(|name| (name, place())).collect();
    let server = server_of(BlockedStore::new().node_with(places).await, settings()).await;
    for stays in names() {
        let keys = format!(r#"{{"name":"of-{stays}","kind":"segment","stores":"a,{stays}"}}"#);
        let defined = soon(server.post("/v1/sources", &keys)).await;
        assert_eq!(defined.status, 200, "{defined:?}");
    }
    let change = async |stays: String| {
        let keys = format!(r#"{{"stores":"{stays},c"}}"#);
        server.send("PATCH", &format!("/v1/sources/of-{stays}"), "", &keys).await
    };
    let mut changing: FuturesUnordered<_> = names().map(change).collect();
    let mut all_ask = opened.subscribe();
    let define = async {
        soon(all_ask.wait_for(|opened| *opened >= AT_THE_STORE)).await.unwrap();
        let defined = soon(server.post("/v1/sources", BILLS)).await;
        assert_eq!(defined.status, 200, "{defined:?}");
    };
    tokio::select! {
        biased;
        response = changing.next() => panic!("{response:?}"),
        () = define => {}
    }
}

/// Another ID system's table that does not respond.
#[derive(Debug)]
struct SilentUpstream;

#[async_trait]
impl Upstream for SilentUpstream {
    async fn allocate(&self, _: &str, _: u64) -> Result<NumberInterval> {
        std::future::pending().await
    }
}

/// The error names it as the configuration does, whether the source prefetches or not.
#[tokio::test]
async fn silent_upstream_is_named_as_unavailable_by_every_protocol() {
    let upstreams = [("old".to_owned(), Arc::new(SilentUpstream) as Arc<dyn Upstream>)].into();
    let node_settings = NodeSettings { builtin: true, upstreams, ..NodeSettings::default() };
    let store = Arc::new(MemoryStore::new("test").unwrap());
    let node = Node::open(store, node_settings, Platform::system()).await.unwrap();
    for (name, step) in [("bills", ""), ("each", r#","step":{"rule":"fixed","size":1}"#)] {
        let keys = format!(r#"{{"kind":"segment","upstream":"old:bills"{step}}}"#);
        node.define(name, &SourceSpec::from_json(&keys).unwrap()).await.unwrap();
    }
    let mut limits = settings();
    limits.limits.wait_max = Span::from_ms(50);
    let server = server_of(node, limits).await;
    for name in ["bills", "each"] {
        let minted = soon(server.get(&format!("/v1/ids/{name}"))).await;
        let reserved = soon(server.post(&format!("/v1/segments/{name}"), r#"{"length":5}"#)).await;
        for response in [minted, reserved] {
            assert_eq!((response.status, response.code().as_str()), (503, "unavailable"));
            assert!(response.body.contains(r#"upstream \"old\""#), "{response:?}");
        }
        for args in [&["INCR", name][..], &["MINT", name, "5"], &["INCRBY", name, "5"]] {
            let reply = soon(async { server.resp().await.ask(args).await }).await;
            let names_it = reply.contains(r#"upstream "old""#);
            assert!(reply.starts_with("-TRYAGAIN ") && names_it, "{reply}");
        }
        let status = soon(server.grpc().await.mint(wish(name, Some(5)))).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert!(status.message().contains(r#"upstream "old""#), "{status:?}");
    }
}

/// A per-request source reserves the numbers of each request in the store.
#[tokio::test]
async fn mints_of_one_client_at_the_store_are_few_over_http() {
    few_at_the_store(async |server| {
        let path = format!("/v1/ids/bills?count={LONG}");
        assert_eq!(server.get(&path).await.ids().len(), 10_000);
    })
    .await;
}

#[tokio::test]
async fn mints_of_one_client_at_the_store_are_few_over_resp() {
    few_at_the_store(async |server| {
        let minted = server.resp().await.ask(&["MINT", "bills", "10000"]).await;
        assert_eq!(minted, "*10000");
    })
    .await;
}

#[tokio::test]
async fn mints_of_one_client_at_the_store_are_few_over_grpc() {
    few_at_the_store(async |server| {
        assert_eq!(mint(&mut server.grpc().await, "bills", LONG).await.len(), 10_000);
    })
    .await;
}

/// The store confirms each of these.
#[tokio::test]
async fn confirmations_of_one_client_at_the_store_are_few() {
    for (method, path, body) in [
        ("GET", "/v1/ids/sure?key=a", ""),
        ("GET", "/v1/counters/sure/a", ""),
        ("PUT", "/v1/counters/sure/a", r#"{"bound":"5"}"#),
    ] {
        few_at_the_store(async |server| {
            let response = server.send(method, path, "", body).await;
            assert_eq!(response.status, 200, "{response:?}");
        })
        .await;
    }
    few_at_the_store(async |server| {
        server.resp().await.ask(&["INCRBY", "sure:a", "5"]).await;
    })
    .await;
}

/// One of these changes wins, and the others may get an error.
#[tokio::test]
async fn changes_of_one_client_at_the_store_are_few() {
    const STRIPE: &str = r#"{"offset":1,"increment":2}"#;
    for (method, path, body) in
        [("POST", "/v1/sources/bills/restripe", STRIPE), ("DELETE", "/v1/sources/bills", "")]
    {
        few_at_the_store(async |server| {
            server.send(method, path, "", body).await;
        })
        .await;
    }
    few_at_the_store(async |server| {
        let mut client = server.grpc().await;
        drop(client.delete_source(DeleteSourceRequest { name: "bills".into() }).await);
    })
    .await;
}

/// One definition at a time is at the store, and those of a client that wait for it are few. The
/// client's other ones do not hold up those of others.
#[tokio::test]
async fn definitions_of_one_client_that_wait_are_few() {
    let store = BlockedStore::new();
    let mut limits = settings();
    limits.limits.wait_max = Span::from_ms(1_000);
    let server = server_of(store.node().await, limits).await;
    for (method, path, body) in
        [("POST", "/v1/sources", BILLS), ("PATCH", "/v1/sources/bills", r#"{"text":"hex"}"#)]
    {
        store.is_held.send_replace(true);
        let mut calling: FuturesUnordered<_> =
            (0..40).map(|_| server.send(method, path, "", body)).collect();
        for _ in AT_THE_STORE..40 {
            let refused = in_time(&server.timer, calling.next()).await.unwrap();
            assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        }
        store.is_held.send_replace(false);
        while let Some(response) = soon(calling.next()).await {
            assert_ne!(response.status, 503, "{response:?}");
        }
    }
}

/// All clients of a peer would be one here. The peer keeps each to its share.
#[tokio::test]
async fn forwarded_requests_wait_for_no_turn() {
    const PEER: &str = "peer-0123456789abcdef0123456789abcdef";
    const AT_ONCE: usize = AT_THE_STORE + 1;
    let (store, timer) = (BlockedStore::new(), timer());
    let tokens = Tokens { peers: vec![Secret::new(PEER)], ..Tokens::default() };
    let access = Access::new("test", &tokens, Arc::new(timer.clone())).unwrap();
    let server = server_for(store.node().await, settings(), (Some(access), timer)).await;
    let shown = format!("authorization: Bearer {PEER}\r\n");
    let count = "/v1/ids/sure?key=a";
    assert_eq!(server.send("POST", "/v1/sources", &shown, SURE).await.status, 200);
    assert_eq!(server.send("GET", count, &shown, "").await.status, 200);

    store.is_held.send_replace(true);
    let mut waiting = store.waiting.subscribe();
    let forwarded = async {
        let mut calling: FuturesUnordered<_> =
            (0..AT_ONCE).map(|_| server.send("GET", count, &shown, "")).collect();
        while let Some(response) = calling.next().await {
            assert_eq!(response.status, 200, "{response:?}");
        }
    };
    let released = async {
        soon(waiting.wait_for(|(now, _)| *now == AT_ONCE)).await.unwrap();
        store.is_held.send_replace(false);
    };
    soon(async { tokio::join!(forwarded, released) }).await;
}

/// A source that reserves each number when it is requested.
const BILLS: &str = r#"{"name":"bills","kind":"segment","step":{"rule":"fixed","size":1}}"#;

/// A counter whose numbers the store confirms.
const SURE: &str = r#"{"name":"sure","kind":"counter","counter":{"confirm":"store"}}"#;

/// The server has looked for a doubt before, and found none.
#[tokio::test]
async fn move_by_a_program_keeps_a_newer_doubt() {
    let store = BlockedStore::new();
    let built_in = NodeSettings { builtin: true, ..NodeSettings::default() };
    let opened =
        Node::open(Arc::clone(&store) as Arc<dyn Store>, built_in, Platform::system()).await;
    let server = server_of(opened.unwrap(), settings()).await;
    assert_eq!(server.get("/v1/ids/numbers").await.status, 200);
    let mut client = StoreClient::new(server.channel().await);
    let described = soon(client.describe(describe_request())).await.unwrap().into_inner();
    let mut forward = Request::new(FastForwardRequest::default());
    forward.metadata_mut().insert(INSTANCE, described.instance.parse().unwrap());
    let refused = soon(client.fast_forward(forward)).await.unwrap().into_inner().error.unwrap();
    assert!(refused.message.contains("look again"), "{refused:?}");
    assert!(store.store.standing().await.unwrap().doubt.is_some());
}

/// Path of a call that reserves numbers at the store.
const PATH: &str = "/v1/segments/numbers";

/// Its body, for a reservation that waits.
fn long() -> String {
    format!("{{\"length\":{LONG}}}")
}

/// Calls this many times at once from one address, and once from another. The client's other calls
/// wait for its own, and the call of the other client waits for none of them.
async fn few_at_the_store(call: impl AsyncFn(&Server)) {
    let store = BlockedStore::new();
    let server = server_of(store.node().await, settings()).await;
    for body in [BILLS, SURE] {
        assert_eq!(server.post("/v1/sources", body).await.status, 200);
    }
    let body = long();
    // Reads what later calls need no more.
    soon(call(&server)).await;

    store.is_held.send_replace(true);
    let mut waiting = store.waiting.subscribe();
    let greedy = async {
        let mut calling: FuturesUnordered<_> = (0..40).map(|_| call(&server)).collect();
        while calling.next().await.is_some() {}
    };
    let other = async {
        soon(waiting.wait_for(|(now, _)| *now == AT_THE_STORE)).await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        let mut other = Client(socket.connect(server.http).await.unwrap());
        let length = body.len();
        other
            .send(format!(
                "POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
            ))
            .await;
        soon(waiting.wait_for(|(now, _)| *now == AT_THE_STORE + 1)).await.unwrap();
        store.is_held.send_replace(false);
        other.expect("HTTP/1.1 200 OK\r\n").await;
    };
    soon(async { tokio::join!(greedy, other) }).await;
    let (now, most) = *store.waiting.borrow();
    assert_eq!((now, most), (0, AT_THE_STORE + 1));
}

#[async_trait]
impl Store for BlockedStore {
    snowmint_coord::as_inner!(store);

    async fn now(&self) -> Result<Option<UnixMillis>> {
        self.store.now().await
    }

    async fn identity(&self) -> Result<StoreIdentity> {
        self.store.identity().await
    }

    async fn recall(&self, who: &str, seen: &StoreIdentity) -> Result<Recalled> {
        self.store.recall(who, seen).await
    }

    async fn doubt(&self, doubt: &Doubt, evidence: &Evidence) -> Result<()> {
        self.store.doubt(doubt, evidence).await
    }

    async fn report(&self, journal: &JournalInfo, known: Option<&Known>) -> Result<()> {
        self.store.report(journal, known).await
    }

    async fn standing(&self) -> Result<Standing> {
        self.store.standing().await
    }

    async fn join(&self, member: &Member, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store.join(member, presence, now).await
    }

    async fn renew(&self, member: Incarnation, presence: Presence, now: UnixMillis) -> Result<()> {
        self.store.renew(member, presence, now).await
    }

    async fn announce(&self, member: Incarnation, status: &MemberStatus) -> Result<()> {
        self.store.announce(member, status).await
    }

    async fn leave(&self, member: Incarnation, now: UnixMillis) -> Result<()> {
        self.store.leave(member, now).await
    }

    async fn members(&self, now: UnixMillis) -> Result<Vec<MemberInfo>> {
        self.store.members(now).await
    }

    async fn claim(&self, request: &ClaimRequest, now: UnixMillis) -> Result<Vec<Lease>> {
        self.store.claim(request, now).await
    }

    async fn extend(&self, items: &[Extend], now: UnixMillis) -> Result<Vec<Result<Extended>>> {
        self.store.extend(items, now).await
    }

    async fn release(&self, release: &Release, now: UnixMillis) -> Result<()> {
        self.store.release(release, now).await
    }

    async fn acquire(&self, acquire: &Acquire, now: UnixMillis) -> Result<Acquired> {
        if acquire.owner.is_empty() {
            self.wait().await;
        }
        self.store.acquire(acquire, now).await
    }

    async fn relinquish(&self, relinquish: &Relinquish, now: UnixMillis) -> Result<()> {
        self.store.relinquish(relinquish, now).await
    }

    async fn workers(&self, now: UnixMillis) -> Result<Vec<SlotInfo>> {
        self.store.workers(now).await
    }

    async fn reserve(&self, reserve: &Reserve) -> Result<Segment> {
        if reserve.length < LONG {
            return self.store.reserve(reserve).await;
        }
        self.wait().await;
        self.store.reserve(reserve).await
    }

    async fn give_back(&self, back: &GiveBack) -> Result<u64> {
        self.store.give_back(back).await
    }

    async fn define(&self, new: &NewDefinition) -> Result<Definition> {
        self.store.define(new).await
    }

    async fn alter(&self, new: &NewDefinition, if_version: Option<u64>) -> Result<Definition> {
        self.store.alter(new, if_version).await
    }

    async fn restripe(&self, restripe: &Restripe) -> Result<Definition> {
        self.wait().await;
        self.store.restripe(restripe).await
    }

    async fn set_state(&self, name: &str, state: SourceState) -> Result<Definition> {
        self.wait().await;
        self.store.set_state(name, state).await
    }

    async fn get(&self, name: &str) -> Result<Definition> {
        self.store.get(name).await
    }

    async fn list(&self) -> Result<Catalog> {
        self.released().await;
        self.store.list().await
    }

    /// A doubt begins between the caller's look and the move.
    async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        doubted(&self.store).await;
        self.store.fast_forward(forward).await
    }

    async fn exclude(&self, exclude: &Exclude, now: UnixMillis) -> Result<()> {
        self.store.exclude(exclude, now).await
    }

    async fn reclaim(&self, reclaim: &Reclaim, now: UnixMillis) -> Result<Vec<Reclaimed>> {
        self.store.reclaim(reclaim, now).await
    }

    async fn accept_lead(&self, until: Mark) -> Result<()> {
        self.store.accept_lead(until).await
    }

    async fn ground(&self) -> Result<SlotDefaults> {
        self.store.ground().await
    }

    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
}
