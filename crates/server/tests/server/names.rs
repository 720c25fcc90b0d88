//! Names and numbers that are none, over every protocol: each is refused in the form that was
//! promised, and nothing is lost.

use super::common::{Client, server};

#[tokio::test]
async fn no_name_is_too_long_or_too_strange_to_be_refused() {
    let server = server().await;
    let long = "n".repeat(10_000);
    let strange =
        ["\u{1f600}", "na\u{ef}ve", "a b", "a\r\nb", "\0", "..", "../../etc/passwd", "%", "*"];
    let mut resp = server.resp().await;
    for name in strange.into_iter().chain([long.as_str()]) {
        for command in [vec!["INCR", name], vec!["MINT", name, "3"], vec!["INCRBY", name, "2"]] {
            let reply = resp.ask(&command).await;
            assert!(reply.starts_with("-ERR "), "{command:?}: {reply}");
            assert!(reply.len() < 500, "{} bytes about a long name", reply.len());
        }
        let escaped: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        if escaped.len() < 8_000 {
            let answer = server.get(&format!("/v1/ids/{escaped}")).await;
            assert!(matches!(answer.status, 400 | 404), "{name}: {answer:?}");
            assert!(answer.body.len() < 1_000, "{}", answer.body.len());
        }
        let body = serde_json::json!({ "name": name, "kind": "segment" }).to_string();
        let answer = server.post("/v1/sources", &body).await;
        let dots = name == "..";
        assert_eq!(answer.status, if dots { 200 } else { 400 }, "{name}: {answer:?}");
    }
    assert_eq!(
        resp.ask(&["INCR", "numbers"]).await,
        ":1",
        "the connection lives, nothing was taken"
    );
}

#[tokio::test]
async fn no_number_is_too_large_to_be_refused() {
    let server = server().await;
    let mut resp = server.resp().await;
    for many in
        ["9000000000000000000", "9223372036854775807", "18446744073709551616", "-1", "1e9", ""]
    {
        for source in ["numbers", "counters:alice", "default"] {
            let reply = resp.ask(&["INCRBY", source, many]).await;
            assert!(reply.starts_with("-ERR "), "INCRBY {source} {many}: {reply}");
            let reply = resp.ask(&["MINT", source, many]).await;
            assert!(reply.starts_with("-ERR "), "MINT {source} {many}: {reply}");
        }
        let body = format!("{{\"length\":\"{many}\"}}");
        let answer = server.post("/v1/segments/numbers", &body).await;
        assert!(matches!(answer.status, 400 | 413), "{many}: {answer:?}");
    }
    assert_eq!(resp.ask(&["INCR", "numbers"]).await, ":1");
    // 2^62 is the highest; the others would leave the keys of a section without numbers.
    for (bound, status) in [
        ("18446744073709551615", 400),
        ("9223372036854775806", 400),
        ("4611686018427387905", 400),
        ("4611686018427387904", 200),
    ] {
        let body = format!("{{\"bound\":\"{bound}\"}}");
        let answer = server.send("PUT", "/v1/counters/counters/k", "", &body).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status == 400 {
            assert!(answer.body.contains(bound) && answer.body.contains("limits.bound_max"));
        }
    }
    assert_eq!(resp.ask(&["INCR", "counters:k"]).await, ":4611686018427387905");
}

/// A key may be anything: it is told apart byte by byte.
#[tokio::test]
async fn keys_are_bytes() {
    let server = server().await;
    let mut resp: Client = server.resp().await;
    let long = "k".repeat(10_000);
    for key in ["\u{1f600}", "a b", "a:b", "\0", "*", "%41"] {
        assert_eq!(
            resp.ask(&["INCR", &format!("counters:{key}")]).await.as_bytes()[0],
            b':',
            "{key}"
        );
    }
    let reply = resp.ask(&["INCR", &format!("counters:{long}")]).await;
    assert!(reply.starts_with(':') || reply.starts_with("-ERR "), "{reply}");
    assert_eq!(resp.ask(&["PING"]).await, "+PONG");
}
