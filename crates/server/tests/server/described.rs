//! Tests of HTTP's own description, and of the page for trying it.

use super::common::{Client, server, server_with, soon};

/// Every described path that needs no body exists, with its methods.
#[tokio::test]
async fn description_matches_the_paths_and_methods() {
    let server = server().await;
    let described = server.get("/openapi.json").await;
    assert_eq!(described.header("content-type"), Some("application/json"));
    for path in ["/openapi.json", "/v1/layouts"] {
        let text = server.get(path).await;
        assert_eq!(text.header("cache-control"), Some("no-cache"), "{path}");
        let tag = text.header("etag").unwrap().replacen("w/", "", 1);
        let again = format!("if-none-match: {tag}\r\n");
        let unchanged = server.send("GET", path, &again, "").await;
        assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""), "{path}");
    }
    let about = described.json();
    assert_eq!(about["openapi"], "3.1.0");
    let fill = |path: &str| {
        path.replace("{source}", "numbers")
            .replace("{name}", "numbers")
            .replace("{layout}", "twitter")
            .replace("{id}", "7?source=numbers")
            .replace("numbers/{key}", "counters/alice")
    };
    let paths = about["paths"].as_object().unwrap();
    assert!(paths.len() > 10, "{paths:?}");
    for (path, methods) in paths {
        let methods = methods.as_object().unwrap();
        for (method, call) in methods {
            if method == "get" {
                let response = server.get(&fill(path)).await;
                let status_text = response.status.to_string();
                let content = &call["responses"][&status_text]["content"];
                let sent = response.header("content-type").unwrap_or_default();
                let kind = sent.split(';').next().unwrap_or_default();
                assert!(!content[kind].is_null(), "{method} {path}: {response:?}");
            }
        }
        let wrong = server.send("OPTIONS", &fill(path), "", "").await;
        assert_eq!(wrong.code(), "method_not_allowed", "{path}");
    }
    let body = about["components"]["schemas"]["IdsBody"].clone();
    // Strings; numbers on request.
    let ids = serde_json::json!(["string", "integer"]);
    assert_eq!(body["properties"]["ids"]["items"]["type"], ids);
    let numbers = server.get("/v1/ids/default?format=number").await.json();
    assert!(numbers["ids"][0].is_u64(), "{numbers}");
}

/// The page and all that it loads come from this server.
#[tokio::test]
async fn the_page_needs_no_outside_address() {
    let server = server().await;
    let moved = server.get("/docs").await;
    assert_eq!((moved.status, moved.header("location")), (308, Some("/docs/")));
    let page = server.get("/docs/").await;
    assert!(page.header("content-type").unwrap().starts_with("text/html"), "{page:?}");
    let mut loaded = 0;
    for part in page.body.split(['"', '\'']).filter(|part| part.starts_with("./")) {
        let file = server.get(&format!("/docs/{}", &part[2..])).await;
        assert_eq!(file.status, 200, "{part}");
        loaded += 1;
    }
    assert!(loaded >= 4, "{}", page.body);
    assert!(!page.body.contains("://"), "{}", page.body);
    let start = server.get("/docs/swagger-initializer.js").await;
    assert!(start.body.contains("../openapi.json"), "{}", start.body);
    assert_eq!(server.get("/docs/nothing.js").await.code(), "not_found");
    assert_eq!(server.get("/docs/..%2Fsecret").await.code(), "not_found");
}

/// Every file of the console has its type, and the headers that protect it. The tests next to the
/// code cover the content of the files.
#[tokio::test]
async fn the_console_is_at_the_root() {
    let server = server().await;
    let page = server.get("/").await;
    let mut files = vec![("/".to_owned(), "text/html; charset=utf-8")];
    for part in page.body.split('"').filter(|part| part.starts_with("console/")) {
        let content_type = match part.rsplit('.').next().unwrap() {
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{part} is {other}"),
        };
        files.push((format!("/{part}"), content_type));
    }
    assert!(files.len() >= 4, "{files:?}");
    let mut tags = std::collections::BTreeSet::new();
    for (path, content_type) in &files {
        let file = server.get(path).await;
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, Some(*content_type)),
            "{path}"
        );
        assert_eq!(file.header("cache-control"), Some("no-cache"), "{path}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"), "{path}");
        let policy = file.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'"] {
            assert!(policy.split("; ").any(|word| word == part), "{path}: {policy}");
        }
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        let tag = file.header("etag").unwrap().to_owned();
        let again = |tag: &str| format!("if-none-match: {}\r\n", tag.replacen("w/", "W/", 1));
        let unchanged = server.send("GET", path, &again(&tag), "").await;
        assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""), "{path}");
        assert_eq!(unchanged.header("etag"), Some(tag.as_str()), "{path}");
        // Weak or not, in a list, or whatever is there.
        let strong = tag.to_lowercase().replacen("w/", "", 1);
        for known in [strong.clone(), format!("\"x\", {strong}"), "*".to_owned()] {
            for method in ["GET", "HEAD"] {
                let unchanged = server.send(method, path, &again(&known), "").await;
                assert_eq!(unchanged.status, 304, "{method} {path} {known}");
            }
        }
        let other = server.send("GET", path, &again("W/\"0\""), "").await;
        assert_eq!((other.status, other.body.len()), (200, file.body.len()), "{path}");
        tags.insert(tag);
    }
    assert_eq!(tags.len(), files.iter().collect::<std::collections::BTreeSet<_>>().len());
    for path in
        ["/console/nothing.js", "/console/", "/console/..%2FCargo.toml", "/console/package.json"]
    {
        assert_eq!(server.get(path).await.code(), "not_found", "{path}");
    }
    assert_eq!(server.post("/", "{}").await.code(), "method_not_allowed");
    let pressed = server.send("GET", "/console/style.css", "accept-encoding: gzip\r\n", "").await;
    assert_eq!(pressed.header("content-encoding"), Some("gzip"), "{}", pressed.head);
    let plain = server.get("/console/style.css").await;
    assert_eq!(pressed.header("etag"), plain.header("etag"));
    let again =
        format!("if-none-match: {}\r\n", plain.header("etag").unwrap().replacen("w/", "W/", 1));
    let unchanged = server.send("GET", "/console/style.css", &again, "").await;
    for response in [pressed, plain, unchanged] {
        assert_eq!(response.header("vary"), Some("accept-encoding"), "{}", response.head);
    }
}

