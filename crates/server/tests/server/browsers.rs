//! Tests of requests that browsers send for pages, of other sites and of the server's own; and of
//! HTTP's own rules.

use std::collections::BTreeSet;

use snowmint_server::Settings;
use snowmint_wire::error::Code as ErrorCode;
use snowmint_wire::grpc::mint_client::MintClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use super::access::{ADMIN, bearer, guarded};
use super::common::{Client, HttpResponse, Server, server, server_with, soon};
use super::grpc::{reason, wish};

const EVERY_METHOD: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const FORMS: [&str; 5] = [
    "application/x-www-form-urlencoded",
    "APPLICATION/X-WWW-Form-Urlencoded; charset=utf-8",
    "multipart/form-data; boundary=x",
    "text/plain",
    "text/plain;charset=UTF-8",
];

fn all_compat_apis(settings: &mut Settings) {
    settings.http.hosts = vec!["ids.example".to_owned()];
    settings.compat.leaf.enabled = true;
    settings.compat.tinyid.enabled = true;
    settings.compat.cosid.enabled = true;
}

impl Server {
    /// Sends a request with exactly these lines as its head.
    async fn raw(&self, lines: &[&str], body: &str) -> HttpResponse {
        let mut client = Client::to(self.http).await;
        let head = lines.join("\r\n");
        let length = body.len();
        client
            .send(format!("{head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"))
            .await;
        HttpResponse::read(&client.rest().await)
    }

    /// Makes a gRPC call with this authority.
    async fn mint_from(&self, authority: &str) -> Result<Vec<u64>, tonic::Status> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.http)).unwrap();
        let origin = format!("http://{authority}").parse().unwrap();
        let channel: Channel = soon(endpoint.origin(origin).connect()).await.unwrap();
        let response = soon(MintClient::new(channel).mint(wish("numbers", None))).await?;
        Ok(response.into_inner().ids)
    }
}

#[tokio::test]
async fn rebound_name_gets_nothing_without_tokens() {
    let server = server_with(all_compat_apis).await;
    let port = server.http.port();
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example"] {
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/livez"),
            ("GET", "/v1/sources"),
            ("GET", "/v1/ids/default"),
            ("GET", "/v1/ids/default?count=2"),
            ("POST", "/v1/ids/default"),
            ("DELETE", "/v1/sources/numbers"),
            ("GET", "/api/segment/get/numbers"),
            ("OPTIONS", "/v1/sources"),
            ("GET", "/nothing"),
        ] {
            let line = format!("{method} {path} HTTP/1.1");
            let site = "sec-fetch-site: same-origin";
            let host = format!("host: {host}");
            let refused = server.raw(&[&line, &host, site], "").await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (421, "misdirected"),
                "{line}: {refused:?}"
            );
            assert!(refused.body.contains("http.hosts"), "{refused:?}");
        }
    }
    for host in ["127.0.0.1", "10.9.8.7:1", "[::1]:7700", "localhost", "ids.example:7700"] {
        let host = format!("host: {host}");
        for path in ["/v1/ids/default", "/v1/ids/default?count=2", "/readyz"] {
            let line = format!("GET {path} HTTP/1.1");
            assert_eq!(server.raw(&[&line, &host], "").await.status, 200, "{host} {path}");
        }
    }
    assert_eq!(server.get("/v1/sources/numbers").await.status, 200);
}

