//! Tests of hostile clients: limits hold, memory stays flat, other clients are served.

use snowmint_coord::spec::Span;
use snowmint_coord::{BootTimer, Timer as _};
use tokio::io::AsyncWriteExt;

use super::alone::{alone, anonymous_kib, peak_kib};
use super::common::{Client, HttpResponse, Server, in_time, request, server, server_with, step};

const SHORT_MS: u64 = 300;
const SHORT: Span = Span::from_ms(SHORT_MS);
/// Default of the settings.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Runs this until it ends, which is neither before the limit nor long after it.
async fn ends_at_the_limit<T>(server: &Server, what: impl Future<Output = T>) -> T {
    let begun = server.timer.elapsed();
    let done = in_time(&server.timer, what).await;
    let lasted_ms = server.timer.elapsed().since(begun);
    assert!((SHORT_MS..30 * SHORT_MS).contains(&lasted_ms), "{lasted_ms} ms");
    done
}

/// Sends while time stands still, long enough to show the limit; then until the server closes the
/// connection.
async fn sent_before_time_passes(server: &Server, asking: impl Future<Output = ()>) {
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        biased;
        () = &mut asking => panic!("the server hung up, and no time has passed"),
        () = BootTimer.sleep_ms(500) => {}
    }
    in_time(&server.timer, asking).await;
}

#[tokio::test]
async fn a_declared_gigabyte_is_refused_when_declared() {
    let server = server().await;
    for bytes in [
        "*1\r\n$1073741824\r\n",
        "*2000000000\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n",
        "*1\r\n$9999999999999999999999\r\n",
    ] {
        let mut client = server.resp().await;
        client.send(bytes).await;
        let reply = String::from_utf8(client.rest().await).unwrap();
        assert!(reply.starts_with("-ERR Protocol error: "), "{bytes:?}: {reply}");
    }
    assert_eq!(server.resp().await.ask(&["PING"]).await, "+PONG");
}

#[tokio::test]
async fn a_line_without_an_end_is_refused() {
    let server = server().await;
    let mut client = server.resp().await;
    // The server closes before everything was taken: its reply may be lost then.
    let _ = client.0.write_all(&vec![b'x'; 1024 * 1024]).await;
    client.rest().await;
    // One byte above the limit of a line: the server reads all of it, and the reply arrives.
    let mut client = server.resp().await;
    client.send(vec![b'x'; 16 * 1024 + 1]).await;
    let text = String::from_utf8(client.rest().await).unwrap();
    assert!(text.starts_with("-ERR Protocol error: too big inline request"), "{text}");
    assert_eq!(server.resp().await.ask(&["PING"]).await, "+PONG");
}

#[tokio::test]
async fn half_a_request_then_silence_is_closed() {
    let server = server_with(|settings| settings.resp.frame_time_max = SHORT).await;
    let mut rested = server.resp().await;
    assert_eq!(rested.ask(&["PING"]).await, "+PONG");
    for half in ["*2\r\n$4\r\nINCR\r\n$7\r\ndef", "*", "PIN"] {
        let mut client = server.resp().await;
        client.send(half).await;
        assert_eq!(ends_at_the_limit(&server, client.rest()).await, b"", "{half:?}");
    }
    // Half of a second request, after a whole one.
    let mut client = server.resp().await;
    client.send("PING\r\nPIN").await;
    assert_eq!(ends_at_the_limit(&server, client.rest()).await, b"+PONG\r\n");
    // The idle connection is still open.
    assert_eq!(rested.ask(&["PING"]).await, "+PONG");
}

/// The limit counts from a request's first byte: more bytes do not buy more time.
#[tokio::test]
async fn trickling_request_is_closed_in_time() {
    let server = server_with(|settings| {
        settings.resp.frame_time_max = SHORT;
        settings.http.head_time_max = SHORT;
    })
    .await;
    let trickle = async |mut client: Client, head: &str| {
        client.send(head).await;
        while client.0.write_all(b"x").await.is_ok() {
            step(&server.timer).await;
        }
    };
    let resp = trickle(server.resp().await, "*1\r\n$10000\r\n");
    ends_at_the_limit(&server, resp).await;
    let http = trickle(Client::to(server.http).await, "GET / HTTP/1.1\r\nx: ");
    ends_at_the_limit(&server, http).await;
}

