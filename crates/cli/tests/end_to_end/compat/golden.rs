//! Golden files: requests, and the exact bytes of their responses.
//!
//! `> METHOD PATH FORM` is a request, with a form as its body if there is one (`-`: an empty one).
//! `< STATUS TYPE` and the line after it are the response (`-`: no type). In that line `<n>` is a
//! number, `<text>` any text within a string.

use super::super::server::{Folder, Server, curl};
use super::serve;

const SOURCES: &str = r#"
[sources.orders]
kind = "segment"
step.rule = "fixed"
step.size = 1000

[sources.test]
kind = "segment"
step.rule = "fixed"
step.size = 1000

[sources.test_odd]
kind = "segment"
offset = 1
increment = 2
step.rule = "fixed"
step.size = 1000

[sources."demo.order"]
kind = "segment"

[sources.flakes]
layout = "leaf"

[sources.off]
kind = "segment"
enabled = false

[sources.bills]
kind = "segment"
serial.prefix = "B"
"#;

const LEAF: &str = r#"
[compat.leaf]
enabled = true
snowflake = "flakes"
zone = "Asia/Shanghai"

[compat.leaf.keys]
"leaf-segment-test" = "orders"
"#;

const TINYID: &str = r#"
[compat.tinyid]
enabled = true

[compat.tinyid.keys]
"订单" = "orders"

[compat.tinyid.tokens]
0f673adf80504e2eaa552f5d791b644c = "test, test_odd"
everything = "*"
"#;

const COSID: &str = r#"
[compat.cosid]
enabled = true
define = true

[compat.cosid.keys]
"shop.order@2026-11" = "orders"
"__share__" = "flakes"
"no.stripe" = "test_odd"
"no.flake" = "flakes"
"no.serial" = "bills"
"no.off" = "off"
"#;

#[test]
fn leaf_responses_match_byte_for_byte() {
    hold_to("leaf", LEAF, include_str!("leaf.txt"));
}

#[test]
fn tinyid_responses_match_byte_for_byte() {
    hold_to("tinyid", TINYID, include_str!("tinyid.txt"));
}

#[test]
fn cosid_proxy_responses_match_byte_for_byte() {
    hold_to("cosid", COSID, include_str!("cosid.txt"));
}

#[test]
fn compatibility_apis_are_disabled_by_default() {
    let folder = Folder::new("compat-off");
    let server = serve(&folder, SOURCES);
    let files = [include_str!("leaf.txt"), include_str!("tinyid.txt"), include_str!("cosid.txt")];
    let mut requests = 0;
    for exchange in files.into_iter().flat_map(exchanges) {
        let (status, _, body) = ask(&server, &exchange);
        assert_eq!(status, "404", "{exchange:?}: {body}");
        assert!(body.starts_with("{\"error\":{\"code\":\"not_found\""), "{exchange:?}: {body}");
        requests += 1;
    }
    assert!(requests > 50, "{requests}");
}

#[test]
fn compatibility_responses_are_never_cached() {
    let folder = Folder::new("compat-cache");
    let server = serve(&folder, &[SOURCES, LEAF, TINYID, COSID].concat());
    for path in [
        "/api/segment/get/orders",
        "/id/nextId?bizType=test&token=everything",
        "/ids/orders",
        "/machines/demo",
    ] {
        let response = curl(&["-i", &server.url(path)]).to_lowercase();
        assert!(response.contains("\r\ncache-control: no-store\r\n"), "{path}: {response}");
        // A HEAD request would use up an ID unseen.
        if path != "/machines/demo" {
            let response = curl(&["-I", &server.url(path)]);
            assert!(response.starts_with("HTTP/1.1 405 "), "{path}: {response}");
        }
    }
}

fn hold_to(name: &str, interface: &str, golden: &str) {
    let folder = Folder::new(&format!("golden-{name}"));
    let server = serve(&folder, &[SOURCES, interface].concat());
    let mut requests = 0;
    for exchange in exchanges(golden) {
        let (status, kind, body) = ask(&server, &exchange);
        let response = format!("{status} {kind}\n{body}");
        let expected = format!("{}\n{}", exchange.head, exchange.body);
        assert!(
            matches(&expected, &response),
            "{name}, line {}: {exchange:?}\nresponse:\n{response}",
            exchange.line
        );
        requests += 1;
    }
    assert_eq!(requests, golden.lines().filter(|line| line.starts_with('>')).count());
    assert!(requests > 10, "{requests}");
}

#[derive(Debug)]
struct Exchange<'a> {
    line: usize,
    method: &'a str,
    path: &'a str,
    form: Option<&'a str>,
    head: &'a str,
    body: &'a str,
}

fn exchanges(golden: &str) -> Vec<Exchange<'_>> {
    let mut lines = golden.lines().enumerate();
    let mut found = Vec::new();
    while let Some((index, line)) = lines.next() {
        let Some(request) = line.strip_prefix("> ") else {
            assert!(line.is_empty() || line.starts_with('#'), "line {}: {line}", index + 1);
            continue;
        };
        let mut words = request.splitn(3, ' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let head = lines.next().unwrap().1.strip_prefix("< ").unwrap();
        let body = lines.next().unwrap().1;
        found.push(Exchange { line: index + 1, method, path, form: words.next(), head, body });
    }
    found
}

/// Sends a request, and returns the status, the content type and the body.
fn ask(server: &Server, exchange: &Exchange<'_>) -> (String, String, String) {
    let url = server.url(exchange.path);
    let mut arguments =
        vec!["-X", exchange.method, "-w", "\n%{http_code} %{content_type}", url.as_str()];
    if let Some(form) = exchange.form {
        arguments.extend(["--data", if form == "-" { "" } else { form }]);
    }
    let response = curl(&arguments);
    let (body, about) = response.rsplit_once('\n').unwrap();
    let (status, kind) = about.split_once(' ').unwrap_or((about, ""));
    let kind = if kind.is_empty() { "-" } else { kind };
    (status.to_owned(), kind.to_owned(), body.to_owned())
}

/// Returns whether the whole text matches the pattern.
fn matches(pattern: &str, text: &str) -> bool {
    let next = pattern.find("<n>").into_iter().chain(pattern.find("<text>")).min();
    let Some(start) = next else { return pattern == text };
    let (before, rest) = pattern.split_at(start);
    let Some(text) = text.strip_prefix(before) else { return false };
    let (rest, length) = match rest.strip_prefix("<n>") {
        Some(rest) => (rest, text.bytes().take_while(u8::is_ascii_digit).count()),
        None => (
            rest.strip_prefix("<text>").unwrap(),
            // The match ends at the quote that ends the string; a quote within it is escaped.
            text.match_indices('"')
                .map(|(index, _)| index)
                .find(|&index| !text[..index].ends_with('\\'))
                .unwrap_or(text.len()),
        ),
    };
    length > 0 && matches(rest, &text[length..])
}

#[test]
fn patterns_match_every_byte_of_a_text() {
    for (pattern, text) in [
        ("", ""),
        ("a", "a"),
        ("<n>,<n>", "1,20"),
        ("{\"a\":\"<text>\"}", "{\"a\":\"x \\\"y\\\" z\"}"),
    ] {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [
        ("", "a"),
        ("a", ""),
        ("a", "a\n"),
        ("<n>", ""),
        ("<n>", "1 "),
        ("<n>,<n>", "1,"),
        ("{\"a\":\"<text>\"}", "{\"a\":\"\"}"),
        ("{\"a\":\"<text>\"}", "{\"a\":\"x\",\"b\":1}"),
    ] {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
}
