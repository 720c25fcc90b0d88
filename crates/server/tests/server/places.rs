//! Tests of connection limits: which connection ends when all places are taken, and with which
//! message.

use std::net::SocketAddr;

use snowmint_coord::spec::Span;
use snowmint_server::Settings;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpSocket;

use super::access::{MINTER, bearer, guarded_with};
use super::batched::encrypted_with;
use super::common::{Client, HttpResponse, Server, in_time, request, server_with, soon};
use super::reset::{END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, get, next_frame};

const DATA: u8 = 0;
const GOAWAY: u8 = 7;
const LIVE: &str = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
const GAVE_WAY: &[u8] =
    b"-ERR closed: another connection needs the place of this one (resp.connections_max)\r\n";

/// Sets the number of places on each port.
fn places(count: usize) -> impl Fn(&mut Settings) {
    move |settings| {
        settings.http.connections_max = count;
        settings.resp.connections_max = count;
    }
}

/// Opens a connection, sends a request, and keeps it open.
async fn client_with_request(server: &Server, headers: &str) -> Client {
    let mut client = Client::to(server.http).await;
    ask(&mut client, headers).await;
    client
}

async fn ask(client: &mut Client, headers: &str) {
    let get = format!("GET /v1/ids/default HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    client.send(get).await;
    client.expect("HTTP/1.1 200 OK\r\n").await;
    while !client.line().await.is_empty() {}
    let mut body = vec![0; 64];
    let read = soon(client.0.read(&mut body)).await.unwrap();
    assert!(body[..read].starts_with(b"{\"ids\":["), "{body:?}");
}

/// Connects from another address of this machine.
async fn from(address: [u8; 4], to: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((std::net::Ipv4Addr::from(address), 0).into()).unwrap();
    Client(socket.connect(to).await.unwrap())
}

/// Returns the kind of the next frame, apart from the connection's settings and pings.
async fn next_kind(client: &mut Client) -> u8 {
    loop {
        let (kind, _) = soon(next_frame(client)).await;
        if ![SETTINGS, 6, 8].contains(&kind) {
            return kind;
        }
    }
}

async fn over_http2(server: &Server) -> Client {
    let mut client = Client::to(server.http).await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    client.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, &get("/livez"))).await;
    assert_eq!(next_kind(&mut client).await, HEADERS);
    client
}

#[tokio::test]
async fn longest_idle_connection_ends_for_a_new_one() {
    let server = server_with(places(3)).await;
    let mut resp = Vec::new();
    for _ in 0..4 {
        let mut client = server.resp().await;
        assert_eq!(client.ask(&["PING"]).await, "+PONG");
        resp.push(client);
    }
    assert_eq!(resp.remove(0).rest().await, GAVE_WAY);
    for client in &mut resp {
        assert_eq!(client.ask(&["PING"]).await, "+PONG");
    }

    let mut second = over_http2(&server).await;
    let mut first = client_with_request(&server, "").await;
    let mut third = client_with_request(&server, "").await;
    let mut fourth = client_with_request(&server, "").await;
    // The oldest connection ends, with a message of its protocol.
    while next_kind(&mut second).await != GOAWAY {}
    for client in [&mut first, &mut third, &mut fourth] {
        ask(client, "").await;
    }
    let mut fifth = client_with_request(&server, "").await;
    assert_eq!(first.rest().await, b"");
    ask(&mut fifth, "").await;
    drop(third);
    drop(fourth);
}

/// A rejected connection gets a message.
#[tokio::test]
async fn request_in_progress_keeps_its_place() {
    let server = server_with(places(1)).await;
    let mut held = Client::to(server.http).await;
    held.send("POST /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n").await;
    held.send("expect: 100-continue\r\n\r\n").await;
    // The body is awaited from now on.
    held.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    for _ in 0..3 {
        let refused = HttpResponse::read(&Client::to(server.http).await.rest().await);
        assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
        assert!(refused.body.contains("http.connections_max"), "{refused:?}");
    }
    held.send("{}").await;
    held.expect("HTTP/1.1 200 OK\r\n").await;
}

/// Opens a connection with a request that waits for its body.
async fn waiting(server: &Server, address: [u8; 4], headers: &str) -> Client {
    let mut client = from(address, server.http).await;
    client.send("POST /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\n").await;
    client.send(format!("{headers}expect: 100-continue\r\ncontent-length: 2\r\n\r\n")).await;
    client.expect("HTTP/1.1 100 Continue\r\n\r\n").await;
    client
}

