//! Requests of HTTP/1.1 as text: each path of the description, with any values, then spoiled or
//! not.

use std::fmt::Write as _;

use fastrand::Rng;

use crate::dice;

/// Returns the methods and paths of the committed description of the interface.
pub fn operations(description: &str) -> Vec<(String, String)> {
    let description: serde_json::Value =
        serde_json::from_str(description).expect("the description is JSON");
    let paths = description["paths"].as_object().expect("the description has paths");
    let mut all = Vec::new();
    for (path, methods) in paths {
        let methods = methods.as_object().expect("a path has methods");
        all.extend(methods.keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    all
}

/// Returns one request with well-formed parts, unless `spoil` comes after.
pub fn request(rng: &mut Rng, operations: &[(String, String)], token: &str) -> Vec<u8> {
    let (method, path) = &operations[rng.usize(..operations.len())];
    let method = if rng.u8(..20) == 0 {
        dice::one_of(rng, &["OPTIONS", "HEAD", "TRACE", "PUT", "BREW"])
    } else {
        method
    };
    let target = target(rng, path);
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    if rng.u8(..30) > 0 {
        text.push_str("Host: 127.0.0.1\r\n");
    }
    let token = if rng.u8(..10) == 0 { "wrong" } else { token };
    let _ = write!(text, "Authorization: Bearer {token}\r\n");
    for _ in 0..rng.u8(..3) {
        let header = dice::one_of(
            rng,
            &[
                "Accept",
                "Content-Type",
                "Origin",
                "Sec-Fetch-Site",
                "Expect",
                "traceparent",
                "Content-Encoding",
                "Idempotency-Key",
                "Connection",
                "X-Any",
            ],
        );
        let value = dice::one_of(
            rng,
            &[
                "application/json",
                "text/event-stream",
                "application/x-ndjson",
                "null",
                "cross-site",
                "100-continue",
                "gzip",
                "00-0-0-0",
                "close",
                "*/*",
            ],
        );
        let _ = write!(text, "{header}: {value}\r\n");
    }
    let body = if matches!(method, "POST" | "PUT" | "PATCH") {
        dice::json(rng, 3).to_string()
    } else {
        String::new()
    };
    if !body.is_empty() {
        let _ =
            write!(text, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    text.push_str(&body);
    text.into_bytes()
}

fn target(rng: &mut Rng, path: &str) -> String {
    let mut target = String::new();
    for part in path.split('/').skip(1) {
        target.push('/');
        match part {
            "{id}" => target.push_str(&dice::number(rng)),
            part if part.starts_with('{') => target.push_str(&encoded(&dice::name(rng))),
            part => target.push_str(part),
        }
    }
    let mut separator = '?';
    for key in ["count", "key", "format", "source", "layout"] {
        if rng.u8(..4) == 0 {
            let value = if rng.bool() { dice::number(rng) } else { dice::name(rng) };
            let _ = write!(target, "{separator}{key}={}", encoded(&value));
            separator = '&';
        }
    }
    target
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
        all
    })
}
