//! Untrusted names in the output of commands. The server may be an older or a malicious one.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::common::{Ran, run};

/// Text that clears a terminal, names its window, adds a row, and colours the rest.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\nMADE UP ROW\u{9b}31m\u{202e}";

/// Starts a server that sends this response to one request.
fn answering(status: &'static str, body: String) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut bytes = [0; 1024];
            let length = stream.read(&mut bytes).unwrap();
            request.extend_from_slice(&bytes[..length]);
        }
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
    });
    (address, answering)
}

fn run_against(status: &'static str, body: &serde_json::Value, words: &[&str]) -> Ran {
    let (server, answering) = answering(status, body.to_string());
    let ran = run(&[words, &["--server", &server]].concat());
    answering.join().unwrap();
    ran
}

#[track_caller]
fn check(ran: &Ran, code: i32, lines: usize) {
    assert_eq!(ran.code, code, "{ran:?}");
    let text = format!("{}{}", ran.out, ran.err);
    let control = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!text.contains(control), "{text:?}");
    assert!(text.contains("MADE UP"), "{text:?}");
    assert_eq!(text.lines().count(), lines, "{text:?}");
}

#[test]
fn hostile_names_never_control_a_terminal() {
    let worker = serde_json::json!({
        "pool": HOSTILE, "number": 1, "owner": HOSTILE, "host": HOSTILE, "process": 1, "term": 1,
        "mark": HOSTILE, "live": true
    });
    let workers = serde_json::json!({ "workers": [worker] });
    check(&run_against("200 OK", &workers, &["worker", "list"]), 0, 2);
    check(&run_against("200 OK", &workers, &["worker", "list", "--json"]), 0, 1);

    let source =
        serde_json::json!({ "name": HOSTILE, "version": 1, "kind": HOSTILE, "layout": HOSTILE });
    let sources = serde_json::json!({ "sources": [source] });
    check(&run_against("200 OK", &sources, &["source", "list"]), 0, 2);
    check(&run_against("200 OK", &source, &["source", "show", "orders"]), 0, 4);

    let ids = serde_json::json!({ "ids": [HOSTILE] });
    check(&run_against("200 OK", &ids, &["mint"]), 0, 1);
    let error = serde_json::json!({ "error": { "code": "conflict", "message": HOSTILE, "retryable": false } });
    check(&run_against("409 Conflict", &error, &["source", "show", "orders"]), 2, 1);
}

#[test]
fn hostile_owner_name_is_rejected() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let ran = run(&["serve", "--check", "--data-dir", data.to_str().unwrap(), "--owner", HOSTILE]);
    check(&ran, 2, 1);
    assert!(
        ran.err.contains("server.owner") && ran.err.contains("control character"),
        "{}",
        ran.err
    );
}
