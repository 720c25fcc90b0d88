//! Shares: the unread responses and open connections of one client do not affect another.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use snowmint_wire::grpc::mint_client::MintClient;
use snowmint_wire::grpc::{MintRequest, MintStreamRequest};
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use super::{Made, bearer, entry, path, put, redis, status, token};
use crate::server::{Folder, Server, TIMEOUT, client, until};

/// Largest number of IDs of one response: more bytes than the system buffers for a client that does
/// not read.
const BATCH: &str = "100000";
/// Limits: twenty responses may be unsent, for longer than a busy machine needs for a test.
const UNREAD: &str = "[limits]\nunsent_max = 2_000_000\n[http]\nidle_max = \"10m\"\n[resp]\nwrite_time_max = \"10m\"\n";
/// Number of silent connections on each port.
const SILENT: usize = 60;

/// Starts a server with two tokens and these limits.
fn guarded(folder: &Folder, limits: &str) -> (Server, Made, Made) {
    let (greedy, other) = (token(), token());
    let rights = ["mint,metrics *"];
    let tokens =
        entry("greedy", &[&greedy.hash], &rights) + &entry("other", &[&other.hash], &rights);
    let tokens = put(folder, "tokens.toml", &tokens);
    let config = put(folder, "config.toml", &format!("[tokens]\nfile = {tokens:?}\n{limits}"));
    let data = path(folder, "data");
    let server = Server::start(&["--config", &config, "--data-dir", &data], &[]);
    server.ready();
    (server, greedy, other)
}

fn connect(address: &str, says: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(says.as_bytes()).unwrap();
    stream
}

/// Returns the data of a connection until its end.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn grpc(server: &Server) -> MintClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.http)).unwrap();
    MintClient::new(endpoint.timeout(TIMEOUT).connect().await.unwrap())
}

fn named<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

/// Requests a batch over each protocol; returns which succeeded.
async fn batches(server: &Server, name: &str, token: &str) -> [bool; 4] {
    let url = server.url(&format!("/v1/ids/default?count={BATCH}"));
    let bearer = bearer(token);
    let http = status(&["-H", &bearer, &url]) == "200";
    let http2 = status(&["--http2-prior-knowledge", "-H", &bearer, &url]) == "200";
    let resp = redis(server.resp_port(), name, token, &["MINT", "default", BATCH]);
    let wish = MintRequest { source: "default".into(), count: BATCH.parse().ok(), key: None };
    let called = grpc(server).await.mint(named(wish, token)).await;
    [http, http2, resp.lines().count() == 100_000, called.is_ok()]
}

#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
async fn unread_responses_of_one_token_starve_no_other() {
    let folder = Folder::new("unread");
    let (server, greedy, other) = guarded(&folder, UNREAD);

    let mint = format!("MINT default {BATCH}\r\n").repeat(6);
    let pipeline = format!("AUTH greedy {}\r\n{mint}", greedy.token);
    let unread: Vec<_> = (0..24).map(|_| connect(&server.resp, &pipeline)).collect();
    until("the greedy one is refused over RESP", || {
        let reply = redis(server.resp_port(), "greedy", &greedy.token, &["MINT", "default", BATCH]);
        reply.contains("TRYAGAIN") && reply.contains("limits.unsent_max")
    });
    assert_eq!(batches(&server, "greedy", &greedy.token).await, [false; 4]);
    assert_eq!(batches(&server, "other", &other.token).await, [true; 4]);
    drop(unread);
    assert_eq!(server.stop(), 0);
}

#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
async fn unread_streams_of_one_token_starve_no_other() {
    let folder = Folder::new("unread-streams");
    let (server, greedy, other) = guarded(&folder, UNREAD);
    let endless = MintStreamRequest { source: "default".into(), total: 1_000_000_000, key: None };
    let mut streams = Vec::new();
    // On a busy machine some streams may end, and count no more. Each has a connection of its own:
    // in one connection, the end of an unread stream waits behind the others' messages, so that the
    // connection could have no room for a new stream.
    let refused = async {
        let open =
            async || grpc(&server).await.mint_stream(named(endless.clone(), &greedy.token)).await;
        while let Ok(stream) = open().await {
            streams.push(stream);
        }
    };
    tokio::time::timeout(TIMEOUT, refused).await.expect("one token gets no more than its share");
    assert_eq!(batches(&server, "greedy", &greedy.token).await, [false; 4]);
    assert_eq!(batches(&server, "other", &other.token).await, [true; 4]);
    assert_eq!(server.stop(), 0);
}

