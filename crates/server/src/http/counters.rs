//! `/v1/counters/{source}/{key}`.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Response};
use snowmint_wire::http::CounterBody;

use super::Door;
use super::answer::{self, Form, Refusal};
use super::asked::Asked;
use super::forward::or_refuse;
use crate::service::{Error, shown};

/// The bound of a counter, taking nothing.
#[utoipa::path(
    get,
    path = "/v1/counters/{source}/{key}",
    tag = "IDs",
    params(("source" = String, Path, description = "The name of a source"), ("key" = String, Path, description = "The key")),
    responses((status = OK, description = "The highest number that anybody may have been answered", content((CounterBody = "application/json"), (String = "text/plain")))),
)]
pub(super) async fn bound(
    door: Asked<Door>,
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (source, key) = answer::part(path)?;
    let bound = match door.service.counted(&source, &key).await {
        Ok(bound) => bound,
        Err(error) => {
            let path = uri.path();
            let peers = door.service.peers();
            let passed = or_refuse(peers, error, Method::GET, path, &headers, Vec::new());
            return Ok(passed.await?);
        }
    };
    Ok(match Form::wanted(&headers) {
        Form::Json => answer::json(&CounterBody { bound: bound.to_string() }),
        Form::Text => format!("{bound}\n").into_response(),
    })
}

/// Makes every later number of a counter greater than one that is told.
#[utoipa::path(
    put,
    path = "/v1/counters/{source}/{key}",
    tag = "IDs",
    params(("source" = String, Path, description = "The name of a source"), ("key" = String, Path, description = "The key")),
    request_body = CounterBody,
    responses((status = OK, description = "Every later number is greater", body = CounterBody)),
)]
pub(super) async fn raise(
    door: Asked<Door>,
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let (source, key) = answer::part(path)?;
    let bytes = answer::bytes(body, door.body_bytes_max).await?;
    let CounterBody { bound } = answer::parsed(&bytes)?;
    let highest = bound.parse().map_err(|_| {
        Error::bad_request(format!("bound: {} is no whole number of at least 0", shown(&bound)))
    })?;
    match door.service.raise(&source, &key, highest).await {
        Ok(()) => Ok(answer::json(&CounterBody { bound })),
        Err(error) => {
            let peers = door.service.peers();
            let passed = or_refuse(peers, error, Method::PUT, uri.path(), &headers, bytes.to_vec());
            Ok(passed.await?)
        }
    }
}
