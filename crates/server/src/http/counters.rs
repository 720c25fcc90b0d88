//! Handlers of `/v1/counters/{source}/{key}`.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Response};
use snowmint_wire::http::{CounterBody, number_in};

use super::for_caller::ForCaller;
use super::forward::{ForwardedRequest, must_forward};
use super::response::{self, ErrorResponse, ResponseFormat};
use super::state::HttpState;
use crate::error::{Error, shown};
use crate::service::LocalCall;

/// Returns the bound of a counter, taking nothing.
#[utoipa::path(
    get,
    path = "/v1/counters/{source}/{key}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source"), ("key" = String, Path, description = "Key of a counter")),
    responses((status = OK, description = "The highest number that the key may have returned", content((CounterBody = "application/json"), (String = "text/plain")))),
)]
pub(super) async fn bound(
    state: ForCaller<HttpState>,
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let (source, key) = response::path_part(path)?;
    let service = &state.service;
    let shown = |bound: u64| match ResponseFormat::wanted(&headers) {
        ResponseFormat::Json => response::json(&CounterBody { bound: bound.to_string() }),
        ResponseFormat::Text => format!("{bound}\n").into_response(),
    };
    let rejection = match service.bound_of(&source, &key).await.map(shown) {
        Err(rejection) if must_forward(&rejection, &headers) => rejection,
        result => return Ok(result?),
    };
    let (source, key) = (source.as_str(), key.as_str());
    let here = || -> LocalCall<'_, _> {
        Box::pin(async move { service.local_bound_of(source, key).await.map(shown) })
    };
    let (method, path, body) = (Method::GET, uri.path(), Vec::new());
    let forwarded = ForwardedRequest { service, method, path, headers: &headers, body, ids: 0 };
    Ok(forwarded.after(rejection, &here).await?)
}

/// Makes every later number of a counter greater than the given bound.
#[utoipa::path(
    put,
    path = "/v1/counters/{source}/{key}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source"), ("key" = String, Path, description = "Key of a counter")),
    request_body = CounterBody,
    responses((status = OK, description = "Every later number is greater", body = CounterBody)),
)]
pub(super) async fn raise(
    state: ForCaller<HttpState>,
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let (source, key) = response::path_part(path)?;
    let bytes = response::bytes(body, state.body_bytes_max).await?;
    let CounterBody { bound } = response::parsed(&bytes)?;
    let highest = number_in(&bound).ok_or_else(|| {
        let bound = shown(&bound);
        Error::bad_request(format!("bound {bound} is not a whole number of at least 0; correct it"))
    })?;
    let service = &state.service;
    let shown = |()| response::json(&CounterBody { bound: bound.clone() });
    let rejection = match service.raise(&source, &key, highest).await.map(shown) {
        Err(rejection) if must_forward(&rejection, &headers) => rejection,
        result => return Ok(result?),
    };
    let (source, key, shown) = (source.as_str(), key.as_str(), &shown);
    let is_here = AtomicBool::new(false);
    let handled_here = &is_here;
    let here = || -> LocalCall<'_, _> {
        Box::pin(async move {
            let raised = service.raise_here(source, key, highest).await;
            handled_here.store(raised.is_ok(), Ordering::Relaxed);
            raised.map(shown)
        })
    };
    let (method, path, body) = (Method::PUT, uri.path(), bytes.to_vec());
    let forwarded = ForwardedRequest { service, method, path, headers: &headers, body, ids: 0 };
    let result = forwarded.after(rejection, &here).await;
    if !is_here.load(Ordering::Relaxed) {
        service.audit_owner_raise(source, highest, result.as_ref().map(Response::status));
    }
    Ok(result?)
}
