//! Texts that do not change while the server runs. Each is stored once, and compressed once, on its
//! first request.
//!
//! An encoder for a client that does not read takes hundreds of times the memory of its output. So
//! responses are never compressed while they are sent: all other texts are sent uncompressed.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::response::weighted;

const GZIP: &str = "gzip";

/// A text that does not change.
#[derive(Debug)]
pub(super) struct StaticText {
    content_type: HeaderValue,
    plain: Bytes,
    /// `None` where compression would not shorten it.
    compressed: OnceLock<Option<Bytes>>,
}

impl StaticText {
    pub(super) const fn new(content_type: &'static str, plain: Bytes) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self { content_type, plain, compressed: OnceLock::new() }
    }

    /// Returns the text, in the preferred encoding.
    pub(super) fn response(&self, request_headers: &HeaderMap) -> Response {
        let compressed = takes_gzip(request_headers).then(|| self.compressed()).flatten();
        let is_compressed = compressed.is_some();
        let mut response = Response::new(Body::from(compressed.unwrap_or(&self.plain).clone()));
        response.headers_mut().extend(self.headers());
        if is_compressed {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(GZIP));
        }
        response
    }

    /// Returns the headers of every encoding.
    pub(super) fn headers(&self) -> [(HeaderName, HeaderValue); 2] {
        let vary = HeaderValue::from_static("accept-encoding");
        [(CONTENT_TYPE, self.content_type.clone()), (VARY, vary)]
    }

    fn compressed(&self) -> Option<&Bytes> {
        let compress = || {
            let compressed = compressed(&self.plain).ok()?;
            (compressed.len() < self.plain.len()).then(|| compressed.into())
        };
        self.compressed.get_or_init(compress).as_ref()
    }
}

fn compressed(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Returns whether a caller accepts gzip, and does not prefer the text uncompressed.
fn takes_gzip(request_headers: &HeaderMap) -> bool {
    let (mut gzip, mut plain) = (0.0, 0.0);
    for (coding, weight) in weighted(request_headers, ACCEPT_ENCODING) {
        if coding.eq_ignore_ascii_case(GZIP) {
            gzip = weight;
        } else if coding.eq_ignore_ascii_case("identity") {
            plain = weight;
        }
    }
    gzip > 0.0 && gzip >= plain
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    const TEXT: &str = "one text, one text, one text, one text, one text, one text";

    fn asking(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(codings))])
    }

    #[test]
    fn gzip_needs_an_accept_encoding_header() {
        for codings in
            ["gzip", "GZIP", "br, gzip", "gzip;q=0.1", "gzip, identity", "*, gzip; q=0.5"]
        {
            assert!(takes_gzip(&asking(codings)), "{codings}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
        for codings in ["", "*", "br", "gzip;q=0", "gzip;q=x", "identity, gzip;q=0.5", "gzipped"] {
            assert!(!takes_gzip(&asking(codings)), "{codings}");
        }
    }

    #[test]
    fn text_is_compressed_once_for_all() {
        let static_text = StaticText::new("text/plain", Bytes::from_static(TEXT.as_bytes()));
        let first = static_text.compressed().unwrap().clone();
        assert_eq!(static_text.compressed().unwrap().as_ptr(), first.as_ptr());
        let mut text = String::new();
        GzDecoder::new(&first[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, TEXT);
        // It would be longer.
        let short = StaticText::new("text/plain", Bytes::from_static(b"one"));
        assert!(short.response(&asking(GZIP)).headers().get(CONTENT_ENCODING).is_none());
    }

    #[test]
    fn every_encoding_sends_vary() {
        let static_text = StaticText::new("text/plain", Bytes::from_static(TEXT.as_bytes()));
        for (codings, expected) in [("", None), ("gzip", Some("gzip"))] {
            let response = static_text.response(&asking(codings));
            let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap());
            assert_eq!(header(CONTENT_ENCODING), expected);
            assert_eq!(header(VARY), Some("accept-encoding"));
            assert_eq!(header(CONTENT_TYPE), Some("text/plain"));
        }
    }
}
