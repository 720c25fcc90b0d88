//! Tests of calls that are held open without a token: they are few for each connection, and leave
//! room for callers with a token.

use std::net::SocketAddr;

use snowmint_wire::error::Code as ErrorCode;
use tokio::net::TcpSocket;
use tonic::codec::Streaming;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use super::access::{ADMIN, guarded, named};
use super::common::{Client, Server, server, soon};
use super::grpc::reason;
use super::reset::{
    END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, next_frame, next_whole_frame,
};

/// Calls of a connection, and of all callers without a token.
const CONNECTION: u32 = 8;
const ANONYMOUS: u32 = 2_048;

pub(crate) const DATA: u8 = 0;
const WATCH: &str = "/grpc.health.v1.Health/Watch";
const LAYOUTS: &str = "/snowmint.v1.Mint/ListLayouts";

type Watch = Streaming<HealthCheckResponse>;

async fn watch(client: &mut HealthClient<Channel>, token: &str) -> Result<Watch, Status> {
    let request = named(HealthCheckRequest::default(), token);
    Ok(soon(client.watch(request)).await?.into_inner())
}

async fn reflect(channel: &Channel) -> Result<(), Status> {
    let mut client = ServerReflectionClient::new(channel.clone());
    let none = futures_util::stream::pending::<ServerReflectionRequest>();
    soon(client.server_reflection_info(Request::new(none))).await.map(drop)
}

#[tokio::test]
async fn connection_has_a_bounded_number_of_watches() {
    let server = server().await;
    let channel = server.channel().await;
    let mut client = HealthClient::new(channel.clone());
    let mut watches = Vec::new();
    for _ in 0..CONNECTION {
        let mut watch = watch(&mut client, "").await.unwrap();
        assert!(soon(watch.message()).await.unwrap().is_some());
        watches.push(watch);
    }
    let refused = watch(&mut client, "").await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused)),
        (Code::ResourceExhausted, ErrorCode::LimitExceeded)
    );
    assert_eq!(reflect(&channel).await.unwrap_err().code(), Code::ResourceExhausted);
    // Other connections are served, and other calls on the same connection.
    assert!(watch(&mut HealthClient::new(server.channel().await), "").await.is_ok());
    assert!(soon(client.check(HealthCheckRequest::default())).await.is_ok());
    watches.pop();
    soon(async { while watch(&mut client, "").await.is_err() {} }).await;
}

/// The server reads the readiness once for any number of watches.
#[tokio::test]
async fn watches_share_one_poll() {
    let server = server().await;
    let mut client = HealthClient::new(server.channel().await);
    let mut watches = vec![watch(&mut client, "").await.unwrap()];
    // Calls have a deadline until their response.
    let settled = async |server: &Server| {
        let mut sleepers = server.timer.sleepers();
        let mut same = 0;
        while same < 20 {
            tokio::task::yield_now().await;
            let now = server.timer.sleepers();
            same = if now == sleepers { same + 1 } else { 0 };
            sleepers = now;
        }
        sleepers
    };
    soon(watches[0].message()).await.unwrap();
    let alone = soon(settled(&server)).await;
    for _ in 1..CONNECTION {
        let mut watch = watch(&mut client, "").await.unwrap();
        soon(watch.message()).await.unwrap();
        watches.push(watch);
    }
    let several = soon(settled(&server)).await;
    assert_eq!(several, alone);
}

/// Returns the head of a call: method and scheme from the static table of RFC 7541, the rest as
/// literals.
fn head_of(path: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let mut block = vec![0x83, 0x86, 0x04];
    block.extend(text(path));
    block.push(0x01);
    block.extend(text("localhost"));
    block.push(0x00);
    block.extend([text("content-type"), text("application/grpc")].concat());
    block
}

/// Connects from another address of this machine.
pub(crate) async fn client_from(host: u8, server: &Server) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).unwrap();
    let stream = soon(socket.connect(server.http)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    Client(stream)
}

/// Opens the most watches that callers without a token may have, over the connections that this
/// takes. They come from enough addresses that no address reaches its share.
async fn flood(server: &Server) -> Vec<Client> {
    let mut clients = Vec::new();
    for (_, host) in (0..ANONYMOUS / CONNECTION).zip((2..18).cycle()) {
        let mut client = client_from(host, server).await;
        client.send(PREFACE).await;
        client.send(frame(SETTINGS, 0, 0, &[])).await;
        for index in 0..CONNECTION {
            let stream = 2 * index + 1;
            client.send(frame(HEADERS, END_HEADERS, stream, &head_of(WATCH))).await;
            client.send(frame(DATA, END_STREAM, stream, &[0; 5])).await;
        }
        let mut messages = 0;
        while messages < CONNECTION {
            messages += u32::from(soon(next_frame(&mut client)).await.0 == DATA);
        }
        clients.push(client);
    }
    clients
}

#[tokio::test]
async fn anonymous_watches_leave_room_for_tokens() {
    let (server, _) = guarded().await;
    let mut clients = flood(&server).await;
    let mut client = HealthClient::new(server.channel().await);
    let refused = watch(&mut client, "").await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::Unavailable, ErrorCode::Overloaded));
    let mut known = watch(&mut client, ADMIN).await.unwrap();
    assert!(soon(known.message()).await.unwrap().is_some());
    drop(clients.pop());
    soon(async { while watch(&mut client, "").await.is_err() {} }).await;
}

/// The list is long, and needs no token. With a window of one byte, h2 keeps the rest of a
/// response.
#[tokio::test]
async fn unread_layout_lists_of_a_connection_are_few() {
    let server = server().await;
    for window in [0, 1] {
        let mut client = Client::to(server.http).await;
        client.send(PREFACE).await;
        client.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, window])).await;
        for index in 0..=CONNECTION {
            let stream = 2 * index + 1;
            client.send(frame(HEADERS, END_HEADERS, stream, &head_of(LAYOUTS))).await;
            client.send(frame(DATA, END_STREAM, stream, &[0; 5])).await;
            let response = async {
                loop {
                    let (kind, flags, of, _) = next_whole_frame(&mut client).await;
                    if (kind, of) == (HEADERS, stream) {
                        return flags & END_STREAM == 0;
                    }
                }
            };
            // An error is a head alone.
            assert_eq!(
                soon(response).await,
                index < CONNECTION,
                "{index} with a window of {window}"
            );
        }
    }
}