/// A connection caches the last host: another one on the same connection is still checked.
#[tokio::test]
async fn every_request_of_a_connection_names_its_host() {
    let server = server().await;
    let mut client = Client::to(server.http).await;
    for (host, status) in [
        ("127.0.0.1", "200"),
        ("127.0.0.1", "200"),
        ("evil.example", "421"),
        ("127.0.0.1", "200"),
        ("127.0.0.1\r\norigin: http://evil.example", "403"),
        ("127.0.0.1\r\nhost: 127.0.0.1", "400"),
        ("127.0.0.1", "200"),
    ] {
        client.send(format!("GET /v1/ids/numbers HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
        let line = client.line().await;
        assert_eq!(line.split(' ').nth(1), Some(status), "{host:?}: {line}");
        let mut length = 0;
        loop {
            let line = client.line().await;
            if line.is_empty() {
                break;
            }
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        soon(tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut body)).await.unwrap();
    }
}

#[tokio::test]
async fn call_of_grpc_names_a_host_too() {
    let server = server_with(all_compat_apis).await;
    for own in ["127.0.0.1:1", "localhost", "ids.example:7700", "[::1]:7700"] {
        assert!(server.mint_from(own).await.is_ok(), "{own}");
    }
    let refused = server.mint_from("evil.example").await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused)),
        (Code::PermissionDenied, ErrorCode::Misdirected)
    );
    assert!(refused.message().contains("http.hosts"), "{refused:?}");
}

/// Behind a proxy, and in any cluster, a server with tokens has more names than it knows.
#[tokio::test]
async fn host_is_free_where_tokens_are_required() {
    let (server, _) = guarded().await;
    let token = bearer(ADMIN);
    let line = ["GET /v1/ids/numbers HTTP/1.1", "host: any.example", token.trim_end()];
    assert_eq!(server.raw(&line, "").await.status, 200);
    let other_site = [&line[..], &["origin: http://evil.example"]].concat();
    assert_eq!(server.raw(&other_site, "").await.status, 403);
    let own = [&line[..], &["origin: https://any.example"]].concat();
    assert_eq!(server.raw(&own, "").await.status, 200);
}

#[tokio::test]
async fn host_is_named_once() {
    let server = server().await;
    let status = async |lines: &[&str]| server.raw(lines, "").await.status;
    for path in ["/v1/ids/numbers", "/v1/ids/numbers?count=2", "/v1/sources", "/"] {
        let line = format!("GET {path} HTTP/1.1");
        let host = "host: 127.0.0.1";
        assert_eq!(status(&[&line, host]).await, 200, "{path}");
        assert_eq!(status(&[&line]).await, 400, "{path}");
        assert_eq!(status(&[&line, host, host]).await, 400, "{path}");
        assert_eq!(status(&[&line, host, "host: b.example"]).await, 400, "{path}");
        assert_eq!(status(&[&line, "host:"]).await, 400, "{path}");
        assert_eq!(status(&[&line, "host: me@127.0.0.1"]).await, 400, "{path}");
        let older = line.replace("1.1", "1.0");
        assert_eq!(status(&[&older]).await, 200, "{path}");
        let absolute = format!("GET http://evil.example{path} HTTP/1.1");
        assert_eq!(status(&[&absolute, host]).await, 421, "{path}");
        let absolute = format!("GET http://127.0.0.1{path} HTTP/1.1");
        assert_eq!(status(&[&absolute, host]).await, 200, "{path}");
        assert_eq!(status(&[&absolute]).await, 400, "{path}");
    }
    let (server, _) = guarded().await;
    let missing = server.raw(&["GET /livez HTTP/1.1"], "").await;
    assert_eq!((missing.status, missing.code().as_str()), (400, "bad_request"));
}

