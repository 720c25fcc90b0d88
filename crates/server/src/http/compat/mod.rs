//! Compatibility APIs: HTTP interfaces of other systems, whose clients move by a change of address.
//!
//! Each API responds like its system where clients look: paths, parameters, bodies, codes, errors.
//! A system may return 0 or nothing for a failure; here its error takes the place: a response
//! without an error has exactly the requested content.

mod common;
mod cosid;
mod leaf;
mod params;
mod tinyid;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use super::response;
use crate::access::hosts::Hosts;
use crate::config::{CompatSettings, HttpSettings};
use crate::service::Service;

/// Paths of every enabled API.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) router: Router,
    /// Beginnings of these paths. Some take bodies with any method, and tokens in bodies.
    pub(crate) prefixes: Vec<&'static str>,
}

/// Returns the paths of every enabled API.
pub(crate) fn paths(
    service: &Service,
    hosts: &Arc<Hosts>,
    settings: &CompatSettings,
    http: &HttpSettings,
) -> Result<Paths, String> {
    settings.check()?;
    let body_bytes_max = http.body_bytes_max;
    let (mut router, mut prefixes) = (Router::new(), Vec::new());
    if settings.leaf.enabled {
        router = router.merge(leaf::routes(service.clone(), &settings.leaf, body_bytes_max)?);
        prefixes.extend(leaf::PREFIXES);
    }
    if settings.tinyid.enabled {
        router = router.merge(tinyid::routes(service.clone(), &settings.tinyid, body_bytes_max));
        prefixes.extend(tinyid::PREFIXES);
    }
    if settings.cosid.enabled {
        router = router.merge(cosid::routes(service.clone(), &settings.cosid, body_bytes_max));
        prefixes.extend(cosid::PREFIXES);
    }
    // Nearly all of these paths issue IDs, by any method.
    let own = from_fn_with_state(Arc::clone(hosts), own_pages_only);
    let router = if router.has_routes() { router.route_layer(own) } else { router };
    Ok(Paths { router, prefixes })
}

async fn own_pages_only(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match hosts.check_page(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => response::ErrorResponse(error).into_response(),
    }
}