#[tokio::test]
async fn idle_connections_are_closed_at_their_limit() {
    let server = server_with(|settings| {
        settings.resp.idle_max = SHORT;
        settings.http.head_time_max = SHORT;
        settings.http.idle_max = SHORT;
        settings.http.request_time_max = SHORT;
    })
    .await;
    for address in [server.resp, server.http] {
        let mut idle = Client::to(address).await;
        assert_eq!(ends_at_the_limit(&server, idle.rest()).await, b"");
    }
    let mut kept = Client::to(server.http).await;
    kept.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let raw_response = ends_at_the_limit(&server, kept.rest()).await;
    assert_eq!(HttpResponse::read(&raw_response).status, 200);
    let mut half = Client::to(server.http).await;
    half.send("POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
        .await;
    assert_eq!(ends_at_the_limit(&server, half.rest()).await, b"");
}

#[tokio::test]
async fn header_bombs_are_refused() {
    let server = server().await;
    let header = |bytes| format!("GET /livez HTTP/1.1\r\nx: {}", "y".repeat(bytes));
    let path = |bytes| format!("GET /{}", "y".repeat(bytes));
    // Exactly the longest head, without its end: the server reads all of it, and the response
    // arrives.
    let fills = |begun: String| format!("{begun}{}", "y".repeat(HEAD_BYTES_MAX - begun.len()));
    let lines = format!("GET /livez HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000));
    for bomb in [fills(header(0)), fills(path(0)), lines] {
        let mut client = Client::to(server.http).await;
        client.send(&bomb).await;
        assert_eq!(HttpResponse::read(&client.rest().await).status, 431, "{bomb:.40}");
    }
    for bomb in [header(1024 * 1024), path(1024 * 1024)] {
        let mut client = Client::to(server.http).await;
        let _ = client.0.write_all(bomb.as_bytes()).await;
        let response = client.rest().await;
        // The server closes before everything was taken: its response may be lost then.
        if !response.is_empty() {
            assert_eq!(HttpResponse::read(&response).status, 431, "{bomb:.40}");
        }
    }
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let server = server().await;
    // A declared length is rejected before the body is read.
    let mut client = Client::to(server.http).await;
    client
        .send("POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1073741824\r\n\r\n")
        .await;
    client.expect("HTTP/1.1 413 Payload Too Large\r\n").await;
    // A long body without a declared length.
    let mut client = Client::to(server.http).await;
    client
        .send("POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    for _ in 0..5 {
        let _ = client.0.write_all(chunk.as_bytes()).await;
    }
    client.expect("HTTP/1.1 413 Payload Too Large\r\n").await;
}

/// A client requests many IDs and never reads: the server waits with a bounded amount, then closes
/// the connection.
#[test]
fn a_client_that_does_not_read_is_cut_off() {
    alone(a_client_that_does_not_read_is_cut_off, async {
        let server = server_with(|settings| settings.resp.write_time_max = SHORT).await;
        let mut client = server.resp().await;
        let before_kib = peak_kib();
        let asking = async {
            let batch = request(&["MINT", "default", "10000"]).repeat(10);
            while client.0.write_all(batch.as_bytes()).await.is_ok() {}
        };
        sent_before_time_passes(&server, asking).await;
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 64 * 1024, "{grown_kib} KiB more");
        assert_eq!(server.resp().await.ask(&["PING"]).await, "+PONG");
    });
}

/// The same over HTTP: requests without end, no response read.
#[test]
fn a_pipeline_that_is_never_read_is_bounded() {
    alone(a_pipeline_that_is_never_read_is_bounded, async {
        let server = server_with(|settings| {
            settings.http.idle_max = SHORT;
            settings.http.request_time_max = SHORT;
        })
        .await;
        let mut client = Client::to(server.http).await;
        let before_kib = peak_kib();
        let asking = async {
            let batch =
                "GET /v1/ids/default?count=60 HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(100);
            while client.0.write_all(batch.as_bytes()).await.is_ok() {}
        };
        sent_before_time_passes(&server, asking).await;
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 64 * 1024, "{grown_kib} KiB more");
        assert_eq!(server.get("/livez").await.status, 200);
    });
}

/// Thousands of idle connections cost little, and do not keep other clients from being served.
#[test]
fn thousands_of_idle_connections_cost_little() {
    const CONNECTIONS: usize = 2_000;
    alone(thousands_of_idle_connections_cost_little, async {
        // Both ends are in this process.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let wanted = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted).unwrap();

        let server = server().await;
        let before_kib = anonymous_kib();
        let mut clients = Vec::new();
        for index in 0..CONNECTIONS {
            let mut client = server.resp().await;
            // Each has been served once, so that everything that a connection keeps exists.
            if index % 2 == 0 {
                assert_eq!(client.ask(&["INCR", "default"]).await.as_bytes()[0], b':');
            }
            clients.push(client);
        }
        let each_kib = anonymous_kib().saturating_sub(before_kib) / CONNECTIONS as u64;
        assert!((1..16).contains(&each_kib), "{each_kib} KiB for each connection");
        let mut one_more = server.resp().await;
        assert_eq!(one_more.ask(&["PING"]).await, "+PONG");
        assert_eq!(server.get("/v1/ids/default").await.ids().len(), 1);
        drop(clients);
    });
}
