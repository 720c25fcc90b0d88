//! The HTTP adapter.

mod accept;
mod admin;
pub(crate) mod bodies;
pub(crate) mod compat;
mod console;
mod counters;
pub(crate) mod decoded;
mod extract;
pub(crate) mod fast_response;
mod for_caller;
mod health;
pub(crate) mod id_paths;
pub(crate) mod ids;
pub(crate) mod media;
mod metrics;
pub(crate) mod open_paths;
mod openapi;
pub(crate) mod response;
mod servers;
pub(crate) mod state;
mod static_text;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::routing::{MethodRouter, post};

use crate::cluster::remote_peer::{CHANGED_PATH, MEMBERS_PATH};
use id_paths::id_methods;
use state::HttpState;

/// Returns the router of every path. `compat` has the paths of other systems, in their formats.
pub(crate) fn router(state: Arc<HttpState>, compat: Router) -> Router {
    let (described, about) = openapi::described().split_for_parts();
    described
        .route("/v1/ids/{source}", id_methods(MethodRouter::new(), "GET,POST"))
        .route(CHANGED_PATH, post(admin::changed))
        .route(MEMBERS_PATH, post(admin::members_changed))
        .merge(openapi::pages(&about, state.token_policy()))
        .merge(console::pages())
        .merge(compat.with_state(()))
        .fallback(response::no_such_path)
        .method_not_allowed_fallback(response::no_such_method)
        .layer(map_response(response::set_no_store))
        .layer(DefaultBodyLimit::disable())
        .with_state(state)
}
