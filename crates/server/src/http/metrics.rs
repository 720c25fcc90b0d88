//! Handler of `/metrics`, which Prometheus scrapes.

use axum::response::Response;

use super::for_caller::ForCaller;
use super::response::{self, ErrorResponse};
use super::state::HttpState;
use crate::observe::meter::CONTENT_TYPE as PROMETHEUS;

/// Returns all metrics, for callers that may read them.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = OK, description = "OpenMetrics text for Prometheus", body = String, content_type = "application/openmetrics-text")),
)]
pub(super) async fn page(state: ForCaller<HttpState>) -> Result<Response, ErrorResponse> {
    let page = state.service.metrics().await?;
    let unsent_permit = state.service.hold_bytes(page.len())?;
    Ok(response::counted_bytes(PROMETHEUS, page.into_bytes(), unsent_permit))
}
