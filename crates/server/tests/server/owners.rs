//! Tests of requests for a key that another server owns.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use snowmint_coord::{BootTimer, MemoryStore, Node, NodeSettings, Platform, Timer as _};
use tokio::net::TcpListener;

use super::alone::alone;
use super::common::{server_at, server_of, settings, soon, timer};
use super::log_lines::Log;

/// Returns the owner of a key, which names this address for HTTP, and another node of its store.
async fn owner_and_other(address: SocketAddr) -> (Node, Node) {
    let store = MemoryStore::new("test").unwrap();
    let open = async |address: String| {
        let node_settings = NodeSettings { builtin: true, address, ..NodeSettings::default() };
        let store = Arc::new(store.handle("test").unwrap());
        Node::open(store, node_settings, Platform::system()).await.unwrap()
    };
    let owner = open(format!("http={address}")).await;
    owner.source("counters").await.unwrap().count(b"k", 5, 60_000).await.unwrap();
    (owner, open(String::new()).await)
}

/// Otherwise two servers that name each other would call each other until the deadline.
#[tokio::test]
async fn forwarded_request_goes_no_further() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let (_owner, node) = owner_and_other(silent.local_addr().unwrap()).await;
    let server = server_of(node, settings()).await;
    for (method, path, body) in [
        ("GET", "/v1/ids/counters?key=k", ""),
        ("POST", "/v1/ids/counters", r#"{"key":"k"}"#),
        ("GET", "/v1/counters/counters/k", ""),
        ("PUT", "/v1/counters/counters/k", r#"{"bound":"70"}"#),
    ] {
        let response = soon(server.send(method, path, "snowmint-passed-on: 1\r\n", body)).await;
        assert_eq!((response.status, response.code().as_str()), (503, "not_owner"), "{path}");
        let call = silent.accept().map_err(|error| error.kind());
        assert!(matches!(call, Err(ErrorKind::WouldBlock)), "{method} {path}: {call:?}");
    }
    // Without the header the owner is called.
    let called = async {
        while silent.accept().is_err() {
            BootTimer.sleep_ms(1).await;
        }
    };
    tokio::select! {
        response = server.get("/v1/ids/counters?key=k") => panic!("{response:?}"),
        () = soon(called) => {}
    }
}

#[test]
fn raise_by_an_owner_leaves_a_line_at_both_servers() {
    alone(raise_by_an_owner_leaves_a_line_at_both_servers, async {
        let log = Log::listen();
        let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (owner, node) = owner_and_other(http.local_addr().unwrap()).await;
        let mut narrow = settings();
        narrow.limits.bound_max = 1_000;
        let _owner = server_at(http, None, owner, narrow, (None, timer())).await;
        let server = server_of(node, settings()).await;
        let raise = async |body: &str| {
            let lines = log.lines("INFO audit").len();
            let response = server.send("PUT", "/v1/counters/counters/k", "", body).await;
            (response, log.lines("INFO audit").split_off(lines))
        };

        let (raised, lines) = soon(raise(r#"{"bound":"70"}"#)).await;
        assert_eq!((raised.status, lines.len()), (200, 2), "{raised:?}: {lines:?}");
        for (line, parts) in lines.iter().zip([
            ["counter of source counters (section ", "before=5"],
            ["counter of source counters raised", "before=not known here"],
        ]) {
            let parts = parts.iter().chain(&["after=70", "who="]);
            assert!(parts.clone().all(|part| line.contains(part)), "{line}");
        }

        let (rejected, lines) = soon(raise(r#"{"bound":"1001"}"#)).await;
        assert_eq!((rejected.status, lines.len()), (400, 2), "{rejected:?}: {lines:?}");
        for line in lines {
            let why = "why=bound 1001 exceeds limits.bound_max (1000)";
            assert!(line.contains(r#"source "counters" not raised"#), "{line}");
            assert!(line.contains(why), "{line}");
        }
    });
}
