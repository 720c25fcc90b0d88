//! Tests of a stop: nothing new begins, requests in progress finish, and nothing stays open.

use super::common::{Client, in_time, server, server_with, soon};
use snowmint_coord::Timer as _;
use snowmint_coord::spec::Span;

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
    server.handle.stop();
    let begun = server.timer.elapsed();
    in_time(&server.timer, server.handle.stopped()).await;
    let waited_ms = server.timer.elapsed().since(begun);
    assert!((200..9_000).contains(&waited_ms), "{waited_ms} ms");
    assert_eq!(http.rest().await, b"");
}

#[tokio::test]
async fn a_dropped_handle_takes_everything_with_it() {
    let server = server().await;
    let mut resp = server.resp().await;
    assert_eq!(resp.ask(&["PING"]).await, "+PONG");
    drop(server.handle);
    assert_eq!(resp.rest().await, b"");
}
