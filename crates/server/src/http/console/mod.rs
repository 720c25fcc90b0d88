//! The console: the page at `/`, and the files that it loads. The server serves the files of the
//! folder `console/` of this package unchanged: nothing is built or loaded from other sites. They
//! contain no secret, so they need no token; the page calls the server like any other client.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use super::state::HttpState;
use super::static_text::StaticText;

/// Cache policy: browsers keep the files and revalidate each before use, so an upgrade shows on the
/// next load.
const CACHED: HeaderValue = HeaderValue::from_static("no-cache");
/// Policy: only these files and the server's own responses, no script or style in the page, and no
/// frame.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
);
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// File at `/`; the rest are at `/console/NAME`.
const INDEX: &str = "index.html";

/// A file of the console.
#[derive(Debug)]
struct File {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal: $content_type:ident,)*) => {
        &[$(File {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../../console/", $name)),
        },)*]
    };
}

const FILES: &[File] = files! {
    "index.html": HTML,
    "style.css": CSS,
    "icon.svg": IMAGE,
    "main.js": SCRIPT,
    "api.js": SCRIPT,
    "bits.js": SCRIPT,
    "confirm.js": SCRIPT,
    "counters.js": SCRIPT,
    "decode.js": SCRIPT,
    "define.js": SCRIPT,
    "dom.js": SCRIPT,
    "drawing.js": SCRIPT,
    "keys.js": SCRIPT,
    "layouts.js": SCRIPT,
    "metrics.js": SCRIPT,
    "mint.js": SCRIPT,
    "server.js": SCRIPT,
    "source.js": SCRIPT,
    "sources.js": SCRIPT,
    "token.js": SCRIPT,
    "values.js": SCRIPT,
    "workers.js": SCRIPT,
};

/// Returns the headers that protect a page for people from other sites.
pub(super) const fn guards(policy: HeaderValue) -> [(HeaderName, HeaderValue); 3] {
    [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, NO_SNIFF),
        (REFERRER_POLICY, NO_REFERRER),
    ]
}

/// Returns the routes of all files.
pub(super) fn pages() -> Router<Arc<HttpState>> {
    FILES.iter().fold(Router::new(), |pages, file| {
        let tag = tag_of(file.bytes);
        let text = Arc::new(StaticText::new(file.content_type, Bytes::from_static(file.bytes)));
        let response = move |headers: HeaderMap| ready(response(&text, &tag, &headers));
        pages.route(&file.path(), get(response))
    })
}

impl File {
    fn path(&self) -> String {
        match self.name {
            INDEX => "/".to_owned(),
            name => format!("/console/{name}"),
        }
    }
}

/// Returns a file, or 304 if the caller has it.
fn response(text: &StaticText, tag: &HeaderValue, request_headers: &HeaderMap) -> Response {
    let headers = [(ETAG, tag.clone()), (CACHE_CONTROL, CACHED)];
    let guards = guards(POLICY);
    if has(request_headers, tag) {
        return (StatusCode::NOT_MODIFIED, text.headers(), headers, guards).into_response();
    }
    (headers, guards, text.response(request_headers)).into_response()
}

/// Returns the tag of a file's content. Weak, since the file may be sent compressed.
fn tag_of(bytes: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(bytes);
    let number = digest.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes));
    // Every character of it is valid there; without a tag, files are always sent.
    HeaderValue::try_from(format!("W/\"{number:032x}\"")).unwrap_or(HeaderValue::from_static(""))
}

/// Returns whether the caller has the file already.
fn has(request_headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let texts =
        request_headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|known| known.trim().as_bytes() == tag.as_bytes())
}

#[cfg(test)]
mod tests;
