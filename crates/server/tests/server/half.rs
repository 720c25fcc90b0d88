//! Tests of half requests: they end in time, cost little, and take no more than a share.

use std::net::SocketAddr;

use axum::body::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, SendStream};
use hyper::{Method, Request, Response};
use snowmint_coord::Timer as _;
use snowmint_coord::spec::Span;
use tokio::net::{TcpSocket, TcpStream};

use super::access::{ADMIN, guarded, guarded_with};
use super::alone::{alone, anonymous_kib};
use super::common::{Client, Server, in_time, server, server_with, soon, step};
use super::reset::{END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, get, next_frame};

const SHORT: Span = Span::from_ms(300);
/// Most requests at once on a connection.
const STREAMS: u32 = 128;

const MINT: &str = "/snowmint.v1.Mint/Mint";
const EXTEND: &str = "/snowmint.store.v1.Store/Extend";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// An HTTP/2 connection.
struct Link {
    client: SendRequest<Bytes>,
    ping: PingPong,
}

/// A request with an unfinished body.
struct Half {
    response: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Link {
    async fn to(server: &Server) -> Self {
        Self::over(TcpStream::connect(server.http).await.unwrap()).await
    }

    /// Connects from this address.
    async fn from(address: &str, server: &Server) -> Self {
        Self::over(connected(address, server).await).await
    }

    async fn over(stream: TcpStream) -> Self {
        let (client, mut connection) = soon(h2::client::handshake(stream)).await.unwrap();
        let ping = connection.ping_pong().unwrap();
        tokio::spawn(connection);
        Self { client, ping }
    }

    async fn begin(&mut self, method: Method, path: &str, headers: &[(&str, &str)]) -> Half {
        let uri = format!("http://localhost{path}");
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // Waits until the server has announced its limit of streams.
        self.client = soon(self.client.clone().ready()).await.unwrap();
        let (response, body) = self.client.send_request(request.body(()).unwrap(), false).unwrap();
        Half { response, body }
    }

    /// Begins a request for IDs, or a call, without its end.
    async fn post(&mut self, path: &str, token: &str) -> Half {
        let kind = if path.ends_with("/default") { "application/json" } else { "application/grpc" };
        let shown = format!("Bearer {token}");
        let mut headers = vec![("content-type", kind)];
        if !token.is_empty() {
            headers.push(("authorization", &shown));
        }
        self.begin(Method::POST, path, &headers).await
    }
}

async fn connected(address: &str, server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse::<SocketAddr>().unwrap()).unwrap();
    socket.connect(server.http).await.unwrap()
}

/// Returns the HTTP status, and the gRPC status if there is one.
fn statuses<B>(response: &Response<B>) -> (u16, Option<&str>) {
    let grpc = response.headers().get("grpc-status").map(|status| status.to_str().unwrap());
    (response.status().as_u16(), grpc)
}

/// The other traffic of the connection does not matter.
#[tokio::test]
async fn half_request_gets_a_response_in_time_despite_pings() {
    let server = server_with(|settings| settings.http.request_time_max = SHORT).await;
    let mut link = Link::to(&server).await;
    for (path, expected) in [
        ("/v1/ids/default", (408, None)),
        (MINT, (200, Some("4"))),
        (EXTEND, (200, Some("4"))),
        (CHECK, (200, Some("4"))),
    ] {
        let mut half = link.post(path, "").await;
        half.body.send_data(Bytes::from_static(b"{"), false).unwrap();
        let begun = server.timer.elapsed();
        let pinging = async {
            loop {
                // The previous ping may still be unacknowledged.
                let _ = link.ping.ping(Ping::opaque()).await;
                step(&server.timer).await;
            }
        };
        let response = tokio::select! {
            response = soon(half.response) => response.unwrap(),
            () = pinging => unreachable!(),
        };
        assert_eq!(statuses(&response), expected, "{path}");
        let lasted_ms = server.timer.elapsed().since(begun);
        assert!((SHORT.ms()..30 * SHORT.ms()).contains(&lasted_ms), "{path}: {lasted_ms} ms");
    }
    let mut whole = link.begin(Method::POST, "/v1/ids/default", &[]).await;
    whole.body.send_data(Bytes::from_static(b"{}"), true).unwrap();
    assert_eq!(soon(whole.response).await.unwrap().status(), 200, "the connection continues");
}

