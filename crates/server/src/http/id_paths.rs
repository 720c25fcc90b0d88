//! Paths that take IDs.

use axum::http::header::ALLOW;
use axum::http::{Method, Uri};
use axum::routing::MethodRouter;

use super::response;

/// Path prefix of requests for IDs; the name of the source follows.
pub(crate) const PATH: &str = "/v1/ids/";

/// Returns the methods of a path that takes IDs. `HEAD` would take one and throw it away, so it is
/// rejected like all others but those in `allowed`; the router by itself would list it among them.
pub(super) fn id_methods<S: Clone + Send + Sync + 'static>(
    methods: MethodRouter<S>,
    allowed: &'static str,
) -> MethodRouter<S> {
    let refuse = move |method: Method, uri: Uri| async move {
        ([(ALLOW, allowed)], response::no_such_method(method, uri).await)
    };
    methods.head(refuse).fallback(refuse)
}
