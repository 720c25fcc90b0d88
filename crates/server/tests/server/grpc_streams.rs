//! Tests of gRPC streams of IDs, by a real client over real sockets.

use std::collections::HashSet;

use snowmint_coord::spec::Span;
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::MintStreamResponse;
use snowmint_wire::grpc::mint_client::MintClient;
use tonic::codec::Streaming;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::alone::{alone, peak_kib};
use super::common::{server, server_with, soon, step};
use super::grpc::{many, mint, reason};
use super::stop::{UNREAD_MS, patient, stop_ms};

/// More than fits into all buffers between a server and a client together.
const BUFFERED: u64 = 200_000;

async fn pause() {
    snowmint_coord::Timer::sleep_ms(&snowmint_coord::BootTimer, 20).await;
}

pub(crate) async fn stream(
    client: &mut MintClient<Channel>,
    source: &str,
    total: u64,
) -> Streaming<MintStreamResponse> {
    soon(client.mint_stream(many(source, total))).await.unwrap().into_inner()
}

/// Returns all IDs that come, and the end.
async fn rest(mut messages: Streaming<MintStreamResponse>) -> (Vec<u64>, Result<(), Status>) {
    let mut ids = Vec::new();
    loop {
        match soon(messages.message()).await {
            Ok(Some(message)) => ids.extend(message.ids),
            Ok(None) => return (ids, Ok(())),
            Err(status) => return (ids, Err(status)),
        }
    }
}

/// Returns the next number once no stream takes any: two in a row are adjacent.
async fn settled(client: &mut MintClient<Channel>) -> u64 {
    let settle = async {
        let mut last = mint(client, "numbers", 1).await[0];
        let mut quiet = 0;
        while quiet < 5 {
            pause().await;
            let next = mint(client, "numbers", 1).await[0];
            quiet = if next == last + 1 { quiet + 1 } else { 0 };
            last = next;
        }
        last
    };
    soon(settle).await
}

#[tokio::test]
async fn stream_has_exactly_the_requested_ids() {
    let server = server().await;
    let mut client = server.grpc().await;
    let mut first = 1;
    for total in [1, 999, 1_000, 1_001, 25_300] {
        let (ids, end) = rest(stream(&mut client, "numbers", total).await).await;
        assert!(end.is_ok(), "{end:?}");
        assert!(ids.iter().copied().eq(first..first + total), "{total}");
        first += total;
    }
    let (ids, end) = rest(stream(&mut client, "default", 300_000).await).await;
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(ids.len(), 300_000);
    assert!(ids.is_sorted_by(|one, next| one < next));
    // The name is looked up only when the first message is minted.
    let (ids, end) = rest(stream(&mut client, "absent", 5).await).await;
    assert_eq!((ids.len(), end.unwrap_err().code()), (0, Code::NotFound));
}

#[tokio::test]
async fn many_streams_at_once_share_nothing() {
    let server = server().await;
    let client = server.grpc().await;
    let streams = (0..40).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move { rest(stream(&mut client, "numbers", 3_500).await).await })
    });
    let mut seen = HashSet::new();
    for stream in streams.collect::<Vec<_>>() {
        let (ids, end) = stream.await.unwrap();
        assert!(end.is_ok(), "{end:?}");
        assert_eq!(ids.len(), 3_500);
        seen.extend(ids);
    }
    assert_eq!(seen.len(), 40 * 3_500);
}

