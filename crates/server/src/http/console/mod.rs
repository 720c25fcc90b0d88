//! The console: the page at `/`, and the files that it loads. The server serves the files of the
//! folder `console/` of this package unchanged: nothing is built or loaded from other sites. They
//! contain no secret, so they need no token; the page calls the server like any other client. The
//! folder `uplot` in it has the library that draws its charts, as its authors published it.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::routing::get;

use super::state::HttpState;
use super::static_text::StaticText;

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
const TEXT: &str = "text/plain; charset=utf-8";

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
    "chart.js": SCRIPT,
    "cluster.js": SCRIPT,
    "confirm.js": SCRIPT,
    "copy.js": SCRIPT,
    "counters.js": SCRIPT,
    "decode.js": SCRIPT,
    "define.js": SCRIPT,
    "design.js": SCRIPT,
    "design_facts.js": SCRIPT,
    "designer.js": SCRIPT,
    "dom.js": SCRIPT,
    "drawing.js": SCRIPT,
    "grants.js": SCRIPT,
    "keys.js": SCRIPT,
    "layouts.js": SCRIPT,
    "members.js": SCRIPT,
    "metrics.js": SCRIPT,
    "mint.js": SCRIPT,
    "plan.js": SCRIPT,
    "pools.js": SCRIPT,
    "reading.js": SCRIPT,
    "ring.js": SCRIPT,
    "server.js": SCRIPT,
    "slots.js": SCRIPT,
    "source.js": SCRIPT,
    "sources.js": SCRIPT,
    "time.js": SCRIPT,
    "timeline.js": SCRIPT,
    "token.js": SCRIPT,
    "values.js": SCRIPT,
    "workers.js": SCRIPT,
    "zones.js": SCRIPT,
    "uplot/LICENSE": TEXT,
    "uplot/uPlot.iife.min.js": SCRIPT,
    "uplot/uPlot.min.css": CSS,
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
        let text = Arc::new(StaticText::new(file.content_type, Bytes::from_static(file.bytes)));
        let response = move |headers: HeaderMap| ready((guards(POLICY), text.response(&headers)));
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

#[cfg(test)]
mod tests;
