//! Tests that a token with unread responses, over each protocol, does not affect another token.

use snowmint_server::Settings;
use snowmint_wire::grpc::ListSourcesRequest;
use tokio::net::TcpSocket;
use tonic::Status;

use super::access::{ADMIN, MINTER, bearer, grpc::named, guarded_with};
use super::common::{Client, HttpResponse, Server, request, server_with, soon};
use super::grpc::{many, reason, wish};
use super::reset::{END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, get, next_frame};

/// Most IDs of one response, which exceeds the system's buffers for a reader that does not read.
const BATCH: u64 = 100_000;

fn limits(settings: &mut Settings) {
    settings.limits.unsent_max = 2_000_000;
    // A busy machine mints some of them at the same time.
    settings.limits.wait_max = snowmint_coord::spec::Span::from_ms(60_000);
}

/// Opens a connection with a small receive buffer.
async fn narrow(address: std::net::SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    Client(socket.connect(address).await.unwrap())
}

/// Opens unread pipelines of batches over HTTP/1.1.
async fn over_http(server: &Server, count: usize) -> Vec<Client> {
    let get = format!(
        "GET /v1/ids/default?count={BATCH} HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        bearer(MINTER)
    );
    unread(server.http, count, &get.repeat(6)).await
}

/// Opens the same over RESP.
async fn over_resp(server: &Server, count: usize) -> Vec<Client> {
    let mint = request(&["MINT", "default", &BATCH.to_string()]).repeat(6);
    unread(server.resp, count, &(request(&["AUTH", MINTER]) + &mint)).await
}

async fn unread(address: std::net::SocketAddr, count: usize, asks: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = narrow(address).await;
        client.send(asks).await;
        soon(client.0.readable()).await.unwrap();
        clients.push(client);
    }
    clients
}

/// Opens the same over HTTP/2, where the reader has no window.
async fn over_http2(server: &Server, batch: u64, count: usize) -> Vec<Client> {
    let nothing = [0, 4, 0, 0, 0, 0];
    let mut client = Client::to(server.http).await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &nothing)).await;
    let value = format!("Bearer {MINTER}");
    let mut head = get(&format!("/v1/ids/default?count={batch}"));
    // `authorization` is the 23rd name of the static table.
    head.extend([0x0f, 0x08, u8::try_from(value.len()).unwrap()]);
    head.extend(value.as_bytes());
    for stream in (1_u32..).step_by(2).take(count) {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, &head)).await;
    }
    let mut responses = 0;
    while responses < count {
        responses += usize::from(soon(next_frame(&mut client)).await.0 == HEADERS);
    }
    vec![client]
}

/// Returns whether an error names the limit and the holder of the share.
fn is_over_share(message: &str) -> bool {
    message.contains("limits.unsent_max") && message.contains("the share of token minter")
}

async fn batch_over_http(server: &Server, token: &str) -> HttpResponse {
    soon(server.send("GET", &format!("/v1/ids/default?count={BATCH}"), &bearer(token), "")).await
}

async fn batch_over_grpc(server: &Server, token: &str) -> Result<usize, Status> {
    let response = server.grpc().await.mint(named(wish("default", Some(BATCH)), token)).await?;
    Ok(response.into_inner().ids.len())
}

