//! Accepted bodies: JSON, uncompressed.

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use snowmint_wire::error::Code;

use super::response::ErrorResponse;
use crate::error::{Error, shown};

/// Types that a page of any site can have a browser send without a prior check; `fetch` calls these
/// "CORS-safelisted".
const OF_FORMS: [&str; 3] =
    ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Returns the error response for a body with the media type of a form.
pub(crate) fn form_error(headers: &HeaderMap) -> Option<Response> {
    let kind = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes());
    let bare = kind.split(';').next().unwrap_or_default().trim();
    OF_FORMS.iter().find(|form| form.eq_ignore_ascii_case(bare))?;
    let message = format!(
        "Content-Type {} is not read; send Content-Type: application/json (curl -H \"Content-Type: \
         application/json\" -d ...)",
        shown(bare)
    );
    Some(ErrorResponse(Error::new(Code::UnsupportedMediaType, message)).into_response())
}

/// Returns the error response for an encoded body, such as gzip. No encoding is accepted (RFC 9110,
/// 12.5.3 and 15.5.16).
pub(crate) fn encoding_error(headers: &HeaderMap) -> Option<Response> {
    let is_plain = |encoding: &HeaderValue| {
        let encoding = encoding.as_bytes().trim_ascii();
        encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity")
    };
    let encodings = headers.get_all(CONTENT_ENCODING);
    let encoding = encodings.iter().find(|&encoding| !is_plain(encoding))?;
    let encoding = shown(&String::from_utf8_lossy(encoding.as_bytes()));
    let message = format!("Content-Encoding {encoding} is not read; send the body without one");
    let response = ErrorResponse(Error::new(Code::UnsupportedMediaType, message));
    Some(([(ACCEPT_ENCODING, "identity")], response).into_response())
}
