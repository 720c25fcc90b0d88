//! Handlers for liveness and readiness.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use snowmint_core::Rfc3339;
use snowmint_wire::http::ReadyBody;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::for_caller::ForCaller;
use super::response;
use super::state::HttpState;

/// Returns the paths of these handlers.
pub(super) fn routes() -> OpenApiRouter<Arc<HttpState>> {
    OpenApiRouter::new().routes(routes!(livez)).routes(routes!(readyz))
}

/// Responds while the process runs, and checks nothing else.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "health",
    responses((status = OK, description = "The process responds", body = Object)),
)]
pub(super) async fn livez() -> Response {
    response::json(&json!({ "live": true }))
}

/// Returns 200 when IDs of the server's own sources can be minted with margin, else 503 and the
/// reasons. Own sources are those of the configuration, and the built-in ones. Only callers with
/// some right get sentences, which name sources and stores.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = OK, description = "The server can mint", body = ReadyBody),
        (status = SERVICE_UNAVAILABLE, description = "The server cannot mint, with the reasons", body = ReadyBody),
    ),
)]
pub(super) async fn readyz(state: ForCaller<HttpState>) -> Response {
    let readiness = state.service.readiness();
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let without_store_until = readiness.without_store_until.map(|until| Rfc3339(until).to_string());
    let codes = readiness.reasons.iter().map(|reason| reason.code.to_owned()).collect();
    let reasons = state.service.reasons_for_caller(&readiness);
    let not_minting = state.service.not_minting_for_caller();
    let ready = readiness.ready;
    let body = ReadyBody { ready, reasons, codes, not_minting, without_store_until };
    (status, response::json(&body)).into_response()
}