/// The client requests a hundred million IDs, reads one message, and then none. Unread IDs are not
/// minted, memory stays flat, and other callers are served on the same connection and on others.
#[test]
fn slow_reader_costs_other_clients_nothing() {
    alone(slow_reader_costs_other_clients_nothing, async {
        let server = server().await;
        let mut client = server.grpc().await;
        mint(&mut client, "default", 100_000).await;
        let before_kib = peak_kib();
        let mut slow = Vec::new();
        for _ in 0..20 {
            let mut messages = stream(&mut client, "numbers", 100_000_000).await;
            assert_eq!(soon(messages.message()).await.unwrap().unwrap().ids.len(), 1_000);
            slow.push(messages);
        }
        let mut other = server.grpc().await;
        let minted = settled(&mut other).await;
        assert!(minted < 20 * BUFFERED, "{minted} minted for those who do not read");
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 32 * 1024, "{grown_kib} KiB more");
        // A client that reads gets all IDs.
        let (ids, end) = rest(stream(&mut other, "default", 200_000).await).await;
        assert!(end.is_ok() && ids.len() == 200_000, "{end:?}");
        // The slow clients continue where they were when they read again.
        for messages in &mut slow {
            for _ in 0..100 {
                assert_eq!(soon(messages.message()).await.unwrap().unwrap().ids.len(), 1_000);
            }
        }
    });
}

#[tokio::test]
async fn cancelling_a_stream_ends_the_minting() {
    // One stream is a client's share.
    let server = server_with(|settings| settings.limits.unsent_max = 60_000).await;
    let mut client = server.grpc().await;
    for messages_read in [0, 1, 50] {
        let mut messages = stream(&mut client, "numbers", 100_000_000).await;
        for _ in 0..messages_read {
            soon(messages.message()).await.unwrap().unwrap();
        }
        let full = client.mint_stream(many("numbers", 1)).await.unwrap_err();
        assert_eq!((full.code(), reason(&full)), (Code::Unavailable, ErrorCode::Overloaded));
        drop(messages);
        let ended = async {
            while let Err(status) = client.mint_stream(many("numbers", 1)).await {
                assert_eq!(reason(&status), ErrorCode::Overloaded);
                pause().await;
            }
        };
        soon(ended).await;
        settled(&mut client).await;
    }
    assert!(settled(&mut client).await < 3 * BUFFERED);
    // The loss of the whole connection has the same effect.
    let mut gone = server.grpc().await;
    let messages = stream(&mut gone, "numbers", 100_000_000).await;
    drop((messages, gone));
    settled(&mut client).await;
}

#[tokio::test]
async fn a_stop_ends_streams_with_a_reason() {
    let server = server().await;
    let mut client = server.grpc().await;
    let mut messages = stream(&mut client, "numbers", 100_000_000).await;
    assert!(soon(messages.message()).await.unwrap().is_some());
    server.handle.stop();
    let (_, end) = rest(messages).await;
    let end = end.unwrap_err();
    assert_eq!((end.code(), reason(&end)), (Code::Unavailable, ErrorCode::Closed));
    assert!(end.message().contains("of 100000000 IDs were sent before"), "{end:?}");
    soon(server.handle.stopped()).await;
}

/// The stream could end with a reason only where its client reads: the stop does not wait for that.
#[tokio::test]
async fn stop_ends_a_stream_that_is_not_read() {
    let server = server_with(patient).await;
    let mut client = server.grpc().await;
    let mut messages = stream(&mut client, "numbers", 100_000_000).await;
    assert!(soon(messages.message()).await.unwrap().is_some());
    settled(&mut server.grpc().await).await;
    let waited_ms = stop_ms(server).await;
    assert!(waited_ms >= UNREAD_MS, "{waited_ms} ms");
    let (_, end) = rest(messages).await;
    assert!(end.is_err());
}

/// A client that stops reading is cut off after a while, as over HTTP.
#[tokio::test]
async fn a_stream_that_is_not_read_is_cut_off() {
    let server = server_with(|settings| settings.http.idle_max = Span::from_ms(300)).await;
    let mut messages = stream(&mut server.grpc().await, "numbers", 100_000_000).await;
    assert!(soon(messages.message()).await.unwrap().is_some());
    for _ in 0..20 {
        step(&server.timer).await;
    }
    let (_, end) = rest(messages).await;
    assert!(end.is_err());
}
