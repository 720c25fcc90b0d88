//! Tests of a stop: nothing new begins, requests in progress finish, and nothing stays open.

use super::batched::{self, encrypted_with};
use super::common::{Client, Server, in_time, request, server, server_with, settings, soon};
use snowmint_coord::Timer as _;
use snowmint_coord::spec::Span;
use snowmint_server::Settings;

/// Time that a client has for reading something, once the server stops.
pub(crate) const UNREAD_MS: u64 = 2_000;

/// Sets the limits that could end a connection, or the wait of a stop, to more than any test takes.
pub(crate) fn patient(settings: &mut Settings) {
    let long = Span::from_ms(3_600_000);
    settings.limits.stop_max = long;
    settings.http.idle_max = long;
    settings.resp.write_time_max = long;
}

/// Stops the server, and returns how long that takes by its timer.
pub(crate) async fn stop_ms(server: Server) -> u64 {
    server.handle.stop();
    let begun = server.timer.elapsed();
    in_time(&server.timer, server.handle.stopped()).await;
    server.timer.elapsed().since(begun)
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_a_stop() {
    let server = server().await;
    let mut resp = server.resp().await;
    assert_eq!(resp.ask(&["PING"]).await, "+PONG");
    let mut http = Client::to(server.http).await;
    http.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    http.expect("HTTP/1.1 200 OK\r\n").await;
    server.handle.stop();
    soon(server.handle.stopped()).await;
    assert_eq!(resp.rest().await, b"");
    http.rest().await;
    assert!(tokio::net::TcpStream::connect(server.http).await.is_err());
    assert!(tokio::net::TcpStream::connect(server.resp).await.is_err());
}

#[tokio::test]
async fn a_stop_is_bounded() {
    let server = server_with(|settings| settings.limits.stop_max = Span::from_ms(200)).await;
    // A request that never ends.
    let mut http = Client::to(server.http).await;
    http.send("POST /v1/ids/default HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
        .await;
    // Its head has been read when the server has responded to another request on a later
    // connection.
    assert_eq!(server.get("/livez").await.status, 200);
    let waited_ms = stop_ms(server).await;
    assert!((200..9_000).contains(&waited_ms), "{waited_ms} ms");
    assert_eq!(http.rest().await, b"");
}

/// Returns more requests than the sockets hold replies to.
fn long_pipeline() -> String {
    request(&["MINT", "numbers", "100000"]).repeat(100)
}

#[tokio::test]
async fn stop_ends_a_pipeline_that_is_not_read() {
    let server = server_with(patient).await;
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["PING"]).await, "+PONG");
    client.send(long_pipeline()).await;
    // The server is sending.
    client.expect("*100000\r\n").await;
    let waited_ms = stop_ms(server).await;
    assert!(waited_ms >= UNREAD_MS, "{waited_ms} ms");
}

/// TLS does not show whether the client reads.
#[tokio::test]
async fn stop_ends_an_encrypted_pipeline_that_is_not_read() {
    let mut settings = settings();
    patient(&mut settings);
    let (server, connector) = encrypted_with(settings).await;
    let mut client = batched::Client::to(server.resp, &connector).await;
    client.writes("PING\r\n", 1, "+PONG").await;
    // The server is sending.
    client.writes(&long_pipeline(), 1, "*100000").await;
    let waited_ms = stop_ms(server).await;
    assert!(waited_ms >= UNREAD_MS, "{waited_ms} ms");
}

#[tokio::test]
async fn a_dropped_handle_takes_everything_with_it() {
    let server = server().await;
    let mut resp = server.resp().await;
    assert_eq!(resp.ask(&["PING"]).await, "+PONG");
    drop(server.handle);
    assert_eq!(resp.rest().await, b"");
}