/// Waits until the client that does not read has its whole share, and gets errors over every
/// protocol.
async fn refused(server: &Server) {
    soon(async {
        while batch_over_http(server, MINTER).await.status == 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let response = batch_over_http(server, MINTER).await;
    assert_eq!((response.status, response.code().as_str()), (503, "overloaded"));
    assert!(is_over_share(&response.body), "{response:?}");
    let status = batch_over_grpc(server, MINTER).await.unwrap_err();
    assert_eq!(reason(&status).as_str(), "overloaded");
    assert!(is_over_share(status.message()), "{status:?}");
    let mut client = server.resp().await;
    assert_eq!(client.ask(&["AUTH", MINTER]).await, "+OK");
    let reply = client.ask(&["MINT", "default", &BATCH.to_string()]).await;
    assert!(reply.starts_with("-TRYAGAIN") && is_over_share(&reply), "{reply}");
    // One ID is not counted.
    assert!(client.ask(&["INCR", "default"]).await.starts_with(':'));
}

/// Checks that another token gets its batches meanwhile.
async fn served(server: &Server, token: &str) {
    for _ in 0..3 {
        let response = batch_over_http(server, token).await;
        assert_eq!(response.status, 200, "{:.300}", response.body);
        assert_eq!(batch_over_grpc(server, token).await.unwrap(), 100_000);
        let mut client = server.resp().await;
        assert_eq!(client.ask(&["AUTH", token]).await, "+OK");
        let head = client.ask(&["MINT", "default", &BATCH.to_string()]).await;
        assert_eq!(head, "*100000");
    }
}

#[tokio::test]
async fn unread_batches_of_one_token_starve_no_other() {
    let (server, _) = guarded_with(limits).await;
    for protocol in ["http", "http2", "resp"] {
        let unread = match protocol {
            "http" => over_http(&server, 24).await,
            "http2" => over_http2(&server, BATCH, 24).await,
            _ => over_resp(&server, 24).await,
        };
        refused(&server).await;
        served(&server, ADMIN).await;
        drop(unread);
        // Its share is free again when its connections close.
        soon(async {
            while batch_over_http(&server, MINTER).await.status != 200 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn unread_streams_of_one_token_starve_no_other() {
    let (server, _) = guarded_with(limits).await;
    let mut client = server.grpc().await;
    let mut streams = Vec::new();
    let over = loop {
        assert!(streams.len() < 120, "all of the limit");
        match client.mint_stream(named(many("numbers", 1_000_000_000), MINTER)).await {
            Ok(stream) => streams.push(stream),
            Err(status) => break status,
        }
    };
    assert!(streams.len() > 20, "{}", streams.len());
    assert_eq!(reason(&over).as_str(), "overloaded");
    assert!(is_over_share(over.message()), "{over:?}");
    refused(&server).await;
    served(&server, ADMIN).await;
    let other = client.mint_stream(named(many("numbers", 1_000), ADMIN)).await.unwrap();
    let message = soon(other.into_inner().message()).await.unwrap().unwrap();
    assert_eq!(message.ids.len(), 1_000);
}

/// Small responses are not counted, but many of them on one connection are.
#[tokio::test]
async fn unread_small_responses_over_http2_count() {
    let (server, _) = guarded_with(|settings| settings.limits.unsent_max = 200_000).await;
    let _unread = over_http2(&server, 1_000, 128).await;
    let get = async |token: &str| {
        soon(server.send("GET", "/v1/ids/default?count=2000", &bearer(token), "")).await
    };
    let response = get(MINTER).await;
    assert_eq!(response.code(), "overloaded");
    assert!(is_over_share(&response.body), "{response:?}");
    assert_eq!(get(ADMIN).await.ids().len(), 2_000);
    // Small ones of another of its connections are served.
    let path = "/v1/ids/default?count=1000";
    assert_eq!(server.send("GET", path, &bearer(MINTER), "").await.ids().len(), 1_000);
}

/// A list of many rows is a large response, too.
#[tokio::test]
async fn long_lists_count() {
    let server = server_with(|settings| settings.limits.unsent_max = 1).await;
    assert_eq!(server.get("/v1/sources").await.status, 200);
    for number in 0..64 {
        let body = format!("{{\"name\":\"source-{number}\",\"kind\":\"segment\"}}");
        assert_eq!(server.post("/v1/sources", &body).await.status, 200);
    }
    assert_eq!(server.get("/v1/sources").await.code(), "overloaded");
    let status = server.grpc().await.list_sources(ListSourcesRequest {}).await.unwrap_err();
    assert_eq!(reason(&status).as_str(), "overloaded");
}

/// Without tokens, addresses have shares.
#[tokio::test]
async fn unread_batches_of_one_address_starve_no_other() {
    let server = server_with(limits).await;
    let mint = request(&["MINT", "default", &BATCH.to_string()]).repeat(6);
    let _unread = unread(server.resp, 24, &mint).await;
    let response = soon(async {
        loop {
            let response = server.get(&format!("/v1/ids/default?count={BATCH}")).await;
            if response.status != 200 {
                return response;
            }
        }
    })
    .await;
    assert!(response.body.contains("the share of address 127.0.0.1"), "{response:?}");
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
    let mut other = Client(socket.connect(server.resp).await.unwrap());
    assert_eq!(other.ask(&["MINT", "default", &BATCH.to_string()]).await, "*100000");
}
