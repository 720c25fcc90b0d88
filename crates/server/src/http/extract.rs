//! Parts of a request that are arguments of handlers.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::response::{self, ErrorResponse};
use super::state::HttpState;
use crate::service::invalid;

/// The variable part of a path; several as a tuple.
pub(super) struct PathPart<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathPart<T> {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(part)) => Ok(Self(part)),
            Err(_) => Err(ErrorResponse(invalid::path())),
        }
    }
}

/// The value of a body in JSON.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<HttpState>> for JsonBody<T> {
    type Rejection = ErrorResponse;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<Self, ErrorResponse> {
        let body = response::bytes(request.into_body(), state.body_bytes_max).await?;
        response::parsed(&body).map(Self)
    }
}
