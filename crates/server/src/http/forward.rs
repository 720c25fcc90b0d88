//! Forwarding of requests for a key whose section another server owns.

use axum::body::{Body, to_bytes};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use snowmint_wire::error::Code;
use snowmint_wire::http::ErrorBody;

use super::answer;
use crate::peers::{PASSED_ON, answer_bytes_max};
use crate::service::{ByOwner, Error, FromOwner, Service, Unanswered};

/// A request in its forwarded form.
pub(super) struct Passed<'a> {
    pub(super) service: &'a Service,
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Vec<u8>,
    /// Number of IDs in its response.
    pub(super) ids: u64,
}

impl Passed<'_> {
    /// Returns the response of the section owner, which `refusal` names; `here` calls this server
    /// once more, since the owner may change meanwhile.
    pub(super) async fn after<'a>(
        &'a self,
        refusal: Error,
        here: &(dyn Fn() -> ByOwner<'a, Response> + Sync),
    ) -> Result<Response, Error> {
        let there = |address: String| -> FromOwner<'a, _> { Box::pin(self.ask(address)) };
        self.service.ask_owner(refusal, here, &there).await
    }

    async fn ask(&self, address: String) -> Result<Response, Unanswered> {
        let address = address.as_str();
        let (peers, accept) = (self.service.peers(), self.headers.get(ACCEPT));
        let (method, body) = (self.method.clone(), self.body.clone());
        let bytes_max = answer_bytes_max(self.ids);
        let hold = self.service.hold(self.ids)?;
        let _waits = self.service.waits_for(address)?;
        let answer = peers.ask(address, method, self.path, accept, body, bytes_max).await;
        let answer = answer.map_err(|why| peers.not_passed_on(address, &why))?;
        let (head, body) = answer.into_parts();
        // The whole body has arrived.
        let body = to_bytes(body, bytes_max).await.unwrap_or_default();
        if head.status != StatusCode::SERVICE_UNAVAILABLE {
            return Ok(answer::kept(Response::from_parts(head, body), hold));
        }
        // The peer may have handed over the section, or be about to stop.
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(said) => Err(Error::said(said.error).into()),
            Err(_) => Ok(Response::from_parts(head, Body::from(body))),
        }
    }
}

/// Returns whether to forward the request after this error.
pub(super) fn is_to_pass_on(refusal: &Error, headers: &HeaderMap) -> bool {
    refusal.code() == Code::NotOwner && !was_passed_on(headers)
}

/// Returns whether a peer has forwarded the request to this server.
pub(super) fn was_passed_on(headers: &HeaderMap) -> bool {
    headers.contains_key(PASSED_ON)
}
