//! Forwarding of requests for a key whose section another server owns.

use axum::body::{Body, to_bytes};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use snowmint_wire::error::Code;
use snowmint_wire::http::ErrorBody;

use super::response;
use crate::cluster::peers::{FORWARDED, response_bytes_max};
use crate::error::{Error, OwnerFailure};
use crate::service::{LocalCall, OwnerCall, Service};

/// A request in its forwarded form.
pub(super) struct ForwardedRequest<'a> {
    pub(super) service: &'a Service,
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Vec<u8>,
    /// Number of IDs in its response.
    pub(super) ids: u64,
}

impl ForwardedRequest<'_> {
    /// Returns the response of the section owner, which `rejection` names; `here` calls this server
    /// once more, since the owner may change meanwhile.
    pub(super) async fn after<'a>(
        &'a self,
        rejection: Error,
        here: &(dyn Fn() -> LocalCall<'a, Response> + Sync),
    ) -> Result<Response, Error> {
        let there = |address: String| -> OwnerCall<'a, _> { Box::pin(self.ask(address)) };
        self.service.ask_owner(rejection, here, &there).await
    }

    async fn ask(&self, address: String) -> Result<Response, OwnerFailure> {
        let address = address.as_str();
        let (peers, accept) = (self.service.peers(), self.headers.get(ACCEPT));
        let (method, body) = (self.method.clone(), self.body.clone());
        let bytes_max = response_bytes_max(self.ids);
        let unsent_permit = self.service.unsent_permit(self.ids)?;
        let _waits = self.service.waits_for(address)?;
        let response = peers.ask(address, method, self.path, accept, body, bytes_max).await;
        let response = response.map_err(|error| peers.not_forwarded(address, &error))?;
        let (head, body) = response.into_parts();
        // The whole body has arrived.
        let body = to_bytes(body, bytes_max).await.unwrap_or_default();
        if head.status != StatusCode::SERVICE_UNAVAILABLE {
            return Ok(response::counted_response(Response::from_parts(head, body), unsent_permit));
        }
        // The peer may have handed over the section, or be about to stop.
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(reported) => Err(Error::reported(reported.error).into()),
            Err(_) => Ok(Response::from_parts(head, Body::from(body))),
        }
    }
}

/// Returns whether to forward the request after this error.
pub(super) fn must_forward(rejection: &Error, headers: &HeaderMap) -> bool {
    rejection.code() == Code::NotOwner && !was_forwarded(headers)
}

/// Returns whether a peer has forwarded the request to this server.
pub(super) fn was_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
}
