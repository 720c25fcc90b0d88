//! What HTTP says of itself: the description, and the page to try it at.

use serde_json::Value;

use super::common::{Client, server, soon};

/// Every path of the description that can be called without a body is there, with the methods it has.
#[tokio::test]
async fn the_description_is_true() {
    let server = server().await;
    let described = server.get("/openapi.json").await;
    assert_eq!(described.header("content-type"), Some("application/json"));
    assert_eq!(described.header("cache-control"), Some("no-store"));
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
    for (path, methods) in paths {
        let methods = methods.as_object().unwrap();
        for (method, call) in methods {
            if method == "get" {
                let answer = server.get(&fill(path)).await;
                let said = answer.status.to_string();
                assert!(!call["responses"][&said].is_null(), "{method} {path}: {answer:?}");
            }
        }
        let wrong = server.send("OPTIONS", &fill(path), "", "").await;
        assert_eq!(wrong.code(), "method_not_allowed", "{path}");
    }
    let body = about["components"]["schemas"]["IdsBody"].clone();
    assert_eq!(body["properties"]["ids"]["items"]["type"], Value::from("string"));
}

/// The page and all that it loads come from here.
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

/// Long texts are pressed for those who take it; IDs are not, for it would take longer than the way.
#[tokio::test]
async fn long_texts_are_pressed_on_request() {
    let server = server().await;
    let plain = server.get("/openapi.json").await;
    assert_eq!(plain.header("content-encoding"), None);
    let mut client = Client::to(server.http).await;
    client
        .send("GET /openapi.json HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n")
        .await;
    let pressed = soon(client.rest()).await;
    let head = String::from_utf8_lossy(&pressed).to_ascii_lowercase();
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    assert!(pressed.len() * 3 < plain.body.len(), "{} of {}", pressed.len(), plain.body.len());
    let ids =
        server.send("GET", "/v1/ids/default?count=1000", "accept-encoding: gzip\r\n", "").await;
    assert_eq!(ids.header("content-encoding"), None);
    assert_eq!(ids.ids().len(), 1000);
}