async fn is_live(server: &Server, address: [u8; 4]) {
    let mut client = from(address, server.http).await;
    client.send(LIVE).await;
    client.expect("HTTP/1.1 200 OK\r\n").await;
}

/// A client with requests over all places, by an address or by a token from several, keeps no other
/// client out.
#[tokio::test]
async fn busy_client_on_all_places_gives_one_to_another() {
    const PLACES: u8 = 20;
    let (server, _) = guarded_with(places(PLACES.into())).await;
    let minter = bearer(MINTER);
    let mut busy = Vec::new();
    for host in 0..PLACES {
        busy.push(waiting(&server, [127, 0, 1, host % 4 + 1], &minter).await);
    }
    for host in [2, 3] {
        is_live(&server, [127, 0, 0, host]).await;
    }
    // A connection that makes room first gets its response.
    for client in &mut busy {
        client.send("{}").await;
        client.expect("HTTP/1.1 200 OK\r\n").await;
    }
}

/// Any number of silent connections: probes and callers with a token are served, and keep their
/// connections.
#[tokio::test]
async fn silent_connections_use_no_place_of_tokens_and_probes() {
    let (server, _) = guarded_with(places(20)).await;
    let minter = bearer(MINTER);
    let mut http = client_with_request(&server, &minter).await;
    let mut resp = server.resp().await;
    assert_eq!(resp.ask(&["AUTH", MINTER]).await, "+OK");
    let mut silent = Vec::new();
    for _ in 0..60 {
        silent.push(Client::to(server.http).await);
        silent.push(server.resp().await);
        // Half of a request, and half of a command, count as nothing.
        let mut half = Client::to(server.http).await;
        half.send("GET /v1/ids/default HTTP/1.1\r\nhost: lo").await;
        silent.push(half);
        let mut half = server.resp().await;
        half.send("*2\r\n$4\r\nINCR\r\n").await;
        silent.push(half);
    }
    for _ in 0..5 {
        let live = soon(server.get("/livez")).await;
        assert_eq!(live.status, 200);
        assert_eq!(server.send("GET", "/v1/ids/default", &minter, "").await.ids().len(), 1);
        let mut other = server.resp().await;
        assert_eq!(other.ask(&["AUTH", MINTER]).await, "+OK");
        other.send(request(&["INCR", "default"])).await;
        other.integer().await;
    }
    ask(&mut http, &minter).await;
    resp.send(request(&["INCR", "default"])).await;
    resp.integer().await;
}

/// One address with all places loses them to others, which lose none to it.
#[tokio::test]
async fn address_with_all_places_loses_them_first() {
    let server = server_with(places(16)).await;
    let mut other = from([127, 0, 0, 2], server.resp).await;
    assert_eq!(other.ask(&["PING"]).await, "+PONG");
    let mut greedy = Vec::new();
    for _ in 0..40 {
        let mut client = from([127, 0, 0, 3], server.resp).await;
        assert_eq!(client.ask(&["PING"]).await, "+PONG");
        greedy.push(client);
    }
    let mut third = from([127, 0, 0, 4], server.resp).await;
    assert_eq!(third.ask(&["PING"]).await, "+PONG");
    assert_eq!(other.ask(&["PING"]).await, "+PONG", "it rested longer than all of them");
}

/// An unfinished TLS handshake keeps no place.
#[tokio::test]
async fn half_handshakes_use_no_place() {
    let mut settings = super::common::settings();
    places(4)(&mut settings);
    let (server, connector) = encrypted_with(settings).await;
    let mut silent = Vec::new();
    for _ in 0..12 {
        let mut client = Client::to(server.resp).await;
        client.send([0x16, 3, 1]).await;
        silent.push(client);
    }
    let mut client = super::batched::Client::to(server.resp, &connector).await;
    assert!(client.writes("PING\r\n", 1, "+PONG").await >= 1);
}

