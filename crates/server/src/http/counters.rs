//! `/v1/counters/{source}/{key}`.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Response};
use snowmint_wire::http::CounterBody;

use super::Door;
use super::answer::{self, Form, Refusal};
use super::asked::Asked;
use super::forward::or_refuse;

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
