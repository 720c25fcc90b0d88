//! Over HTTP/2 whoever reads nothing can have other frames go to and fro.

use snowmint_coord::Timer as _;
use snowmint_coord::spec::Span;
use snowmint_server::Settings;
use tokio::io::AsyncWriteExt as _;

use super::alone::{alone, peak_kib};
use super::common::{Client, server, server_with, soon, step};
use super::grpc::many;
use super::reset::{
    END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS, WINDOW_UPDATE, frame, get,
    next_frame,
};

/// `SETTINGS_INITIAL_WINDOW_SIZE` of 0: no answer's body may be sent.
const NOTHING: [u8; 6] = [0, 4, 0, 0, 0, 0];

/// A connection on which these are asked for, and no answer is read beyond its head.
async fn asking(client: &mut Client, paths: &[&str]) {
    client.send(PREFACE).await;
    client.send(frame(SETTINGS, 0, 0, &NOTHING)).await;
    for (stream, path) in (1_u32..).step_by(2).zip(paths) {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(path))).await;
    }
    let mut answered = 0;
    while answered < paths.len() {
        let (kind, _) = soon(next_frame(client)).await;
        answered += usize::from(kind == HEADERS);
    }
}

/// A file that lies in the program is not copied for each who asks for it.
#[test]
fn a_long_file_that_nobody_reads_costs_no_memory() {
    alone(a_long_file_that_nobody_reads_costs_no_memory, async {
        let server = server().await;
        let whole = server.get("/docs/swagger-ui-bundle.js").await.body;
        assert!(whole.len() > 1_000_000);
        let before_kib = peak_kib();
        let mut client = Client::to(server.http).await;
        asking(&mut client, &["/docs/swagger-ui-bundle.js"; 100]).await;
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 32 * 1024, "{grown_kib} KiB more");
    });
}

/// What is not read is missed by all others. It is given up in time, though pings go to and fro, or a byte is taken now
/// and then.
#[tokio::test]
async fn an_answer_that_counts_is_read_as_a_whole_in_time() {
    let limits = |settings: &mut Settings| {
        // Two such answers are a client's share.
        settings.limits.unsent_max = 30_000;
        settings.http.idle_max = Span::from_ms(1_000);
    };
    let server = server_with(limits).await;
    let ping = frame(PING, 0, 0, &[7; 8]);
    let one_byte = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
    for sign_of_life in [ping, one_byte] {
        let mut client = Client::to(server.http).await;
        asking(&mut client, &["/v1/ids/numbers?count=5000"; 2]).await;
        assert_eq!(server.get("/v1/ids/numbers?count=5000").await.code(), "overloaded");
        let begun = server.timer.elapsed();
        let living = async {
            while client.0.write_all(&sign_of_life).await.is_ok() {
                step(&server.timer).await;
            }
        };
        soon(living).await;
        let borne_ms = server.timer.elapsed().since(begun);
        assert!((1_000..30_000).contains(&borne_ms), "{borne_ms} ms");
        assert_eq!(server.get("/v1/ids/numbers?count=5000").await.ids().len(), 5_000);
    }
}

/// A stream may last, if it is read.
#[tokio::test]
async fn a_stream_goes_on_for_as_long_as_some_of_it_is_read() {
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
