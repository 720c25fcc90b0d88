//! Those who mean no good: limits hold, memory stays flat, others are served.

use snowmint_coord::spec::Span;
use tokio::io::AsyncWriteExt;

use super::common::{Answer, Client, request, resident_kib, server, server_with, soon};

const SHORT: Span = Span::from_ms(300);

async fn pause() {
    snowmint_coord::Timer::sleep_ms(&snowmint_coord::BootTimer, 20).await;
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
    // The server may close before everything was taken.
    let _ = client.0.write_all(&vec![b'x'; 1024 * 1024]).await;
    client.rest().await;
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
        assert_eq!(client.rest().await, b"", "{half:?}");
    }
    // Half of a second request, after a whole one.
    let mut client = server.resp().await;
    client.send("PING\r\nPIN").await;
    assert_eq!(client.rest().await, b"+PONG\r\n");
    // One who asked nothing has not been closed.
    assert_eq!(rested.ask(&["PING"]).await, "+PONG");
}

/// The limit counts from a request's first byte: more bytes do not buy more time.
#[tokio::test]
async fn a_trickle_is_closed() {
    let server = server_with(|settings| {
        settings.resp.frame_time_max = SHORT;
        settings.http.head_time_max = SHORT;
    })
    .await;
    let trickle = async |mut client: Client, head: &str| {
        client.send(head).await;
        while client.0.write_all(b"x").await.is_ok() {
            pause().await;
        }
    };
    soon(trickle(server.resp().await, "*1\r\n$10000\r\n")).await;
    soon(trickle(Client::to(server.http).await, "GET / HTTP/1.1\r\nx: ")).await;
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
    assert_eq!(server.resp().await.rest().await, b"");
    assert_eq!(Client::to(server.http).await.rest().await, b"");
    let mut kept = Client::to(server.http).await;
    kept.send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(Answer::read(&kept.rest().await).status, 200);
    let mut half = Client::to(server.http).await;
    half.send("POST /v1/ids/default HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{").await;
    assert_eq!(half.rest().await, b"");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = server_with(|settings| {
        settings.resp.connections_max = 2;
        settings.http.connections_max = 1;
    })
    .await;
    let mut one = server.resp().await;
    let mut two = server.resp().await;
    assert_eq!(one.ask(&["PING"]).await, "+PONG");
    assert_eq!(two.ask(&["PING"]).await, "+PONG");
    assert_eq!(server.resp().await.rest().await, b"-ERR max number of clients reached\r\n");
    drop(two);
    // The place comes free as soon as the server has seen the end.
    soon(async {
        loop {
            let mut three = server.resp().await;
            let _ = three.0.write_all(b"QUIT\r\n").await;
            if three.rest().await == b"+OK\r\n" {
                break;
            }
        }
    })
    .await;

    let mut held = Client::to(server.http).await;
    held.send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await;
    held.expect("HTTP/1.1 200 OK\r\n").await;
    let refused = Answer::read(&Client::to(server.http).await.rest().await);
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
}

#[tokio::test]
async fn header_bombs_are_refused() {
    let server = server().await;
    for bomb in [
        format!("GET /livez HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1024 * 1024)),
        format!("GET /livez HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000)),
        format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(1024 * 1024)),
    ] {
        let mut client = Client::to(server.http).await;
        let _ = client.0.write_all(bomb.as_bytes()).await;
        let answer = client.rest().await;
        // The server may hang up before the answer was read.
        if !answer.is_empty() {
            let status = Answer::read(&answer).status;
            assert!((400..500).contains(&status), "{status}");
        }
    }
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let server = server().await;
    // Said to be long: refused before it is read.
    let mut client = Client::to(server.http).await;
    client
        .send("POST /v1/ids/default HTTP/1.1\r\nhost: x\r\ncontent-length: 1073741824\r\n\r\n")
        .await;
    client.expect("HTTP/1.1 413 Payload Too Large\r\n").await;
    // Long without saying so.
    let mut client = Client::to(server.http).await;
    client
        .send("POST /v1/ids/default HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    for _ in 0..5 {
        let _ = client.0.write_all(chunk.as_bytes()).await;
    }
    client.expect("HTTP/1.1 413 Payload Too Large\r\n").await;
}

/// Many IDs are asked for and never read: the server waits with a bounded amount, then hangs up.
#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let server = server_with(|settings| settings.resp.write_time_max = SHORT).await;
    let mut client = server.resp().await;
    let before_kib = resident_kib();
    let asking = async {
        let batch = request(&["MINT", "default", "10000"]).repeat(10);
        while client.0.write_all(batch.as_bytes()).await.is_ok() {}
    };
    soon(asking).await;
    let grown_kib = resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 64 * 1024, "{grown_kib} KiB more");
    assert_eq!(server.resp().await.ask(&["PING"]).await, "+PONG");
}

/// The same over HTTP: requests without end, no answer read.
#[tokio::test]
async fn a_pipeline_that_is_never_read_is_bounded() {
    let server = server_with(|settings| {
        settings.http.idle_max = SHORT;
        settings.http.request_time_max = SHORT;
    })
    .await;
    let mut client = Client::to(server.http).await;
    let before_kib = resident_kib();
    let asking = async {
        let batch = "GET /v1/ids/default?count=60 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
        while client.0.write_all(batch.as_bytes()).await.is_ok() {}
    };
    soon(asking).await;
    let grown_kib = resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 64 * 1024, "{grown_kib} KiB more");
    assert_eq!(server.get("/livez").await.status, 200);
}

/// Thousands of connections that do nothing cost little, and do not keep others from being served.
#[tokio::test]
async fn thousands_of_idle_connections_cost_little() {
    const CONNECTIONS: usize = 2_000;
    // Both ends are in this process.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted).unwrap();

    let server = server().await;
    let before_kib = resident_kib();
    let mut clients = Vec::new();
    for index in 0..CONNECTIONS {
        let mut client = server.resp().await;
        // Each has been served once, so that whatever a connection keeps is there.
        if index % 2 == 0 {
            assert_eq!(client.ask(&["INCR", "default"]).await.as_bytes()[0], b':');
        }
        clients.push(client);
    }
    let each_kib = resident_kib().saturating_sub(before_kib) / CONNECTIONS as u64;
    assert!(each_kib < 16, "{each_kib} KiB for each connection");
    let mut one_more = server.resp().await;
    assert_eq!(one_more.ask(&["PING"]).await, "+PONG");
    assert_eq!(server.get("/v1/ids/default").await.ids().len(), 1);
    drop(clients);
}
