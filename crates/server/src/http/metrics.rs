//! Handler of `/metrics`, which Prometheus scrapes.

use axum::response::Response;

use super::Door;
use super::answer::{self, Refusal};
use super::asked::Asked;
use crate::meter::CONTENT_TYPE as PROMETHEUS;

/// Returns all metrics, for callers that may read them.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = OK, description = "OpenMetrics text for Prometheus", body = String, content_type = "application/openmetrics-text")),
)]
pub(super) async fn page(door: Asked<Door>) -> Result<Response, Refusal> {
    let page = door.service.metrics().await?;
    let hold = door.service.hold_bytes(page.len())?;
    Ok(answer::held(PROMETHEUS, page.into_bytes(), hold))
}
