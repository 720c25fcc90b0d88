//! Common parts of every response, and error responses.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use mediatype::names;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;
use snowmint_coord::lock;
use snowmint_wire::error::Code;
use snowmint_wire::http::{ErrorBody, JSON, OwnerInfo, TEXT};

use super::accept::{Offer, preferred};
use crate::access::Caller;
use crate::error::{Error, SectionOwner, shown};
use crate::net::read_deadline_body::{BodyKind, keeping};
use crate::requests::reading::Unread;
use crate::service::{UnsentPermit, invalid};

/// An error response.
#[derive(Debug)]
pub(crate) struct ErrorResponse(pub(crate) Error);

impl<E: Into<Error>> From<E> for ErrorResponse {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status = StatusCode::from_u16(error.code().row().http)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after_ms = error.retry_after_ms();
        let owner = |owner: &SectionOwner| (owner.section, owner.advertised_addrs.to_string());
        let owner = error.owner().map(owner);
        error_response(&error, |message| {
            let mut body = ErrorBody::new(error.code(), message, retry_after_ms);
            body.error.owner =
                owner.clone().map(|(section, address)| OwnerInfo { section, address });
            json_as(status, JSON, &body)
        })
    }
}

/// Body of an error response with the detail, for callers that may read it.
#[derive(Clone)]
struct InFull(Arc<Mutex<Option<Body>>>);

/// Returns the error response that `write` makes of a message, with the records for the metrics and
/// the log. It names the scheme that a 401 requires, and the time until a retry may succeed, if that
/// is known. [`with_details_for`] gives it its detail, since a response knows no caller.
pub(super) fn error_response(error: &Error, write: impl Fn(&str) -> Response) -> Response {
    let mut response = write(error.message());
    let extensions = response.extensions_mut();
    extensions.insert(error.code());
    if let Some(cause) = error.cause() {
        extensions.insert(cause.clone());
    }
    if error.detail().is_some() {
        let body = write(&error.full_message()).into_body();
        extensions.insert(InFull(Arc::new(Mutex::new(Some(body)))));
    }
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(ms) = error.retry_after_ms() {
        // The header has whole seconds only.
        let seconds = HeaderValue::from(ms.div_ceil(1_000).max(1));
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// Returns the response for its caller: an error gets its detail, if the caller may read it.
pub(crate) fn with_details_for(caller: &Caller, mut response: Response) -> Response {
    let Some(InFull(body)) = response.extensions_mut().remove::<InFull>() else { return response };
    if !caller.sees_details() {
        return response;
    }
    let Some(body) = lock(&body).take() else { return response };
    // The router has set the length of the sentence alone.
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|_| body)
}

/// Returns a body as JSON.
pub(super) fn json(body: &impl Serialize) -> Response {
    json_as(StatusCode::OK, JSON, body)
}

/// Returns a body as JSON, with this status and content type.
pub(super) fn json_as(
    status: StatusCode,
    content_type: &'static str,
    body: &impl Serialize,
) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, [(CONTENT_TYPE, content_type)], bytes).into_response(),
        // Plain data with text keys always becomes JSON.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Returns a list, which counts toward the limit of unsent IDs by its rows.
pub(super) fn list(unsent_permit: UnsentPermit, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => counted_bytes(JSON, bytes, unsent_permit),
        // Plain data, as in `json`.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Bytes of a response that are handed over at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Returns bytes that count toward the limit of unsent IDs until they are sent.
pub(super) fn counted_bytes(
    content_type: &'static str,
    bytes: Vec<u8>,
    unsent_permit: UnsentPermit,
) -> Response {
    let counts = unsent_permit.counts().then_some(BodyKind::Whole);
    let bytes = Bytes::from(bytes);
    let unsent = if unsent_permit.is_nothing() { bytes } else { keeping(bytes, unsent_permit) };
    let mut response = Response::new(Body::new(ChunkedBody { unsent }));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(counts) = counts {
        response.extensions_mut().insert(counts);
    }
    response
}

/// A body in pieces: hyper polls for one when it has room.
struct ChunkedBody {
    unsent: Bytes,
}

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.unsent.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.unsent.len().min(CHUNK_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.unsent.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.unsent.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.unsent.len()).unwrap_or(u64::MAX))
    }
}

/// Cache policy: an ID must never come out of a cache, and neither must anything with it. Files
/// that never contain one set a policy of their own.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub(crate) async fn set_no_store(mut response: Response) -> Response {
    response.headers_mut().entry(CACHE_CONTROL).or_insert(NO_STORE);
    response
}

