//! Tests of HTTP/2 clients that read nothing, but exchange other frames.

use snowmint_coord::Timer as _;
use snowmint_coord::spec::Span;
use snowmint_server::Settings;
use tokio::io::AsyncWriteExt as _;

use super::access::{MINTER, guarded};
use super::alone::{alone, peak_kib};
use super::common::{Client, Server, in_time, server, server_with, soon, step};
use super::grpc::many;
use super::reset::{
    END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    get, next_frame, next_whole_frame,
};
use super::stop::{UNREAD_MS, patient, stop_ms};
use super::watches::{DATA, client_from};

/// Unread responses that a connection without a token may have: by itself, and with the common
/// limit.
const OPEN_OWN: usize = 4;
const OPEN_MAX: usize = 24;
/// Unread responses beyond their own of all connections of one address.
const OPEN_OF_ADDRESS: usize = 1_024;

/// Opens a connection with this window for each response's body.
async fn reading(server: &Server, window: u8) -> Client {
    reading_over(Client::to(server.http).await, window).await
}

async fn reading_over(mut client: Client, window: u8) -> Client {
    client.send(PREFACE).await;
    // `SETTINGS_INITIAL_WINDOW_SIZE`.
    client.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, window])).await;
    client
}

/// Sends these requests, and reads only the heads of the responses.
async fn ask(client: &mut Client, heads: &[Vec<u8>]) {
    for (stream, head) in (1_u32..).step_by(2).zip(heads) {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, head)).await;
    }
    let mut responses = 0;
    while responses < heads.len() {
        let (kind, _) = soon(next_frame(client)).await;
        responses += usize::from(kind == HEADERS);
    }
}

/// A built-in file is not copied for each request.
#[test]
fn unread_long_file_costs_no_memory() {
    alone(unread_long_file_costs_no_memory, async {
        let server = server().await;
        let whole = server.get("/docs/swagger-ui-bundle.js").await.body;
        assert!(whole.len() > 1_000_000);
        let before_kib = peak_kib();
        let mut client = reading(&server, 0).await;
        ask(&mut client, &vec![get("/docs/swagger-ui-bundle.js"); 100]).await;
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 32 * 1024, "{grown_kib} KiB more");
    });
}

/// A text is compressed once, and the server keeps no encoder for clients that do not read.
#[test]
fn unread_compressed_texts_cost_no_memory() {
    alone(unread_compressed_texts_cost_no_memory, async {
        let server = server().await;
        let paths = ["/console/main.js", "/openapi.json", "/v1/layouts"];
        for path in paths {
            let pressed = server.send("GET", path, "accept-encoding: gzip\r\n", "").await;
            assert_eq!(pressed.header("content-encoding"), Some("gzip"), "{path}");
        }
        let before_kib = peak_kib();
        let mut clients = Vec::new();
        for path in paths.repeat(2) {
            let mut client = reading(&server, 0).await;
            // The 16th line of the static table is `accept-encoding: gzip, deflate`.
            ask(&mut client, &vec![[get(path), vec![0x90]].concat(); 120]).await;
            clients.push(client);
        }
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 32 * 1024, "{grown_kib} KiB more");
    });
}

/// Requests this on one stream after the other, and returns the kinds of the response frames.
async fn kinds_of(client: &mut Client, head: &[u8], streams: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut kinds = Vec::new();
    for stream in streams {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, head)).await;
        let response = async {
            loop {
                let (kind, _, of, payload) = next_whole_frame(client).await;
                if of == stream {
                    // REFUSED_STREAM: the request can be sent again.
                    assert!(kind != RST_STREAM || payload == 7_u32.to_be_bytes(), "{payload:?}");
                    return kind;
                }
            }
        };
        kinds.push(soon(response).await);
    }
    kinds
}

/// Each costs the server the memory of a stream. With a window of one byte, h2 keeps the rest.
#[tokio::test]
async fn connection_without_a_token_has_few_unread_responses() {
    let (server, _) = guarded().await;
    let head = get("/livez");
    for window in [0, 1] {
        let mut client = reading(&server, window).await;
        let kinds = kinds_of(&mut client, &head, (1..81).step_by(2)).await;
        let (served, refused) = kinds.split_at(OPEN_MAX);
        assert!(served.iter().all(|&kind| kind == HEADERS), "{served:?} with a window of {window}");
        assert!(refused.iter().all(|&kind| kind == RST_STREAM), "{refused:?} with {window}");
        // A read response makes room.
        client.send(frame(WINDOW_UPDATE, 0, 1, &1_000_u32.to_be_bytes())).await;
        let mut stream = 81;
        let response = async {
            while kinds_of(&mut client, &head, std::iter::once(stream)).await != [HEADERS] {
                stream += 2;
            }
        };
        soon(response).await;
    }
}

/// An address with many connections leaves room for others.
#[tokio::test]
async fn address_without_a_token_has_few_unread_responses() {
    let (server, _) = guarded().await;
    let head = get("/livez");
    let (mut clients, mut served) = (Vec::new(), 0);
    let connections = OPEN_OF_ADDRESS / (OPEN_MAX - OPEN_OWN) + 2;
    for host in std::iter::repeat_n(2, connections).chain([3]) {
        let mut client = reading_over(client_from(host, &server).await, 0).await;
        let kinds = kinds_of(&mut client, &head, (1..).step_by(2).take(OPEN_MAX)).await;
        let of_client = kinds.iter().filter(|&&kind| kind == HEADERS).count();
        if host == 2 {
            served += of_client;
        } else {
            assert_eq!(of_client, OPEN_MAX, "another address");
        }
        clients.push(client);
    }
    assert_eq!(served, OPEN_OF_ADDRESS + connections * OPEN_OWN);
}

