//! Texts that do not change while the server runs. Each is stored once, and compressed once, on its
//! first request. A caller that has it already gets 304.
//!
//! An encoder for a client that does not read takes hundreds of times the memory of its output. So
//! responses are never compressed while they are sent: all other texts are sent uncompressed.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::accept::encodings;

const GZIP: &str = "gzip";
/// Cache policy: clients keep the texts and revalidate each before use, so an upgrade shows on the
/// next load.
const CACHED: HeaderValue = HeaderValue::from_static("no-cache");
/// Mark of a tag that names a content, however it is encoded.
const WEAK: &str = "W/";

/// A text that does not change.
#[derive(Debug)]
pub(super) struct StaticText {
    content_type: HeaderValue,
    /// The tag of the content, in quotes.
    tag: String,
    plain: Bytes,
    /// `None` where compression would not shorten it.
    compressed: OnceLock<Option<Bytes>>,
}

impl StaticText {
    pub(super) fn new(content_type: &'static str, plain: Bytes) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self { content_type, tag: tag_of(&plain), plain, compressed: OnceLock::new() }
    }

    /// Returns the text in the preferred encoding, or 304 if the caller has it.
    pub(super) fn response(&self, request_headers: &HeaderMap) -> Response {
        if has(request_headers, &self.tag) {
            return (StatusCode::NOT_MODIFIED, self.headers()).into_response();
        }
        let compressed = takes_gzip(request_headers).then(|| self.compressed()).flatten();
        let is_compressed = compressed.is_some();
        let mut response = Response::new(Body::from(compressed.unwrap_or(&self.plain).clone()));
        response.headers_mut().extend(self.headers());
        if is_compressed {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(GZIP));
        }
        response
    }

    /// Returns the headers of every encoding. The tag is weak, since the text may be sent
    /// compressed.
    fn headers(&self) -> [(HeaderName, HeaderValue); 4] {
        let vary = HeaderValue::from_static("accept-encoding");
        // Every character of it is valid there; without a tag, texts are always sent.
        let tag = HeaderValue::try_from(format!("{WEAK}{}", self.tag));
        let tag = tag.unwrap_or(HeaderValue::from_static(""));
        [
            (CONTENT_TYPE, self.content_type.clone()),
            (VARY, vary),
            (ETAG, tag),
            (CACHE_CONTROL, CACHED),
        ]
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

/// Returns the tag of a content, in quotes.
fn tag_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let number = digest.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes));
    format!("\"{number:032x}\"")
}

/// Returns whether the caller has the content already: `If-None-Match` has its tag, weak or not, or
/// `*` (RFC 9110, 13.1.2).
fn has(request_headers: &HeaderMap, tag: &str) -> bool {
    let texts =
        request_headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim).any(|known| {
        // A comma within another tag splits it, and neither part equals this one.
        known == "*" || known.strip_prefix(WEAK).unwrap_or(known) == tag
    })
}

/// Returns whether a caller accepts gzip, and does not prefer the text uncompressed.
fn takes_gzip(request_headers: &HeaderMap) -> bool {
    let (mut gzip, mut plain) = (0.0, 0.0);
    for (coding, weight) in encodings(request_headers) {
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

    use axum::http::header::ACCEPT_ENCODING;
    use flate2::read::GzDecoder;

    use super::*;

    const TEXT: &str = "one text, one text, one text, one text, one text, one text";

    fn asking(codings: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(codings))])
    }

    #[test]
    fn gzip_needs_an_accept_encoding_header() {
        for codings in
            ["gzip", "GZIP", "br, gzip", "gzip;Q=0.1", "gzip, identity", "*, gzip; q=0.5"]
        {
            assert!(takes_gzip(&asking(codings)), "{codings}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
        for codings in
            ["", "*", "br", "gzip;q=0", "gzip;Q=0", "gzip;q=x", "identity, gzip;q=0.5", "gzipped"]
        {
            assert!(!takes_gzip(&asking(codings)), "{codings}");
        }
    }

    #[test]
    fn tag_is_that_of_the_bytes_in_any_form() {
        let tag = tag_of(b"abc");
        assert_eq!(tag, "\"ba7816bf8f01cfea414140de5dae2223\"");
        assert_ne!(tag_of(b"abd"), tag);
        let matches = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            has(&HeaderMap::from_iter([(IF_NONE_MATCH, value)]), &tag)
        };
        for known in [
            "W/\"ba7816bf8f01cfea414140de5dae2223\"",
            "\"ba7816bf8f01cfea414140de5dae2223\"",
            "\"x\", W/\"ba7816bf8f01cfea414140de5dae2223\"",
            "\"x\",\"ba7816bf8f01cfea414140de5dae2223\" , \"y\"",
            "\"a,b\", \"ba7816bf8f01cfea414140de5dae2223\"",
            "*",
        ] {
            assert!(matches(known), "{known}");
        }
        for other in [
            "",
            "W/\"00\"",
            "\"*\"",
            "ba7816bf8f01cfea414140de5dae2223",
            "w/\"ba7816bf8f01cfea414140de5dae2223\"",
        ] {
            assert!(!matches(other), "{other}");
        }
        assert!(!has(&HeaderMap::new(), &tag));
        // In several lines.
        let lines = ["\"x\"", "\"ba7816bf8f01cfea414140de5dae2223\""];
        let mut request_headers = HeaderMap::new();
        for line in lines {
            request_headers.append(IF_NONE_MATCH, HeaderValue::from_static(line));
        }
        assert!(has(&request_headers, &tag));
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
