//! A server on free ports, and clients that send exactly the given bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::spec::Span;
use snowmint_coord::{BootTimer, ManualTimer, MemoryStore, Node, NodeSettings, Timer as _};
use snowmint_server::{Access, Handle, ServerDeps, Settings, Tls, start};
use snowmint_wire::grpc::store::{DescribeRequest, VERSION};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than any step takes, even on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Step of test time, in milliseconds: shorter than any limit of a test.
const STEP_MS: u64 = 50;

/// A server with limits on a timer that only the test moves: a stalled machine closes no
/// connection.
pub(crate) struct Server {
    pub(crate) handle: Handle,
    pub(crate) http: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) timer: ManualTimer,
}

/// Returns the defaults, except for the one limit on the node's time, which no test moves.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.limits.wait_max = Span::from_ms(60_000);
    settings
}

/// Returns a program's first message.
pub(crate) fn describe_request() -> DescribeRequest {
    DescribeRequest { version: VERSION, ..DescribeRequest::default() }
}

pub(crate) async fn server() -> Server {
    server_with(|_| {}).await
}

pub(crate) async fn server_with(change: impl FnOnce(&mut Settings)) -> Server {
    let mut settings = settings();
    change(&mut settings);
    server_of(node().await, settings).await
}

/// Starts a server over this node.
pub(crate) async fn server_of(node: Node, settings: Settings) -> Server {
    server_for(node, settings, (None, timer())).await
}

/// Starts the same with access control, with rates on this timer.
pub(crate) async fn server_for(
    node: Node,
    settings: Settings,
    (access, timer): (Option<Access>, ManualTimer),
) -> Server {
    server_behind(None, node, settings, (access, timer)).await
}

/// Starts the same with TLS, if given.
pub(crate) async fn server_behind(
    tls: Option<Tls>,
    node: Node,
    settings: Settings,
    (access, timer): (Option<Access>, ManualTimer),
) -> Server {
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    server_at(http, tls, node, settings, (access, timer)).await
}

/// Starts the same at this listener.
pub(crate) async fn server_at(
    http: TcpListener,
    tls: Option<Tls>,
    node: Node,
    settings: Settings,
    (access, timer): (Option<Access>, ManualTimer),
) -> Server {
    let resp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    server_on((http, resp), tls, node, settings, (access, timer))
}

/// Starts the same at both listeners.
pub(crate) fn server_on(
    (http, resp): (TcpListener, TcpListener),
    tls: Option<Tls>,
    node: Node,
    settings: Settings,
    (access, timer): (Option<Access>, ManualTimer),
) -> Server {
    let parts = ServerDeps {
        offered: Some(Arc::clone(node.store())),
        node,
        configured: std::collections::BTreeMap::new(),
        timer: Arc::new(timer.clone()),
        http: Some(http),
        resp: Some(resp),
        access,
        tls,
        traces: None,
    };
    let handle = start(settings, parts).unwrap();
    Server { http: handle.http().unwrap(), resp: handle.resp().unwrap(), handle, timer }
}

/// Returns a timer that stands still.
pub(crate) fn timer() -> ManualTimer {
    ManualTimer::new(1_000)
}

/// Opens a node on a store of its own in memory.
pub(crate) async fn node() -> Node {
    node_on(MemoryStore::new("test").unwrap()).await
}

/// Opens a node on this store.
pub(crate) async fn node_on(store: MemoryStore) -> Node {
    let settings = NodeSettings { builtin: true, ..NodeSettings::default() };
    Node::open(Arc::new(store), settings, snowmint_coord::Platform::system()).await.unwrap()
}

/// Waits for a future that must end soon.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_MAX, what).await.expect("it happens within the test's bound")
}

/// Waits for a future that must end when only this timer moves.
pub(crate) async fn in_time<T>(timer: &ManualTimer, what: impl Future<Output = T>) -> T {
    let mut what = std::pin::pin!(what);
    let passing = async {
        loop {
            tokio::select! {
                biased;
                done = &mut what => return done,
                () = step(timer) => {}
            }
        }
    };
    soon(passing).await
}

/// Moves the timer a step, and runs the tasks that waited for it.
pub(crate) async fn step(timer: &ManualTimer) {
    BootTimer.sleep_ms(1).await;
    timer.advance_ms(STEP_MS);
    tokio::task::yield_now().await;
}

/// A connection that sends and reads bytes.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Checks that exactly these bytes come next.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &str) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let mut bytes = vec![0; expected.len()];
            let read = soon(self.0.read_exact(&mut bytes)).await;
            let read = read.map(|_| String::from_utf8_lossy(&bytes).into_owned());
            assert_eq!(read.unwrap_or_else(|error| error.to_string()), expected, "at {place}");
        }
    }

    /// Returns the next line, without its CR LF.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(soon(self.0.read_u8()).await.unwrap());
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).unwrap()
    }

    /// Returns the next reply, an integer.
    pub(crate) async fn integer(&mut self) -> u64 {
        let line = self.line().await;
        line.strip_prefix(':')
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_else(|| panic!("{line}"))
    }

    /// Returns the next reply, a string.
    pub(crate) async fn string(&mut self) -> String {
        let head = self.line().await;
        assert!(head.starts_with('$'), "{head}");
        let string = self.line().await;
        assert_eq!(head, format!("${}", string.len()));
        string
    }

    /// Changes the version of the protocol.
    pub(crate) async fn speaks(&mut self, version: &str) {
        self.send(request(&["HELLO", version]) + &request(&["ECHO", "greeted"])).await;
        while self.line().await != "greeted" {}
    }

    /// Sends one request as an array and returns the first line of the reply.
    pub(crate) async fn ask(&mut self, args: &[&str]) -> String {
        self.send(request(args)).await;
        self.line().await
    }

    /// Returns all bytes up to the end of the stream. A reset is an end, too.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = soon(self.0.read_to_end(&mut bytes)).await;
        bytes
    }
}

/// Returns a request in the form of Redis clients.
pub(crate) fn request(args: &[&str]) -> String {
    let mut bytes = format!("*{}\r\n", args.len());
    for arg in args {
        bytes.push_str(&format!("${}\r\n{arg}\r\n", arg.len()));
    }
    bytes
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpResponse {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Returns the IDs of the body.
    pub(crate) fn ids(&self) -> Vec<u64> {
        assert_eq!(self.status, 200, "{self:?}");
        let ids = self.json()["ids"].as_array().unwrap().clone();
        ids.iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect()
    }

    /// Returns the code of an error, which has a message and is never stored.
    pub(crate) fn code(&self) -> String {
        let error = &self.json()["error"];
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        assert!(error.get("retry_after_ms").is_some());
        assert_eq!(self.header("cache-control"), Some("no-store"));
        error["code"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

impl Server {
    pub(crate) async fn resp(&self) -> Client {
        Client::to(self.resp).await
    }

    /// Sends a request over a connection of its own.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> HttpResponse {
        let mut client = Client::to(self.http).await;
        let length = body.len();
        client
            .send(format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
            ))
            .await;
        HttpResponse::read(&client.rest().await)
    }

    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        self.send("GET", path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> HttpResponse {
        self.send("POST", path, "", body).await
    }
}
