//! Tests of one HTTP connection: requests that come together, in halves, or forever.

use tokio::io::AsyncReadExt as _;

use super::common::{Client, HttpResponse, server, soon};

/// Requests sent without waiting for responses come back in order, on one connection.
#[tokio::test]
async fn http_pipeline_gets_responses_in_order() {
    let server = server().await;
    let mut client = Client::to(server.http).await;
    let mut bytes = "GET /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(49);
    bytes.push_str("GET /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    client.send(bytes).await;
    let text = String::from_utf8(client.rest().await).unwrap();
    let ids: Vec<u64> = text
        .match_indices("{\"ids\":[\"")
        .map(|(at, head)| text[at + head.len()..].split('"').next().unwrap().parse().unwrap())
        .collect();
    assert!(ids.iter().copied().eq(1..=50), "{ids:?}");
}

/// A response does not wait for the rest of a request that may never come.
#[tokio::test]
async fn half_a_second_request_does_not_delay_the_first_response() {
    let server = server().await;
    let mut client = Client::to(server.http).await;
    client.send("GET /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\n\r\nGET /v1/ids").await;
    client.expect("HTTP/1.1 200 OK\r\n").await;
    // It does not wait for the body of the next request, either.
    let mut client = Client::to(server.http).await;
    let post = "POST /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n";
    client.send(format!("GET /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\n\r\n{post}")).await;
    client.expect("HTTP/1.1 200 OK\r\n").await;
    // A response after a wait for its request's body does not wait, either.
    let mut client = Client::to(server.http).await;
    client
        .send("POST /v1/ids/numbers HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{")
        .await;
    assert_eq!(server.get("/livez").await.status, 200);
    client.send("}").await;
    client.expect("HTTP/1.1 200 OK\r\n").await;
}

/// A connection caches the last source, and yet follows its changes.
#[tokio::test]
async fn cached_source_of_a_connection_follows_changes() {
    let server = server().await;
    let mut client = Client::to(server.http).await;
    let mut body = async || {
        client.send("GET /v1/ids/orders HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let mut length = 0;
        loop {
            let line = client.line().await;
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        soon(client.0.read_exact(&mut body)).await.unwrap();
        String::from_utf8(body).unwrap()
    };
    assert!(body().await.contains("unknown_source"));
    let definition = "{\"name\":\"orders\",\"kind\":\"segment\"}";
    assert_eq!(server.post("/v1/sources", definition).await.status, 200);
    for id in 1..=4 {
        assert_eq!(body().await, format!("{{\"ids\":[\"{id}\"]}}"));
    }
    let hex = server.send("PATCH", "/v1/sources/orders", "", "{\"text\":\"hex-padded\"}").await;
    assert_eq!(hex.status, 200, "{hex:?}");
    let written = server.get("/v1/ids/orders?format=decimal").await.body;
    assert_eq!(written, "{\"ids\":[\"5\"]}");
    let written = body().await;
    assert!(written.contains("\"000") && written.contains("6\""), "{written}");
    let off = server.send("PATCH", "/v1/sources/orders", "", "{\"enabled\":false}").await;
    assert_eq!(off.status, 200, "{off:?}");
    assert!(body().await.contains("disabled"));
    assert_eq!(server.send("DELETE", "/v1/sources/orders", "", "").await.status, 204);
    assert!(body().await.contains("unknown_source"));
}

/// A reader that does not read holds its IDs; when too many are held, other callers must retry
/// later.
#[tokio::test]
async fn unsent_ids_are_bounded() {
    let server = super::common::server_with(|settings| {
        settings.limits.batch_max = 500_000;
        // One of these responses is a client's share.
        settings.limits.unsent_max = 1_500_000;
        // A busy machine needs time for this many.
        settings.limits.wait_max = snowmint_coord::spec::Span::from_ms(20_000);
    })
    .await;
    // It reads in small pieces, so that the system's buffers cannot hold a response.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut slow = Client(socket.connect(server.http).await.unwrap());
    slow.send("GET /v1/ids/default?count=500000 HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    soon(slow.0.readable()).await.unwrap();
    let refused = soon(async {
        loop {
            let response = server.get("/v1/ids/default?count=500000").await;
            if response.status != 200 {
                return response;
            }
        }
    })
    .await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Small requests are not affected, and the limit becomes free again.
    assert_eq!(server.get("/v1/ids/default?count=1000").await.ids().len(), 1000);
    drop(slow);
    soon(async {
        while server.get("/v1/ids/default?count=500000").await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn http2_is_served_without_tls() {
    let server = server().await;
    let mut client = Client::to(server.http).await;
    // The preface and an empty SETTINGS frame; the server's first frame is its SETTINGS.
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let mut head = [0; 9];
    soon(tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut head)).await.unwrap();
    assert_eq!(head[3], 4, "a SETTINGS frame: {head:?}");
}

#[tokio::test]
async fn request_without_a_host_is_served() {
    let server = server().await;
    let mut client = Client::to(server.http).await;
    client.send("GET /livez HTTP/1.0\r\n\r\n").await;
    assert_eq!(HttpResponse::read(&client.rest().await).status, 200);
}
