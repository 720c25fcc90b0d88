//! Tests of `/metrics`: its formats, and what it counts.

use snowmint_coord::MemoryStore;

use super::common::{node_on, server, server_of, settings, soon};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[tokio::test]
async fn metrics_have_the_format_that_accept_prefers() {
    let server = server().await;
    assert_eq!(server.get("/v1/ids/default").await.status, 200);
    for (headers, content_type) in [
        ("", PROMETHEUS),
        ("accept: */*\r\n", PROMETHEUS),
        ("accept: text/plain; version=0.0.4\r\n", PROMETHEUS),
        ("accept: application/xml\r\n", PROMETHEUS),
        ("accept: application/openmetrics-text; version=1.0.0\r\n", OPENMETRICS),
        ("accept: application/openmetrics-text;q=0.2, text/plain;q=0.3\r\n", PROMETHEUS),
        ("accept: text/plain;q=0.2\r\naccept: application/openmetrics-text;q=0.3\r\n", OPENMETRICS),
    ] {
        let response = server.send("GET", "/metrics", headers, "").await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.header("content-type"), Some(content_type), "{headers}");
        let has = |line: &str| response.body.lines().any(|other| other == line);
        let is_open = content_type == OPENMETRICS;
        assert_eq!(response.body.ends_with("\n# EOF\n"), is_open, "{headers}: {response:?}");
        assert_eq!(has("# TYPE snowmint_ids counter"), is_open, "{headers}");
        assert_eq!(has("# TYPE snowmint_build info"), is_open, "{headers}");
        assert_eq!(has("# TYPE snowmint_ids_total counter"), !is_open, "{headers}");
        assert_eq!(has("# TYPE snowmint_build_info gauge"), !is_open, "{headers}");
        assert!(has("# TYPE snowmint_request_seconds histogram"), "{headers}");
        assert!(has("snowmint_ids_total{source=\"default\",protocol=\"http\"} 1"), "{headers}");
    }
}

/// The first of two servers has the only worker number of a source that no configuration has.
#[tokio::test]
async fn first_failed_request_of_a_source_is_counted() {
    let store = MemoryStore::new("test").unwrap();
    let other = node_on(store.handle("test").unwrap()).await;
    let first = server_of(other, settings()).await;
    let second = server_of(node_on(store).await, settings()).await;
    let one = r#"{"name":"one","layout":"time=62,worker=0,sequence=1,unit=1ms"}"#;
    assert_eq!(first.post("/v1/sources", one).await.status, 200);
    assert_eq!(soon(first.get("/v1/ids/one")).await.status, 200);
    for (path, status) in [("/v1/ids/one", 503), ("/v1/ids/absent", 404)] {
        let failed = soon(second.get(path)).await;
        assert_eq!(failed.status, status, "{failed:?}");
    }
    let page = second.get("/metrics").await.body;
    let counts = |line: &&str| line.starts_with("snowmint_source_errors_total{source=\"one\"}");
    let count = page.lines().find(counts).unwrap_or_else(|| panic!("{page}"));
    assert!(count.ends_with(" 1"), "{count}");
    assert!(!page.contains("absent\""), "{page}");
}
