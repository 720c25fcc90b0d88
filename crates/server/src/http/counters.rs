//! Handlers of `/v1/counters/{source}/{key}`.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Response};
use snowmint_wire::http::{CounterBody, number_in};

use super::Door;
use super::answer::{self, Form, Refusal};
use super::asked::Asked;
use super::forward::{Passed, is_to_pass_on};
use crate::service::{ByOwner, Error, shown};

/// Returns the bound of a counter, taking nothing.
#[utoipa::path(
    get,
    path = "/v1/counters/{source}/{key}",
    tag = "IDs",
    params(("source" = String, Path, description = "Name of a source"), ("key" = String, Path, description = "Key of a counter")),
    responses((status = OK, description = "The highest number that the key may have returned", content((CounterBody = "application/json"), (String = "text/plain")))),
)]
pub(super) async fn bound(
    door: Asked<Door>,
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (source, key) = answer::part(path)?;
    let service = &door.service;
    let shown = |bound: u64| match Form::wanted(&headers) {
        Form::Json => answer::json(&CounterBody { bound: bound.to_string() }),
        Form::Text => format!("{bound}\n").into_response(),
    };
    let refusal = match service.counted(&source, &key).await.map(shown) {
        Err(refusal) if is_to_pass_on(&refusal, &headers) => refusal,
        answer => return Ok(answer?),
    };
    let (source, key) = (source.as_str(), key.as_str());
    let here = || -> ByOwner<'_, _> {
        Box::pin(async move { service.counted_here(source, key).await.map(shown) })
    };
    let (method, path, body) = (Method::GET, uri.path(), Vec::new());
    let passed = Passed { service, method, path, headers: &headers, body, ids: 0 };
    Ok(passed.after(refusal, &here).await?)
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
    door: Asked<Door>,
    path: Result<Path<(String, String)>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let (source, key) = answer::part(path)?;
    let bytes = answer::bytes(body, door.body_bytes_max).await?;
    let CounterBody { bound } = answer::parsed(&bytes)?;
    let highest = number_in(&bound).ok_or_else(|| {
        let bound = shown(&bound);
        Error::bad_request(format!("bound {bound} is not a whole number of at least 0; correct it"))
    })?;
    let service = &door.service;
    let shown = |()| answer::json(&CounterBody { bound: bound.clone() });
    let refusal = match service.raise(&source, &key, highest).await.map(shown) {
        Err(refusal) if is_to_pass_on(&refusal, &headers) => refusal,
        answer => return Ok(answer?),
    };
    let (source, key, shown) = (source.as_str(), key.as_str(), &shown);
    let is_here = AtomicBool::new(false);
    let asked_here = &is_here;
    let here = || -> ByOwner<'_, _> {
        Box::pin(async move {
            let raised = service.raise_here(source, key, highest).await;
            asked_here.store(raised.is_ok(), Ordering::Relaxed);
            raised.map(shown)
        })
    };
    let (method, path, body) = (Method::PUT, uri.path(), bytes.to_vec());
    let passed = Passed { service, method, path, headers: &headers, body, ids: 0 };
    let answer = passed.after(refusal, &here).await;
    if !is_here.load(Ordering::Relaxed) {
        service.raised_by_owner(source, highest, answer.as_ref().map(Response::status));
    }
    Ok(answer?)
}