#[tokio::test]
async fn page_of_another_origin_changes_nothing() {
    let server = server_with(all_compat_apis).await;
    let here = format!("http://{}", server.http);
    let ask = async |method: &str, path: &str, origin: &str, body: &str| {
        let (line, host) = (format!("{method} {path} HTTP/1.1"), format!("host: {}", server.http));
        let origin = format!("origin: {origin}");
        server.raw(&[&line, &host, &origin], body).await
    };
    let body = r#"{"name":"theirs","kind":"segment"}"#;
    for origin in
        ["http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "file://"]
    {
        for (method, path, body) in [
            ("POST", "/v1/sources", body),
            ("DELETE", "/v1/sources/numbers", ""),
            ("PATCH", "/v1/sources/numbers", "{}"),
            ("POST", "/v1/ids/numbers", ""),
            ("GET", "/v1/ids/numbers", ""),
            ("GET", "/v1/ids/numbers?count=2", ""),
            ("GET", "/v1/ids/num%62ers", ""),
            ("POST", "/v1/peers/catalog", ""),
            ("PUT", "/v1/counters/counters/a", r#"{"bound":"9"}"#),
            ("GET", "/api/segment/get/numbers", ""),
            ("POST", "/api/segment/get/numbers", ""),
            ("GET", "/id/nextId?bizType=numbers", ""),
            ("GET", "/ids/numbers", ""),
            ("POST", "/machines/shop", ""),
        ] {
            let refused = ask(method, path, origin, body).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (403, "forbidden"),
                "{method} {path} {origin}"
            );
        }
        // The page cannot see the response: no header permits it.
        let read = ask("GET", "/v1/sources", origin, "").await;
        assert_eq!((read.status, read.header("access-control-allow-origin")), (200, None));
    }
    assert_eq!(server.get("/v1/sources/theirs").await.status, 404);
    assert_eq!(server.get("/v1/ids/numbers").await.ids(), [1], "none was taken");
    // The console, here and behind a proxy that sends another host.
    assert_eq!(ask("GET", "/v1/ids/numbers", &here, "").await.ids(), [2]);
    assert_eq!(ask("POST", "/v1/sources", &here, body).await.status, 200);
    assert_eq!(ask("DELETE", "/v1/sources/theirs", "https://ids.example", "").await.status, 204);
}

/// Pages can send these calls, too.
#[tokio::test]
async fn page_of_another_site_takes_no_ids_over_grpc() {
    let server = server_with(all_compat_apis).await;
    let mut client = server.grpc().await;
    let mut mint = async |header: &'static str, value: &str| {
        let mut request = Request::new(wish("numbers", None));
        request.metadata_mut().insert(header, value.parse().unwrap());
        soon(client.mint(request)).await
    };
    for (header, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let refused = mint(header, value).await.unwrap_err();
        let codes = (refused.code(), reason(&refused));
        assert_eq!(codes, (Code::PermissionDenied, ErrorCode::Forbidden), "{header}: {value}");
    }
    let here = format!("http://{}", server.http);
    for (origin, id) in [(here.as_str(), 1), ("https://ids.example", 2)] {
        let response = mint("origin", origin).await.unwrap().into_inner();
        assert_eq!(response.ids, [id], "{origin}: those that were refused took none");
    }
}

/// A browser sends these for any page without a prior check, also to addresses where it does not
/// name the page's site.
#[tokio::test]
async fn form_is_read_only_by_compatibility_apis() {
    let server = server_with(all_compat_apis).await;
    let body = r#"{"name":"theirs","kind":"segment"}"#;
    for kind in FORMS {
        let header = format!("content-type: {kind}\r\n");
        for (method, path, body) in [
            ("POST", "/v1/sources", body),
            ("PATCH", "/v1/sources/numbers", "{}"),
            ("POST", "/v1/sources/numbers/restripe", "{}"),
            ("DELETE", "/v1/sources/numbers", ""),
            ("POST", "/v1/ids/numbers", ""),
            ("POST", "/v1/segments/numbers", r#"{"length":10}"#),
            ("PUT", "/v1/counters/counters/a", r#"{"bound":"9"}"#),
            ("POST", "/v1/recovery", "{}"),
            ("POST", "/v1/peers/catalog", ""),
        ] {
            let refused = server.send(method, path, &header, body).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (415, "unsupported_media_type"),
                "{method} {path} {kind}"
            );
            assert!(refused.body.contains("Content-Type: application/json"), "{refused:?}");
        }
        for path in ["/api/segment/get/numbers", "/api/snowflake/get/default"] {
            assert_eq!(server.send("POST", path, &header, "").await.status, 200, "{path} {kind}");
        }
    }
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let tinyid = server.send("POST", "/id/nextId", form, "bizType=numbers").await;
    assert_eq!(tinyid.json()["code"], 200, "{tinyid:?}");
    for kind in ["application/json", "application/merge-patch+json", "application/octet-stream"] {
        let header = format!("content-type: {kind}\r\n");
        assert_eq!(server.send("POST", "/v1/sources", &header, body).await.status, 200, "{kind}");
    }
    assert_eq!(server.post("/v1/sources", body).await.status, 200, "without a content type");
}

#[tokio::test]
async fn body_in_an_encoding_is_refused() {
    let server = server_with(all_compat_apis).await;
    let body = r#"{"count":2}"#;
    for encoding in ["gzip", "br", "deflate", "identity, gzip"] {
        let header = format!("content-type: application/json\r\ncontent-encoding: {encoding}\r\n");
        for (method, path) in [
            ("POST", "/v1/ids/numbers"),
            ("POST", "/v1/sources"),
            ("POST", "/id/nextId?bizType=numbers"),
            ("GET", "/id/nextId?bizType=numbers"),
        ] {
            let refused = server.send(method, path, &header, body).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (415, "unsupported_media_type"),
                "{method} {path} {encoding}"
            );
            assert_eq!(refused.header("accept-encoding"), Some("identity"));
        }
    }
    let plain = "content-encoding: identity\r\n";
    assert_eq!(server.send("POST", "/v1/ids/numbers", plain, body).await.ids(), [1, 2]);
}