pub(super) async fn no_such_path(uri: Uri) -> ErrorResponse {
    let message = format!("path {} does not exist; correct it", shown(uri.path()));
    ErrorResponse(Error::new(Code::NotFound, message))
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> ErrorResponse {
    let (path, method) = (shown(uri.path()), shown(method.as_str()));
    let message = format!("path {path} does not support method {method}; use one in header Allow");
    ErrorResponse(Error::new(Code::MethodNotAllowed, message))
}

/// Parses a query that has the expected fields and no others: a misspelt one must not go unnoticed.
/// Invalid UTF-8 would be read as another text, the same for many.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, ErrorResponse> {
    let text = uri.query().unwrap_or_default();
    if percent_decode_str(text).decode_utf8().is_err() {
        let message = format!("query {} is not UTF-8; write it as UTF-8", shown(text));
        return Err(ErrorResponse(Error::bad_request(message)));
    }
    axum::extract::Query::try_from_uri(uri).map(|axum::extract::Query(query)| query).map_err(
        |rejected| {
            let cause = rejected.source().map(ToString::to_string);
            ErrorResponse(invalid::query(&cause.unwrap_or_else(|| rejected.body_text())))
        },
    )
}

/// Returns a whole body. It has arrived, unless it exceeds the limit: then it fails.
pub(super) async fn bytes(body: Body, bytes_max: usize) -> Result<Bytes, ErrorResponse> {
    let bytes = axum::body::to_bytes(body, bytes_max).await;
    bytes.map_err(|_| ErrorResponse(Unread::TooLong.error(bytes_max)))
}

/// Parses a JSON object. Any content type is accepted but those of a form.
pub(super) fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ErrorResponse> {
    // The parser would also accept an array of the fields' values.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ErrorResponse(Error::bad_request(
            "request body is not a JSON object; send one",
        )));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| ErrorResponse(invalid::json("request body", &error)))
}

/// Forms of IDs in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFormat {
    Json,
    Text,
}

impl ResponseFormat {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Text => TEXT,
        }
    }

    /// Returns `Text` if the caller prefers it to JSON.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        const OFFERS: [(Offer, ResponseFormat); 2] = [
            (Offer::new(names::APPLICATION, names::JSON), ResponseFormat::Json),
            (Offer::new(names::TEXT, names::PLAIN), ResponseFormat::Text),
        ];
        preferred(headers, &OFFERS).unwrap_or(Self::Json)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::ACCEPT;

    use super::*;

    #[tokio::test]
    async fn detail_is_in_the_body_of_operators_alone() {
        let caller = |sees: bool| match sees {
            true => Caller::unrestricted(),
            false => Caller::peer(),
        };
        for (sees, message) in [(false, "MySQL is away"), (true, "MySQL is away (at db:1)")] {
            let error = Error::new(Code::Unavailable, "MySQL is away").with_detail("at db:1");
            let response = with_details_for(&caller(sees), ErrorResponse(error).into_response());
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.extensions().get(), Some(&Code::Unavailable));
            let body = axum::body::to_bytes(response.into_body(), 9_999).await.unwrap();
            let body: ErrorBody = serde_json::from_slice(&body).unwrap();
            assert_eq!(body.error.message, message);
        }
    }

    #[test]
    fn accept_header_selects_the_response_format() {
        let wanted = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            ResponseFormat::wanted(&headers)
        };
        assert_eq!(ResponseFormat::wanted(&HeaderMap::new()), ResponseFormat::Json);
        for accept in [
            "*/*",
            "application/json",
            "text/html,*/*;q=0.8",
            "text/plain;q=0.5, application/json",
            "text/plain;q=0.5, */*",
            "application/json, text/plain, */*",
            "text/*, application/*",
            "text/*;q=0.9, application/json;q=0.9",
            "text/plain;q=0.1, text/*, application/json;q=0.2",
            "image/png",
            "text/html",
            "text/plain;q=0",
            "text/plain;q=x",
        ] {
            assert_eq!(wanted(accept), ResponseFormat::Json, "{accept}");
        }
        for accept in [
            "text/plain",
            "TEXT/Plain; charset=utf-8",
            "application/json;q=0.5, text/plain",
            "text/*",
            "Text/*;q=0.2",
            "text/*, */*;q=0.1",
            "text/*, application/json;Q=0.9",
            "application/json;q=0, */*",
            "*/*;q=0.5, text/plain;q=0.6",
            "text/plain, */*",
        ] {
            assert_eq!(wanted(accept), ResponseFormat::Text, "{accept}");
        }
    }
}
