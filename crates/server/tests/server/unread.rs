//! Over HTTP/2 whoever reads nothing can have other frames go to and fro.

use super::common::{Client, resident_kib, server, soon};
use super::reset::{END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame, get, next_frame};

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
#[tokio::test]
async fn a_long_file_that_nobody_reads_costs_no_memory() {
    let server = server().await;
    let whole = server.get("/docs/swagger-ui-bundle.js").await.body;
    assert!(whole.len() > 1_000_000);
    let before_kib = resident_kib();
    let mut client = Client::to(server.http).await;
    asking(&mut client, &["/docs/swagger-ui-bundle.js"; 100]).await;
    let grown_kib = resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 32 * 1024, "{grown_kib} KiB more");
}