#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
async fn silent_connections_block_no_other_client() {
    let folder = Folder::new("silent");
    let limits = "[http]\nconnections_max = 30\n[resp]\nconnections_max = 30\n";
    let (server, _, other) = guarded(&folder, limits);
    let mut named = connect(&server.resp, &format!("AUTH other {}\r\n", other.token));
    let mut ok = [0; 5];
    named.read_exact(&mut ok).unwrap();
    assert_eq!(&ok, b"+OK\r\n");

    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let halves = ["", "GET /v1/ids/default HTTP/1.1\r\nhost: lo", preface];
    let mut silent = Vec::new();
    for half in halves.into_iter().cycle().take(SILENT) {
        silent.push(connect(&server.http, half));
        silent.push(connect(&server.resp, ""));
    }
    for _ in 0..5 {
        assert_eq!(status(&[&server.url("/livez")]), "200");
        assert_eq!(status(&["--http2-prior-knowledge", &server.url("/readyz")]), "200");
    }
    assert_eq!(batches(&server, "other", &other.token).await, [true; 4]);
    // The connection with a token is still open.
    named.write_all(b"PING\r\n").unwrap();
    let mut pong = [0; 7];
    named.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"+PONG\r\n");
    // The first silent connection got the reason before it was closed.
    let reply = rest(silent.swap_remove(1));
    assert!(reply.contains("-ERR closed") && reply.contains("resp.connections_max"), "{reply:?}");
    server.says("connection limit reached");
    let page = client("curl", &["-sS", "-H", &bearer(&other.token), &server.url("/metrics")]);
    for protocol in ["http", "resp"] {
        let name = format!("snowmint_connections_gave_way_total{{protocol=\"{protocol}\"}} ");
        let count = page.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
        assert!(count.parse::<u64>().unwrap() >= 30, "{count}");
    }
    assert_eq!(server.stop(), 0);
}

#[test]
fn connections_without_a_token_end_in_time() {
    let folder = Folder::new("silent-for-long");
    let limits = "[http]\nauth_time_max = \"1s\"\n[resp]\nauth_time_max = \"1s\"\n";
    let (server, greedy, _) = guarded(&folder, limits);
    let named = connect(&server.resp, &format!("AUTH greedy {}\r\n", greedy.token));
    let reply = rest(connect(&server.resp, "PING\r\n"));
    assert!(
        reply.ends_with("-NOAUTH closed: no AUTH within 1000 ms (resp.auth_time_max)\r\n"),
        "{reply}"
    );
    let reply = rest(connect(&server.http, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    assert!(reply.starts_with("HTTP/1.1 200 OK"), "{reply}");
    // The connection is older than those, and still open.
    let mut named = named;
    named.write_all(b"QUIT\r\n").unwrap();
    assert_eq!(rest(named), "+OK\r\n+OK\r\n");
    assert_eq!(server.stop(), 0);
}

/// A server keeps a forwarded response until its client reads it.
#[test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs redis-cli: --features real-servers")]
fn unread_forwarded_responses_count() {
    let folder = Folder::new("forwarded");
    let config =
        format!("[sources.messages]\nkind = \"counter\"\n[counters]\nlease = \"300s\"\n{UNREAD}");
    let servers = [0, 1].map(|number| Server::sharing(&folder, number, &config));
    let [server, _] = &servers;
    let is_of_other = |key: &String| {
        let command = ["-p", server.resp_port(), "INCR", &format!("messages:{key}")];
        client("redis-cli", &command).contains("MOVED")
    };
    let mut key = None;
    until("the other server owns a key", || {
        key = (0..64).map(|number| format!("key-{number}")).find(is_of_other);
        key.is_some()
    });
    let path = format!("/v1/ids/messages?key={}&count={BATCH}", key.unwrap());
    let get = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").repeat(6);
    let unread: Vec<_> = (0..24).map(|_| connect(&server.http, &get)).collect();
    until("this server has as many unread responses as one address may have", || {
        let batch = server.url(&format!("/v1/ids/default?count={BATCH}"));
        client("curl", &["-sS", &batch]).contains("limits.unsent_max")
    });
    drop(unread);
    servers.into_iter().for_each(|server| assert_eq!(server.stop(), 0));
}
