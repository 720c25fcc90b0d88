//! Tests of HTTP/2 requests that are cancelled immediately.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::alone::{alone, peak_kib};
use super::common::{Client, server, soon};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// Returns a frame, RFC 9113, section 4.1.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns the head of a GET of this path, RFC 7541: method and scheme from the static table, the
/// rest as literals.
pub(crate) fn get(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    block.extend(path.as_bytes());
    block.extend([0x01, 0x09]);
    block.extend(b"localhost");
    block
}

/// CVE-2023-44487: the server closes the connection of the attacker, and has lost nothing.
#[test]
fn rapid_resets_end_only_their_own_connection() {
    alone(rapid_resets_end_only_their_own_connection, async {
        let server = server().await;
        let numbers = server.get("/v1/ids/numbers").await.ids();
        let before_kib = peak_kib();
        let ask = get("/v1/ids/numbers?count=1000");
        let mut ended = 0;
        for _ in 0..20 {
            let mut client = Client::to(server.http).await;
            client.send(PREFACE).await;
            client.send(frame(SETTINGS, 0, 0, &[])).await;
            let asking = async {
                for batch in 0..500_u32 {
                    let mut bytes = Vec::new();
                    for index in 0..100 {
                        let stream = 2 * (100 * batch + index) + 1;
                        bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &ask));
                        bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
                    }
                    if client.0.write_all(&bytes).await.is_err() {
                        return true;
                    }
                }
                false
            };
            ended += u32::from(soon(asking).await);
        }
        assert_eq!(ended, 20, "50,000 resets on one connection were borne");
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 64 * 1024, "{grown_kib} KiB more");
        let next = server.get("/v1/ids/numbers?count=10").await.ids();
        assert!(next.is_sorted_by(|one, next| one < next) && next[0] > numbers[0], "{next:?}");
    });
}

/// A client that has the most calls and cancels them all at once, as at a common deadline, keeps
/// its connection, and its other requests.
#[tokio::test]
async fn calls_that_are_given_up_together_end_no_connection() {
    let server = server().await;
    let ask = get("/v1/ids/numbers?count=1000");
    let mut client = Client::to(server.http).await;
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &[])).await;
    let (mut frames, mut given_up) = (Vec::new(), Vec::new());
    for index in 0..127_u32 {
        let stream = 2 * index + 1;
        frames.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &ask));
        given_up.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    frames.extend(given_up);
    let last = 2 * 127 + 1;
    frames.extend(frame(HEADERS, END_STREAM | END_HEADERS, last, &get("/livez")));
    client.send(frames).await;
    // No GOAWAY (7) comes before the last response begins.
    let last_response = async {
        loop {
            let (kind, stream) = next_frame(&mut client).await;
            assert_ne!(kind, 7, "the connection was ended");
            if (kind, stream) == (HEADERS, last) {
                return;
            }
        }
    };
    soon(last_response).await;
}

/// Returns the next frame's kind and stream; skips its payload.
pub(crate) async fn next_frame(client: &mut Client) -> (u8, u32) {
    let (kind, _, stream, _) = next_whole_frame(client).await;
    (kind, stream)
}

/// Returns the next frame: kind, flags, stream and payload.
pub(crate) async fn next_whole_frame(client: &mut Client) -> (u8, u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    client.0.read_exact(&mut head).await.unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; usize::try_from(length).unwrap()];
    client.0.read_exact(&mut payload).await.unwrap();
    let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
    (head[3], head[4], stream, payload)
}