/// The server checks their tokens even before the first of them is handled.
#[tokio::test]
async fn concurrent_requests_with_a_token_all_get_responses() {
    let (server, _) = guarded().await;
    let mut client = reading(&server, 0).await;
    let token = format!("Bearer {MINTER}");
    // `authorization` is the 23rd name of the static table.
    let shown = [0x0f, 0x08, u8::try_from(token.len()).unwrap()];
    let head = [&get("/v1/ids/numbers")[..], &shown, token.as_bytes()].concat();
    let requests = (1_u32..201)
        .step_by(2)
        .flat_map(|stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, &head));
    client.send(requests.collect::<Vec<_>>()).await;
    let mut responses = 0;
    while responses < 100 {
        let (kind, stream) = soon(next_frame(&mut client)).await;
        assert_ne!(kind, RST_STREAM, "stream {stream}");
        responses += u32::from(kind == HEADERS);
    }
}

/// The pages grow with the number of sources.
#[tokio::test]
async fn unread_pages_of_metrics_are_counted() {
    let server = server_with(|settings| settings.limits.unsent_max = 1_000).await;
    let mut client = reading(&server, 0).await;
    for stream in (1_u32..129).step_by(2) {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, &get("/metrics"))).await;
    }
    let (mut responses, mut refused) = (0, 0);
    while responses < 64 {
        let (kind, _, _, payload) = soon(next_whole_frame(&mut client)).await;
        if kind == HEADERS {
            responses += 1;
            // The 8th line of the static table is `:status: 200`.
            refused += u32::from(payload.first() != Some(&0x88));
        }
    }
    assert!(refused > 0, "{responses} pages were given, and no client read them");
}

/// Unread IDs are missing for all other callers. The server gives up the response in time, despite
/// pings or reads of single bytes. The response counts even if it may begin, after which h2 keeps
/// it.
#[tokio::test]
async fn counted_response_must_be_read_whole_in_time() {
    let limits = |settings: &mut Settings| {
        // Two of these responses are a client's share.
        settings.limits.unsent_max = 12_000;
        settings.http.idle_max = Span::from_ms(1_000);
    };
    let server = server_with(limits).await;
    let ping = frame(PING, 0, 0, &[7; 8]);
    let one_byte = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
    // Short enough to be handed over as a whole.
    let path = "/v1/ids/numbers?count=2000";
    for (window, sign_of_life) in [(1, &ping), (1, &one_byte), (0, &ping), (0, &one_byte)] {
        let mut client = reading(&server, window).await;
        ask(&mut client, &vec![get(path); 2]).await;
        assert_eq!(server.get(path).await.code(), "overloaded", "with a window of {window}");
        let begun = server.timer.elapsed();
        let living = async {
            while client.0.write_all(sign_of_life).await.is_ok() {
                step(&server.timer).await;
            }
        };
        soon(living).await;
        let borne_ms = server.timer.elapsed().since(begun);
        assert!((1_000..30_000).contains(&borne_ms), "{borne_ms} ms");
        assert_eq!(server.get(path).await.ids().len(), 2_000);
    }
}

/// A stream may last, if the client reads it.
#[tokio::test]
async fn stream_lasts_while_it_is_read() {
    let server = server_with(|settings| settings.http.idle_max = Span::from_ms(1_000)).await;
    let mut grpc = server.grpc().await;
    let mut messages = grpc.mint_stream(many("numbers", 100_000_000)).await.unwrap().into_inner();
    for _ in 0..30 {
        // More than the buffers between hold.
        for _ in 0..100 {
            soon(messages.message()).await.unwrap().unwrap();
        }
        server.timer.advance_ms(500);
    }
}

/// The requests have their responses, so that the stop could wait only for the client.
#[tokio::test]
async fn stop_ends_connections_with_unread_responses() {
    for path in ["/livez", "/v1/ids/numbers?count=2000"] {
        let server = server_with(patient).await;
        let mut client = reading(&server, 0).await;
        ask(&mut client, &[get(path)]).await;
        let waited_ms = stop_ms(server).await;
        assert!(waited_ms >= UNREAD_MS, "{path}: {waited_ms} ms");
    }
}

/// Reads the body on a connection with one request, up to this length, or to its end.
async fn read_body(client: &mut Client, body: &mut Vec<u8>, length: usize) {
    while body.len() < length {
        let (kind, flags, _, payload) = soon(next_whole_frame(client)).await;
        if kind == DATA {
            body.extend(payload);
            if flags & END_STREAM != 0 {
                return;
            }
        }
    }
}

/// The client reads a byte every half second.
#[tokio::test]
async fn stop_waits_for_a_response_that_is_read() {
    let server = server_with(patient).await;
    let mut client = reading(&server, 1).await;
    let head = get("/v1/ids/numbers?count=2000");
    client.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, &head)).await;
    let mut body = Vec::new();
    read_body(&mut client, &mut body, 1).await;
    server.handle.stop();
    for length in 2..14 {
        server.timer.advance_ms(500);
        client.send(frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes())).await;
        read_body(&mut client, &mut body, length).await;
    }
    client.send(frame(WINDOW_UPDATE, 0, 1, &1_000_000_u32.to_be_bytes())).await;
    read_body(&mut client, &mut body, usize::MAX).await;
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["ids"].as_array().unwrap().len(), 2_000);
    in_time(&server.timer, server.handle.stopped()).await;
}