/// RFC 9110, 10.2.1: `Allow` lists the methods of the path, for any caller. Checks every path of
/// every interface.
#[tokio::test]
async fn allow_names_the_methods_that_are_served() {
    let server = server_with(all_compat_apis).await;
    let described = server.get("/openapi.json").await.json();
    let described = described["paths"].as_object().unwrap().keys().map(|path| {
        path.replace("{source}", "numbers").replace("{name}", "none").replace("{key}", "a")
    });
    let others = [
        "/",
        "/console/main.js",
        "/openapi.json",
        "/docs",
        "/docs/",
        "/docs/index.css",
        "/v1/peers/catalog",
        "/api/segment/get/numbers",
        "/api/snowflake/get/default/",
        "/decodeSnowflakeId",
        "/id/nextId",
        "/tinyid/id/nextSegmentIdSimple",
        "/segments/distributor/a/b",
        "/segments/a/b",
        "/machines/shop",
        "/ids",
        "/ids/numbers",
        "/ids/as-string",
        "/ids/as-string/numbers",
    ];
    let mut paths: BTreeSet<String> = others.map(str::to_owned).into();
    paths.extend(described);
    assert!(paths.len() > 30, "{paths:?}");
    for path in paths {
        let mut served = BTreeSet::new();
        for method in EVERY_METHOD {
            if server.send(method, &path, "", "").await.status != 405 {
                served.insert(method.to_ascii_lowercase());
            }
        }
        assert!(!served.is_empty(), "{path}");
        for method in ["OPTIONS", "BREW"].into_iter().chain(EVERY_METHOD) {
            if served.contains(&method.to_ascii_lowercase()) {
                continue;
            }
            let refused = server.send(method, &path, "", "").await;
            assert_eq!(refused.status, 405, "{method} {path}");
            let lines = refused.head.lines().filter_map(|line| line.strip_prefix("allow: "));
            let allowed: Vec<_> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
            let once: BTreeSet<_> = allowed.iter().map(|&method| method.to_owned()).collect();
            assert_eq!((allowed.len(), &once), (served.len(), &served), "{method} {path}");
        }
    }
}

/// A page inside a page of another site, or with a script from another site, could be made to press
/// its buttons.
#[tokio::test]
#[cfg(feature = "swagger-ui")]
async fn page_of_the_description_is_guarded_as_the_console() {
    let server = server().await;
    for path in ["/docs", "/docs/", "/docs/swagger-ui-bundle.js", "/docs/nothing.js"] {
        let file = server.get(path).await;
        let policy = file.header("content-security-policy").unwrap_or_default();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(file.header("referrer-policy"), Some("no-referrer"), "{path}");
    }
}
