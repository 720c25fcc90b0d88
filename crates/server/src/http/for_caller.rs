//! State of the HTTP handlers, for one caller.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::access::Caller;
use crate::cluster::peers::FORWARDED;
use crate::service::{Route, Service};

/// State that requests of some paths share.
pub(super) trait HasService: Send + Sync + 'static {
    /// Returns the service, without a caller.
    fn service(&self) -> &Service;
}

/// The same state, with the service acting for the caller.
#[derive(Debug)]
pub(super) struct ForCaller<D> {
    pub(super) service: Service,
    shared: Arc<D>,
}

impl<D> Deref for ForCaller<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.shared
    }
}

impl<D: HasService> FromRequestParts<Arc<D>> for ForCaller<D> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<D>) -> Result<Self, Infallible> {
        let shared = Arc::clone(shared);
        // A request without a caller is anonymous.
        let service = match parts.extensions.remove::<Caller>() {
            Some(caller) => shared.service().for_caller(caller),
            None => shared.service().clone(),
        };
        Ok(Self { service, shared })
    }
}

/// Returns the route of a request: a peer's forwarded request goes no further.
pub(super) fn route(headers: &HeaderMap) -> Route {
    if headers.contains_key(FORWARDED) { Route::Here } else { Route::Owner }
}
