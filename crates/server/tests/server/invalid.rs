//! Tests of requests that a parser rejects: every protocol responds with a sentence of this
//! program, in its style.

use snowmint_wire::grpc::store;
use snowmint_wire::grpc::{AlterSourceRequest, DefineSourceRequest};

use super::common::{server, server_with};

/// Checks a sentence: lower case, no text of a parser, a remedy.
#[track_caller]
fn check(message: &str, parts: &[&str]) {
    assert!(message.starts_with(|first: char| first.is_ascii_lowercase()), "{message}");
    for raw_text in ["Failed", "Invalid", "EOF", "`", "deserialize", "\u{1b}", ": :"] {
        assert!(!message.contains(raw_text), "{raw_text:?}: {message}");
    }
    assert!(message.contains("; ") && !message.ends_with('.'), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test]
async fn http_reports_rejected_input_in_our_sentences() {
    let server = server().await;
    for (method, path, body, parts) in [
        ("POST", "/v1/ids/default", "{\"count\" 1}", &["body is not valid JSON at line 1"][..]),
        ("POST", "/v1/ids/default", "{\"count\":", &["text ends inside a value"]),
        (
            "POST",
            "/v1/ids/default",
            "{\"cou\\u001bnt\":1}",
            &["body is invalid at line 1", "\"count\""],
        ),
        ("POST", "/v1/segments/numbers", "{}", &["missing field \"length\""]),
        ("GET", "/v1/ids/default?count=x", "", &["query parameter \"count\": "]),
        ("GET", "/v1/ids/default?cuont=1", "", &["query parameter \"cuont\": unknown field"]),
        ("GET", "/v1/ids/default?cu%1Bont=1", "", &["query is invalid: "]),
        ("GET", "/v1/layouts/%ff", "", &["path is not UTF-8"]),
    ] {
        let response = server.send(method, path, "", body).await;
        assert_eq!(response.status, 400, "{path}: {response:?}");
        check(response.json()["error"]["message"].as_str().unwrap(), parts);
    }
}

#[tokio::test]
async fn compatibility_apis_report_rejected_paths_in_our_sentences() {
    let server = server_with(|settings| {
        settings.compat.leaf.enabled = true;
        settings.compat.cosid.enabled = true;
    })
    .await;
    for (path, field) in [("/api/segment/get/%ff", "reason"), ("/ids/%ff", "msg")] {
        let response = server.get(path).await;
        check(response.json()[field].as_str().unwrap(), &["path is not UTF-8"]);
    }
}

#[tokio::test]
async fn grpc_reports_rejected_json_in_our_sentences() {
    let server = server().await;
    let mut client = server.grpc().await;
    let define = DefineSourceRequest { name: "orders".into(), keys: "{\"kind\":".into() };
    let refused = client.define_source(define).await.unwrap_err();
    check(refused.message(), &["keys is not valid JSON at line 1", "text ends inside a value"]);
    let alter = AlterSourceRequest {
        name: "numbers".into(),
        changes: "[]".into(),
        ..AlterSourceRequest::default()
    };
    let refused = client.alter_source(alter).await.unwrap_err();
    check(refused.message(), &["changes is invalid at line 1"]);
}

/// The label of a recall is any text of its caller, and others read the error in a log.
#[tokio::test]
async fn recall_shows_no_control_characters_of_its_caller() {
    let server = server().await;
    let mut client = server.program("").await;
    let seen = store::Identity { id: "another".into(), writes: 1 };
    let recall = store::RecallRequest { who: "a\u{1b}[2J\nb".into(), seen: Some(seen) };
    let error = client.call(recall).await.unwrap().error.unwrap();
    assert_eq!(error.code, "store_mismatch");
    assert!(error.message.contains("a\\u{1b}[2J\\nb belongs to"), "{}", error.message);
}