/// A connection without a token has a minute, where tokens are required.
#[tokio::test]
async fn connection_without_a_token_ends_in_time() {
    const SHORT: Span = Span::from_ms(300);
    let (server, _) = guarded_with(|settings| {
        settings.http.auth_time_max = SHORT;
        settings.resp.auth_time_max = SHORT;
    })
    .await;
    let minter = bearer(MINTER);
    let mut known = client_with_request(&server, &minter).await;
    let mut named = server.resp().await;
    assert_eq!(named.ask(&["AUTH", MINTER]).await, "+OK");

    let expected = b"-NOAUTH closed: no AUTH within 300 ms (resp.auth_time_max)\r\n";
    let mut silent = server.resp().await;
    assert_eq!(in_time(&server.timer, silent.rest()).await, expected);
    // Traffic without a token does not help.
    let mut wrong = server.resp().await;
    let text = in_time(&server.timer, async {
        loop {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut wrong.0, b"PING\r\n").await;
            let line = wrong.line().await;
            if line.contains("auth_time_max") {
                return line;
            }
        }
    });
    assert!(text.await.starts_with("-NOAUTH closed"));

    let mut probe = Client::to(server.http).await;
    probe.send(LIVE).await;
    let response = HttpResponse::read(&in_time(&server.timer, probe.rest()).await);
    assert_eq!((response.status, response.header("connection")), (200, None));
    let mut second = over_http2(&server).await;
    let ended = async { while next_kind(&mut second).await != GOAWAY {} };
    in_time(&server.timer, ended).await;

    // Connections that have shown a token stay.
    ask(&mut known, &minter).await;
    assert_eq!(named.ask(&["PING"]).await, "+PONG");
}

/// Each of many failed requests grows a connection's memory: a client that continues without a
/// token loses the connection.
#[tokio::test]
async fn connection_with_repeated_errors_ends() {
    let (server, _) = guarded_with(|_| {}).await;
    let minter = bearer(MINTER);
    let mut known = client_with_request(&server, &minter).await;
    let mut client = over_http2(&server).await;
    let mut responses = 0;
    for stream in (3..).step_by(2) {
        let ask = get("/v1/ids/default");
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, &ask)).await;
        let kind = loop {
            match next_kind(&mut client).await {
                DATA => {}
                kind => break kind,
            }
        };
        if kind == GOAWAY {
            break;
        }
        responses += 1;
        assert!(responses < 100, "it never ends");
    }
    assert!(responses >= 16, "{responses} responses");
    // Open requests end with the connection.
    in_time(&server.timer, client.rest()).await;
    // A caller with a token may fail any number of times.
    for _ in 0..100 {
        let wrong = format!("GET /v1/nothing HTTP/1.1\r\nhost: localhost\r\n{minter}\r\n");
        known.send(wrong).await;
        known.expect("HTTP/1.1 404 Not Found\r\n").await;
        while !known.line().await.is_empty() {}
        let mut body = vec![0; 1024];
        assert!(soon(known.0.read(&mut body)).await.unwrap() > 0);
    }
    ask(&mut known, &minter).await;
}

/// Before authentication, a request may contain a name and a token, and no more.
#[tokio::test]
async fn long_request_before_auth_is_refused() {
    let (server, _) = guarded_with(|_| {}).await;
    let half = format!("*2\r\n$4\r\nECHO\r\n$9000\r\n{}", "x".repeat(5_000));
    let whole = format!("*2\r\n$4\r\nECHO\r\n$4100\r\n{}\r\n", "x".repeat(4_100));
    for long in [&half, &whole] {
        let mut client = server.resp().await;
        client.send(long).await;
        let text = String::from_utf8(client.rest().await).unwrap();
        assert_eq!(text, "-ERR Protocol error: request longer than 4096 bytes before AUTH\r\n");
    }
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", MINTER]).await, "+OK");
    client.send(half + &"x".repeat(4_000) + "\r\n").await;
    client.expect("$9000\r\n").await;
}

/// Without required tokens, no connection needs one.
#[tokio::test]
async fn connection_to_a_server_without_tokens_may_stay() {
    let server = server_with(|settings| {
        settings.http.auth_time_max = Span::from_ms(300);
        settings.resp.auth_time_max = Span::from_ms(300);
    })
    .await;
    let mut http = client_with_request(&server, "").await;
    let mut resp = server.resp().await;
    for _ in 0..20 {
        super::common::step(&server.timer).await;
    }
    ask(&mut http, "").await;
    assert_eq!(resp.ask(&["PING"]).await, "+PONG");
}
