//! Requests for a key that another server answers for: passed on to it, once.

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use crate::peers::{PASSED_ON, Peers};
use crate::service::Error;

/// The answer of the server that owns the key, if the refusal names one that speaks HTTP and the
/// request was not passed on before; else the refusal.
pub(super) async fn or_refuse(
    peers: &Peers,
    refusal: Error,
    method: Method,
    path: &str,
    headers: &HeaderMap,
    body: Vec<u8>,
) -> Result<Response, Error> {
    let address = refusal.elsewhere().and_then(|elsewhere| elsewhere.reach.http.as_deref());
    let Some(address) = address.filter(|_| !was_passed_on(headers)) else {
        return Err(refusal);
    };
    let answer =
        peers.ask(address, method, path, headers.get(ACCEPT), body, peers.answer_bytes_max());
    answer.await.map_err(|why| {
        tracing::warn!(%address, why, "a request could not be passed on");
        peers.not_reached(format!("{refusal}; it could not be reached"))
    })
}

/// Whether another server has passed the request on to us.
pub(super) fn was_passed_on(headers: &HeaderMap) -> bool {
    headers.contains_key(PASSED_ON)
}
