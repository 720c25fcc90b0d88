//! Tests of invalid names and numbers, over every protocol: each gets the documented error, and
//! nothing is lost.

use super::common::{Client, server};

#[tokio::test]
async fn long_and_strange_names_are_rejected() {
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
        // Dots are a name, which no source has yet.
        let is_name = name == "..";
        let refused = if is_name { (404, "unknown_source") } else { (400, "bad_request") };
        // A head has room for this many bytes.
        let written = if name == long { name } else { &escaped };
        let response = server.get(&format!("/v1/ids/{written}")).await;
        assert_eq!((response.status, response.code().as_str()), refused, "{name}: {response:?}");
        assert!(response.body.len() < 1_000, "{}", response.body.len());
        let body = serde_json::json!({ "name": name, "kind": "segment" }).to_string();
        let response = server.post("/v1/sources", &body).await;
        assert_eq!(response.status, if is_name { 200 } else { 400 }, "{name}: {response:?}");
    }
    assert_eq!(
        resp.ask(&["INCR", "numbers"]).await,
        ":1",
        "the connection lives, nothing was taken"
    );
}

#[tokio::test]
async fn huge_numbers_are_rejected() {
    let server = server().await;
    let mut resp = server.resp().await;
    for (many, refused) in [
        ("9000000000000000000", (413, "limit_exceeded")),
        ("9223372036854775807", (413, "limit_exceeded")),
        ("18446744073709551616", (413, "limit_exceeded")),
        ("-1", (400, "bad_request")),
        ("1e9", (400, "bad_request")),
        ("", (400, "bad_request")),
    ] {
        for source in ["numbers", "counters:alice", "default"] {
            let reply = resp.ask(&["INCRBY", source, many]).await;
            assert!(reply.starts_with("-ERR "), "INCRBY {source} {many}: {reply}");
            let reply = resp.ask(&["MINT", source, many]).await;
            assert!(reply.starts_with("-ERR "), "MINT {source} {many}: {reply}");
        }
        let body = format!("{{\"length\":\"{many}\"}}");
        let response = server.post("/v1/segments/numbers", &body).await;
        assert_eq!((response.status, response.code().as_str()), refused, "{many}: {response:?}");
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
        let response = server.send("PUT", "/v1/counters/counters/k", "", &body).await;
        assert_eq!(response.status, status, "{response:?}");
        if status == 400 {
            assert!(response.body.contains(bound) && response.body.contains("limits.bound_max"));
        }
    }
    assert_eq!(resp.ask(&["INCR", "counters:k"]).await, ":4611686018427387905");
}

/// A key may be any bytes: keys are compared byte by byte.
#[tokio::test]
async fn keys_are_bytes() {
    let server = server().await;
    let mut resp: Client = server.resp().await;
    let long = "k".repeat(255);
    for count in 1..=2 {
        for key in ["\u{1f600}", "a b", "a:b", "a", "\0", "*", "%41", "A", &long] {
            let reply = resp.ask(&["INCR", &format!("counters:{key}")]).await;
            assert_eq!(reply, format!(":{count}"), "{key}");
        }
    }
    for bytes in [256, 10_000] {
        let reply = resp.ask(&["INCR", &format!("counters:{}", "k".repeat(bytes))]).await;
        let refused = format!("-ERR key has {bytes} bytes, allowed are 1 to 255");
        assert!(reply.starts_with(&refused), "{reply}");
    }
    assert_eq!(resp.ask(&["PING"]).await, "+PONG");
}
