//! Requests that are repeated with an `Idempotency-Key`.

use std::collections::HashSet;
use std::sync::Arc;

use snowmint_coord::spec::Span;
use snowmint_coord::{BootTimer, Timer as _};

use super::common::{Answer, Server, server, server_with, soon};

async fn keyed(server: &Server, key: &str, method: &str, path: &str, body: &str) -> Answer {
    server.send(method, path, &format!("idempotency-key: {key}\r\n"), body).await
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_ids() {
    let server = server().await;
    for (key, method, path, body) in [
        ("a", "GET", "/v1/ids/numbers?count=3", ""),
        ("b", "POST", "/v1/ids/default", "{\"count\":2}"),
        ("c", "POST", "/v1/ids/counters", "{\"count\":2,\"key\":\"alice\"}"),
        ("d", "POST", "/v1/segments/numbers", "{\"length\":10}"),
    ] {
        let first = keyed(&server, key, method, path, body).await;
        assert_eq!((first.status, first.header("idempotency-replayed")), (200, None), "{first:?}");
        let again = keyed(&server, key, method, path, body).await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(again.header("content-type"), first.header("content-type"));
        assert_eq!(again.header("cache-control"), Some("no-store"));
        let other = keyed(&server, &format!("{key}{key}"), method, path, body).await;
        assert_ne!(other.body, first.body);
    }
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [27], "3 twice, 10 twice");
}

/// Of many that come at once, one is answered anew.
#[tokio::test]
async fn requests_at_once_with_one_key_get_the_same() {
    let server = Arc::new(server().await);
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let server = Arc::clone(&server);
        asked.spawn(async move { keyed(&server, "one", "GET", "/v1/ids/numbers", "").await.ids() });
    }
    let answers: HashSet<_> = asked.join_all().await.into_iter().collect();
    assert_eq!(answers, HashSet::from([vec![1]]));
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [2]);
}

#[tokio::test]
async fn a_key_is_for_one_request() {
    let server = server().await;
    keyed(&server, "k", "GET", "/v1/ids/numbers", "").await.ids();
    for (path, headers) in [
        ("/v1/ids/numbers?count=2", ""),
        ("/v1/ids/default", ""),
        ("/v1/ids/numbers", "accept: text/plain\r\n"),
    ] {
        let headers = format!("idempotency-key: k\r\n{headers}");
        let answer = server.send("GET", path, &headers, "").await;
        assert_eq!((answer.status, answer.code().as_str()), (409, "conflict"), "{path}");
    }
    for key in ["", &"x".repeat(256), "\u{e9}"] {
        assert_eq!(keyed(&server, key, "GET", "/v1/ids/numbers", "").await.code(), "bad_request");
    }
    // Which of two counts would be a guess, that somebody before the server may make otherwise.
    for two in ["k\r\nidempotency-key: l", "l\r\nidempotency-key: k"] {
        assert_eq!(keyed(&server, two, "GET", "/v1/ids/numbers", "").await.code(), "bad_request");
    }
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [2], "nothing was lost");
}

/// A refusal is no answer: the same request may succeed later.
#[tokio::test]
async fn refusals_are_not_kept() {
    let server = server().await;
    let refused = keyed(&server, "k", "GET", "/v1/ids/orders", "").await;
    assert_eq!(refused.code(), "unknown_source");
    assert_eq!(refused.header("idempotency-replayed"), None);
    let defined = server.post("/v1/sources", "{\"name\":\"orders\",\"kind\":\"segment\"}").await;
    assert_eq!(defined.status, 200, "{defined:?}");
    assert_eq!(keyed(&server, "k", "GET", "/v1/ids/orders", "").await.ids(), [1]);
}

#[tokio::test]
async fn answers_are_kept_for_their_time() {
    let short = Span::from_ms(300);
    let server = server_with(|settings| settings.http.idempotency_time = short).await;
    let (begun, first) = (BootTimer.elapsed(), ids_by_key(&server).await);
    // However slow the machine is: what is answered in time is the same.
    let another = async {
        loop {
            let (asked, ids) = (ids_by_key(&server).await, BootTimer.elapsed());
            if asked != first {
                return ids.since(begun);
            }
        }
    };
    assert!(soon(another).await >= short.ms());
}

async fn ids_by_key(server: &Server) -> Vec<u64> {
    keyed(server, "k", "GET", "/v1/ids/numbers", "").await.ids()
}

#[tokio::test]
async fn answers_are_kept_within_their_room() {
    let room = 64 * 1024;
    let server = server_with(|settings| settings.http.idempotency_bytes_max = room).await;
    let mut kept = 0;
    for number in 0..40 {
        let path = "/v1/ids/numbers?count=1000";
        let answer = keyed(&server, &format!("full-{number}"), "GET", path, "").await;
        if kept < room {
            assert_eq!(answer.ids().len(), 1_000, "{kept} of {room} bytes");
            // What an answer takes beside its own bytes.
            kept += answer.body.len() + 1024 + "full-0 GET".len() + path.len();
        } else {
            assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
        }
    }
    assert!(kept >= room, "{kept}");
    assert_eq!(server.get("/v1/ids/numbers").await.ids().len(), 1, "without a key it goes on");
}