/// Over HTTP/1 a connection has a deadline; `100 Continue` does not move it.
#[tokio::test]
async fn expected_body_is_awaited_as_long_as_any() {
    let server = server_with(|settings| settings.http.request_time_max = SHORT).await;
    let mut client = Client::to(server.http).await;
    client
        .send(
            "POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
             content-length: 10\r\n\r\n",
        )
        .await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    let begun = server.timer.elapsed();
    let end = in_time(&server.timer, client.rest()).await;
    assert!(end.starts_with(b"HTTP/1.1 408 "), "{}", end.escape_ascii());
    let lasted_ms = server.timer.elapsed().since(begun);
    assert!((SHORT.ms()..30 * SHORT.ms()).contains(&lasted_ms), "{lasted_ms} ms");
}

/// No time passes: a caller without a token gets its error although the rest never comes.
#[tokio::test]
async fn unknown_caller_is_refused_before_the_body() {
    let (server, _) = guarded().await;
    let mut link = Link::to(&server).await;
    for token in ["", "wrong-0123456789abcdef0123456789"] {
        for (path, expected) in [
            ("/v1/ids/default", (401, None)),
            ("/v1/nothing/default", (401, None)),
            (MINT, (200, Some("16"))),
            (EXTEND, (200, Some("16"))),
        ] {
            let half = link.post(path, token).await;
            let response = soon(half.response).await.unwrap();
            assert_eq!(statuses(&response), expected, "{path}");
        }
        // Open paths respond, and wait for nothing that they do not need.
        for path in ["/livez", "/v1/layouts"] {
            let half = link.begin(Method::GET, path, &[]).await;
            assert_eq!(soon(half.response).await.unwrap().status(), 200, "{path}");
        }
        let mut client = Client::to(server.http).await;
        let shown = if token.is_empty() { "" } else { "authorization: Bearer wrong\r\n" };
        client
            .send(format!(
                "POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\n{shown}content-length: 9\r\n\r\n"
            ))
            .await;
        client.expect("HTTP/1.1 401 Unauthorized\r\n").await;
    }
    let mut half = link.post("/v1/ids/default", ADMIN).await;
    half.body.send_data(Bytes::from_static(b"{}"), true).unwrap();
    assert_eq!(soon(half.response).await.unwrap().status(), 200);
}

