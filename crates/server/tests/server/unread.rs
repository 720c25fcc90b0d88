//! Over HTTP/2 whoever reads nothing can have other frames go to and fro.

use snowmint_coord::Timer as _;
use snowmint_coord::spec::Span;
use snowmint_server::Settings;
use tokio::io::AsyncWriteExt as _;

use super::alone::{alone, peak_kib};
use super::common::{Client, Server, server, server_with, soon, step};
use super::grpc::many;
use super::reset::{
    END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS, WINDOW_UPDATE, frame, get,
    next_frame, next_whole_frame,
};

/// A connection on which so many bytes of each answer's body may be sent.
async fn reading(server: &Server, window: u8) -> Client {
    let mut client = Client::to(server.http).await;
    client.send(PREFACE).await;
    // `SETTINGS_INITIAL_WINDOW_SIZE`.
    client.send(frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, window])).await;
    client
}

/// These are asked for, and no answer is read beyond its head.
async fn ask(client: &mut Client, heads: &[Vec<u8>]) {
    for (stream, head) in (1_u32..).step_by(2).zip(heads) {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, head)).await;
    }
    let mut answered = 0;
    while answered < heads.len() {
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
        let mut client = reading(&server, 0).await;
        ask(&mut client, &vec![get("/docs/swagger-ui-bundle.js"); 100]).await;
        let grown_kib = peak_kib() - before_kib;
        assert!(grown_kib < 32 * 1024, "{grown_kib} KiB more");
    });
}

/// A text is compressed once, and no encoder is kept for those who do not read it.
#[test]
fn compressed_texts_that_nobody_reads_cost_no_memory() {
    alone(compressed_texts_that_nobody_reads_cost_no_memory, async {
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

/// They grow with the sources that there are.
#[tokio::test]
async fn pages_of_metrics_that_nobody_reads_are_counted() {
    let server = server_with(|settings| settings.limits.unsent_max = 1_000).await;
    let mut client = reading(&server, 0).await;
    for stream in (1_u32..129).step_by(2) {
        client.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, &get("/metrics"))).await;
    }
    let (mut answered, mut refused) = (0, 0);
    while answered < 64 {
        let (kind, _, _, payload) = soon(next_whole_frame(&mut client)).await;
        if kind == HEADERS {
            answered += 1;
            // The 8th line of the static table is `:status: 200`.
            refused += u32::from(payload.first() != Some(&0x88));
        }
    }
    assert!(refused > 0, "{answered} pages were given, and nobody read them");
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
        let mut client = reading(&server, 0).await;
        ask(&mut client, &vec![get("/v1/ids/numbers?count=5000"); 2]).await;
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