/// A page of another site, open in a browser on this machine, cannot change anything here.
#[tokio::test]
async fn pages_of_other_sites_change_nothing() {
    let server = server().await;
    let body = r#"{"name":"theirs","kind":"segment"}"#;
    let from = |site: &str| format!("sec-fetch-site: {site}\r\n");
    for headers in ["cross-site", "same-site"].map(from) {
        let refused = server.send("POST", "/v1/sources", &headers, body).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{refused:?}");
        assert_eq!(server.get("/v1/sources/theirs").await.status, 404);
        assert_eq!(server.send("POST", "/v1/ids/numbers", &headers, "").await.status, 403);
        assert_eq!(server.send("DELETE", "/v1/sources/numbers", &headers, "").await.status, 403);
        // Pages that the browser shows the user directly.
        assert_eq!(server.send("GET", "/", &headers, "").await.status, 200);
    }
    for headers in ["same-origin", "none"].map(from) {
        assert_eq!(server.send("POST", "/v1/sources", &headers, body).await.status, 200);
    }
}

/// An address in a page is enough for a `GET`: it spends numbers even when no page can read them.
#[tokio::test]
async fn pages_of_other_sites_spend_no_ids() {
    let server = server_with(|settings| {
        settings.compat.leaf.enabled = true;
        settings.compat.tinyid.enabled = true;
        settings.compat.cosid.enabled = true;
    })
    .await;
    let from = |site: &str| format!("sec-fetch-site: {site}\r\n");
    for path in [
        "/v1/ids/default",
        "/v1/ids/numbers?count=100000",
        "/v1/ids/num%62ers",
        "/api/segment/get/numbers",
        "/api/snowflake/get/default",
        "/id/nextId?bizType=numbers",
        "/tinyid/id/nextSegmentIdSimple?bizType=numbers",
        "/ids/numbers",
    ] {
        for headers in ["cross-site", "same-site"].map(from) {
            let refused = server.send("GET", path, &headers, "").await;
            assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"), "{path}");
        }
        // The console, and addresses typed into the browser.
        for headers in ["same-origin", "none"].map(from) {
            assert_eq!(server.send("GET", path, &headers, "").await.status, 200, "{path}");
        }
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let reads = server.send("GET", "/v1/sources", &from("cross-site"), "").await;
    assert_eq!(reads.status, 200);
}

/// Long texts are compressed on request; IDs are not, since compression would take longer than the
/// transfer.
#[tokio::test]
async fn long_texts_are_compressed_on_request() {
    let server = server().await;
    let plain = server.get("/openapi.json").await;
    assert_eq!(plain.header("content-encoding"), None);
    let mut client = Client::to(server.http).await;
    client
        .send("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n")
        .await;
    let pressed = soon(client.rest()).await;
    let head = String::from_utf8_lossy(&pressed).to_ascii_lowercase();
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    assert!(pressed.len() * 3 < plain.body.len(), "{} of {}", pressed.len(), plain.body.len());
    for (method, path, body) in [
        ("GET", "/v1/ids/default?count=1000", ""),
        ("POST", "/v1/ids/default", r#"{"count":1000}"#),
        ("POST", "/v1/segments/numbers", r#"{"length":1000}"#),
        ("GET", "/v1/counters/counters/alice", ""),
        ("GET", "/v1/decode/7?source=numbers", ""),
        ("GET", "/docs/swagger-ui.css", ""),
        ("GET", "/v1/sources", ""),
        ("GET", "/metrics", ""),
    ] {
        let plain = server.send(method, path, "accept-encoding: gzip\r\n", body).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, None), "{path}");
    }
}
