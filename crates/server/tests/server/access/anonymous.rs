//! Tests of callers without a valid token.

use super::{BARE, KEYED, MINTER, PEER, SCRAPER, access, bearer, guarded};
use crate::common::{node, server_for, settings, timer};

/// An anonymous caller learns that the server cannot mint, and the kind of the reason.
#[tokio::test]
async fn readiness_names_nothing_to_an_anonymous_caller() {
    let node = node().await;
    let settings = settings();
    let server = server_for(node.clone(), settings, (Some(access(&timer())), timer())).await;
    node.close().await.unwrap();
    let readiness_for = async |token: &str| {
        let headers = if token.is_empty() { String::new() } else { bearer(token) };
        let response = server.send("GET", "/readyz", &headers, "").await;
        assert_eq!(response.status, 503);
        response.json()
    };
    for stranger in ["", "wrong", BARE, KEYED] {
        let readiness = readiness_for(stranger).await;
        assert_eq!(readiness["reasons"], serde_json::json!([]), "{stranger}");
        assert_eq!(readiness["codes"], serde_json::json!(["closed"]), "{stranger}");
    }
    for known in [MINTER, SCRAPER, PEER] {
        let readiness = readiness_for(known).await;
        assert_eq!(readiness["reasons"].as_array().map(Vec::len), Some(1), "{known}: {readiness}");
        assert_eq!(readiness["codes"], serde_json::json!(["closed"]), "{known}");
    }
}

/// Paths that need a token, and those that the description of the server marks so.
#[tokio::test]
async fn description_names_the_calls_that_need_a_token() {
    let (server, _) = guarded().await;
    let about = server.get("/openapi.json").await.json();
    let (mut open, mut closed) = (0, 0);
    for (path, calls) in about["paths"].as_object().unwrap() {
        for (method, call) in calls.as_object().unwrap() {
            let schemes = call.get("security").unwrap_or(&about["security"]).as_array().unwrap();
            let is_needed = schemes.iter().all(|scheme| scheme.get("token").is_some());
            *(if is_needed { &mut closed } else { &mut open }) += 1;
            let path = path.replace("{layout}", "twitter").replace(['{', '}'], "");
            let status = server.status_as("", &method.to_uppercase(), &path, "").await;
            assert_eq!(status == 401, is_needed, "{method} {path}: {status}");
        }
    }
    assert!(open >= 4 && closed >= 15, "{open} open, {closed} closed");
}

/// An anonymous caller gets a 401 for any mistake in a request, and learns nothing else.
#[tokio::test]
async fn anonymous_request_is_rejected_before_it_is_read() {
    let (server, _) = guarded().await;
    for (method, path, body) in [
        ("GET", "/v1/decode/1", ""),
        ("GET", "/v1/decode/1?source=numbers&layout=twitter", ""),
        ("GET", "/v1/decode/x?unknown=1", ""),
        ("GET", "/v1/ids/default?count=x", ""),
        ("GET", "/v1/ids/%00", ""),
        ("GET", "/v1/counters/counters/k?x=1", ""),
        ("POST", "/v1/ids/default", "{"),
        ("POST", "/v1/sources", ""),
        ("POST", "/v1/recovery", "[]"),
        ("DELETE", "/v1/sources/", ""),
        ("DELETE", "/v1/workers", ""),
        ("GET", "/v1/nothing", ""),
    ] {
        for stranger in ["", "wrong-0123456789abcdef0123456789"] {
            let status = server.status_as(stranger, method, path, body).await;
            assert_eq!(status, 401, "{method} {path} {stranger}");
        }
    }
    // Layouts need no token, mistakes in them included.
    assert_eq!(server.status_as("", "GET", "/v1/layouts/time=99", "").await, 400);
}