/// Some clients of other systems send their token in the body. Only the paths of enabled APIs wait
/// for it.
#[tokio::test]
async fn body_outside_the_enabled_apis_is_not_awaited() {
    let (server, _) = guarded_with(|settings| settings.compat.tinyid.enabled = true).await;
    let mut link = Link::to(&server).await;
    for (method, path, status) in [
        (Method::GET, "/livez", 200),
        (Method::POST, "/nothing", 404),
        (Method::POST, "/ids", 404),
        (Method::POST, "/api/segment/get/numbers", 404),
    ] {
        let half = link.begin(method, path, &[]).await;
        assert_eq!(soon(half.response).await.unwrap().status(), status, "{path}");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let mut half = link.begin(Method::POST, "/id/nextIdSimple", &form).await;
    let body = format!("bizType=numbers&token={ADMIN}");
    half.body.send_data(body.into(), true).unwrap();
    assert_eq!(soon(half.response).await.unwrap().status(), 200);
}

/// Half requests of one client that take half of the limit of waiting requests.
struct Crowd {
    _links: Vec<Link>,
    /// In the order in which the requests were sent.
    bodies: Vec<SendStream<Bytes>>,
    _responses: FuturesUnordered<ResponseFuture>,
}

impl Crowd {
    async fn of(server: &Server) -> Self {
        /// Half of 128 MiB, each request being 8 KiB.
        const HELD: usize = 8 * 1024;
        const MORE: usize = STREAMS as usize;
        let (mut links, mut bodies) = (Vec::new(), Vec::new());
        let mut responses = FuturesUnordered::new();
        for _ in 0..(HELD + MORE) / MORE {
            let mut link = Link::to(server).await;
            for _ in 0..STREAMS {
                let half = link.post("/v1/ids/default", "").await;
                responses.push(half.response);
                bodies.push(half.body);
            }
            links.push(link);
        }
        for _ in 0..MORE {
            let refused = soon(responses.next()).await.unwrap().unwrap();
            assert_eq!(refused.status(), 503);
        }
        assert!(responses.next().now_or_never().is_none(), "all others wait");
        Self { _links: links, bodies, _responses: responses }
    }
}

/// Sends a request with a body of this many bytes over a connection of its own. Returns the status.
async fn whole(server: &Server, length: usize) -> u16 {
    let mut whole = Link::to(server).await.post("/v1/ids/default", "").await;
    whole.body.send_data(format!("{:length$}", "{}").into(), true).unwrap();
    whole.response.await.unwrap().status().as_u16()
}

/// Sends such requests until one is served.
async fn served(server: &Server, length: usize) {
    while whole(server, length).await != 200 {}
}

/// One client with many connections takes half of the limit of waiting requests, and other clients
/// are served.
#[test]
fn half_requests_of_one_client_leave_room_for_other_clients() {
    alone(half_requests_of_one_client_leave_room_for_other_clients, async {
        let server = server().await;
        let crowd = Crowd::of(&server).await;
        let mut other = Link::from("127.0.0.2", &server).await;
        let mut half = other.post("/v1/ids/default", "").await;
        assert!((&mut half.response).now_or_never().is_none());
        half.body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        assert_eq!(soon(half.response).await.unwrap().status(), 200, "another client is served");
        // Over HTTP/1 it is the same client, and its probes get responses; the second address is
        // another client.
        let refused = server.post("/v1/ids/default", "{}").await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        assert!(refused.body.contains("of one token or address"), "{refused:?}");
        assert_eq!(server.get("/livez").await.status, 200);
        let mut other_client = Client(connected("127.0.0.2", &server).await);
        let post =
            "POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}";
        other_client.send(post).await;
        other_client.expect("HTTP/1.1 200 OK\r\n").await;

        drop(crowd);
        soon(served(&server, 2)).await;
    });
}

/// A body that came with its request is kept for as long as the request waits, so it counts too.
#[test]
fn whole_body_counts_with_its_length() {
    /// Requests that end, and leave room for one with a short body.
    const ENDED: usize = 3;
    /// Less than the server reads at once, and more than the room that is left.
    const LONG: usize = 60 * 1024;
    alone(whole_body_counts_with_its_length, async {
        let server = server().await;
        let mut crowd = Crowd::of(&server).await;
        for body in &mut crowd.bodies[..ENDED] {
            body.send_reset(Reason::CANCEL);
        }
        soon(served(&server, 2)).await;
        assert_eq!(soon(whole(&server, LONG)).await, 503);
        assert_eq!(soon(whole(&server, 2)).await, 200);
        drop(crowd);
        soon(served(&server, LONG)).await;
    });
}

/// Returns the head of a `POST` that costs few bytes to send: its four long lines repeat earlier
/// lines of the connection.
fn large_head(is_first: bool) -> Vec<u8> {
    let text = |text: &str| {
        let length = text.len();
        let mut bytes = match u8::try_from(length) {
            Ok(length @ ..127) => vec![length],
            _ => {
                let rest = length - 127;
                vec![
                    127,
                    u8::try_from(rest % 128 + 128).unwrap(),
                    u8::try_from(rest / 128).unwrap(),
                ]
            }
        };
        bytes.extend(text.as_bytes());
        bytes
    };
    // Method and scheme from the static table, path and host as literals.
    let mut block = [&[0x83, 0x86, 0x04][..], &text("/v1/ids/default"), &[0x01]].concat();
    block.extend(text("localhost"));
    if is_first {
        block.extend([&[0x40][..], &text("x-a"), &text(&"v".repeat(3_900))].concat());
    }
    // First entry of the dynamic table.
    block.extend([0xbe].repeat(if is_first { 3 } else { 4 }));
    block
}

#[test]
fn half_request_keeps_little() {
    const LINKS: u32 = 16;
    /// Limit of a debug build, with everything that the connections keep.
    const KIB_EACH_MAX: u64 = 7;
    alone(half_request_keeps_little, async {
        let server = server().await;
        let before_kib = anonymous_kib();
        let mut links = Vec::new();
        for _ in 0..LINKS {
            let mut client = Client::to(server.http).await;
            client.send(PREFACE).await;
            client.send(frame(SETTINGS, 0, 0, &[])).await;
            let mut frames = Vec::new();
            for index in 0..STREAMS - 1 {
                let head = large_head(index == 0);
                frames.extend(frame(HEADERS, END_HEADERS, 2 * index + 1, &head));
            }
            let last = 2 * STREAMS - 1;
            frames.extend(frame(HEADERS, END_STREAM | END_HEADERS, last, &get("/livez")));
            client.send(frames).await;
            // Only the last request gets a response.
            let last_stream = async {
                loop {
                    let (kind, stream) = next_frame(&mut client).await;
                    if kind == HEADERS {
                        return stream;
                    }
                }
            };
            assert_eq!(soon(last_stream).await, last);
            links.push(client);
        }
        let each_kib = anonymous_kib().saturating_sub(before_kib) / u64::from(LINKS * STREAMS);
        assert!(each_kib < KIB_EACH_MAX, "{each_kib} KiB for each");
    });
}

/// Each line of a head costs a byte if it was sent before, and much more memory.
#[tokio::test]
async fn head_of_very_many_lines_is_refused() {
    let server = server().await;
    let mut link = Link::to(&server).await;
    for (lines, http, grpc) in [(90, 200, "0"), (101, 431, "8")] {
        let lines = vec![("x-a", "b"); lines];
        let mut half = link.begin(Method::POST, "/v1/ids/default", &lines).await;
        half.body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        assert_eq!(soon(half.response).await.unwrap().status(), http);
        let lines = [&[("content-type", "application/grpc")], lines.as_slice()].concat();
        let mut half = link.begin(Method::POST, CHECK, &lines).await;
        half.body.send_data(Bytes::from_static(&[0; 5]), true).unwrap();
        let response = soon(half.response).await.unwrap();
        if grpc != "0" {
            assert_eq!(statuses(&response), (200, Some(grpc)));
        }
    }
}

/// The head is read, so that its caller gets an error with a body, on the fast path, too.
#[tokio::test]
async fn long_head_is_refused_and_spends_nothing() {
    let server = server().await;
    let mut link = Link::to(&server).await;
    let value = "y".repeat(20 * 1024);
    for (line, status) in [(value.as_str(), 431), ("y", 200)] {
        for path in ["/v1/ids/default", "/v1/ids/default?count=2", "/livez"] {
            let mut half = link.begin(Method::GET, path, &[("x-a", line)]).await;
            half.body.send_data(Bytes::new(), true).unwrap();
            let response = soon(half.response).await.unwrap();
            assert_eq!(response.status(), status, "{path}");
            let kind = response.headers().get("content-type").is_some();
            assert!(kind, "{path}: {response:?}");
        }
    }
}

/// Between the parts of a head nothing else may come, so no ping keeps the connection open.
#[tokio::test]
async fn half_a_head_ends_with_its_connection() {
    let server = server_with(|settings| settings.http.idle_max = SHORT).await;
    let mut client = Client::to(server.http).await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    client.send(frame(HEADERS, END_STREAM, 1, &get("/livez"))).await;
    let begun = server.timer.elapsed();
    in_time(&server.timer, client.rest()).await;
    let lasted_ms = server.timer.elapsed().since(begun);
    assert!((SHORT.ms()..30 * SHORT.ms()).contains(&lasted_ms), "{lasted_ms} ms");
}
