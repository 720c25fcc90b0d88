//! `/metrics`: what Prometheus collects.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::Door;
use super::answer::Refusal;
use super::asked::Asked;
use crate::meter::CONTENT_TYPE as PROMETHEUS;

/// Everything that is counted, for callers that may see it.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = OK, description = "In the form of Prometheus", body = String, content_type = "application/openmetrics-text")),
)]
pub(super) async fn page(door: Asked<Door>) -> Result<Response, Refusal> {
    let page = door.service.metrics().await?;
    Ok(([(CONTENT_TYPE, PROMETHEUS)], page).into_response())
}
