//! Texts that stay as they are while the server runs. Each is kept once, and compressed once, when it is first asked
//! for.
//!
//! An encoder takes hundreds of times more memory than what it says to a client that does not read. So nothing is
//! compressed on its way: what is not here is sent as it is.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::answer::weighted;

const GZIP: &str = "gzip";

/// A text that stays as it is.
#[derive(Debug)]
pub(super) struct Fixed {
    content_type: HeaderValue,
    plain: Bytes,
    /// None where that would be no shorter.
    pressed: OnceLock<Option<Bytes>>,
}

impl Fixed {
    pub(super) const fn new(content_type: &'static str, plain: Bytes) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self { content_type, plain, pressed: OnceLock::new() }
    }

    /// The text, in the encoding that is wanted.
    pub(super) fn answer(&self, asked: &HeaderMap) -> Response {
        let pressed = takes_gzip(asked).then(|| self.pressed()).flatten();
        let is_pressed = pressed.is_some();
        let mut response = Response::new(Body::from(pressed.unwrap_or(&self.plain).clone()));
        response.headers_mut().extend(self.headers());
        if is_pressed {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(GZIP));
        }
        response
    }

    /// What is said of it in every encoding.
    pub(super) fn headers(&self) -> [(HeaderName, HeaderValue); 2] {
        let vary = HeaderValue::from_static("accept-encoding");
        [(CONTENT_TYPE, self.content_type.clone()), (VARY, vary)]
    }

    fn pressed(&self) -> Option<&Bytes> {
        let press = || {
            let pressed = pressed(&self.plain).ok()?;
            (pressed.len() < self.plain.len()).then(|| pressed.into())
        };
        self.pressed.get_or_init(press).as_ref()
    }
}

fn pressed(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

/// Whether a caller names gzip, and would not rather have the text as it is.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let (mut gzip, mut plain) = (0.0, 0.0);
    for (coding, weight) in weighted(asked, ACCEPT_ENCODING) {
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
    fn gzip_is_for_those_who_name_it() {
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
        let fixed = Fixed::new("text/plain", Bytes::from_static(TEXT.as_bytes()));
        let first = fixed.pressed().unwrap().clone();
        assert_eq!(fixed.pressed().unwrap().as_ptr(), first.as_ptr());
        let mut text = String::new();
        GzDecoder::new(&first[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, TEXT);
        // It would be longer.
        let short = Fixed::new("text/plain", Bytes::from_static(b"one"));
        assert!(short.answer(&asking(GZIP)).headers().get(CONTENT_ENCODING).is_none());
    }

    #[test]
    fn every_encoding_says_by_what_it_was_chosen() {
        let fixed = Fixed::new("text/plain", Bytes::from_static(TEXT.as_bytes()));
        for (codings, told) in [("", None), ("gzip", Some("gzip"))] {
            let response = fixed.answer(&asking(codings));
            let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap());
            assert_eq!(header(CONTENT_ENCODING), told);
            assert_eq!(header(VARY), Some("accept-encoding"));
            assert_eq!(header(CONTENT_TYPE), Some("text/plain"));
        }
    }
}
