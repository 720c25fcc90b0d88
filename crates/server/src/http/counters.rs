//! Handlers of `/v1/counters/{source}/{key}`.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use snowmint_wire::http::{CounterBody, number_in};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{JsonBody, PathPart};
use super::for_caller::{ForCaller, route};
use super::response::{self, ErrorResponse, ResponseFormat};
use super::state::HttpState;
use crate::error::{Error, shown};

/// Returns the paths of these handlers.
pub(super) fn routes() -> OpenApiRouter<Arc<HttpState>> {
    OpenApiRouter::new().routes(routes!(bound)).routes(routes!(raise))
}

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
    PathPart((source, key)): PathPart<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let bound = state.service.bound_of(&source, &key, route(&headers)).await?;
    Ok(match ResponseFormat::wanted(&headers) {
        ResponseFormat::Json => response::json(&CounterBody { bound: bound.to_string() }),
        ResponseFormat::Text => format!("{bound}\n").into_response(),
    })
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
    PathPart((source, key)): PathPart<(String, String)>,
    headers: HeaderMap,
    JsonBody(CounterBody { bound }): JsonBody<CounterBody>,
) -> Result<Response, ErrorResponse> {
    let highest = number_in(&bound).ok_or_else(|| {
        let bound = shown(&bound);
        Error::bad_request(format!("bound {bound} is not a whole number of at least 0; correct it"))
    })?;
    state.service.raise(&source, &key, highest, route(&headers)).await?;
    Ok(response::json(&CounterBody { bound }))
}
