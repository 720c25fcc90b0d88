//! State that all requests share, and the forms of their responses.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body_util::{Either, Full};

use super::for_caller::HasService;
use super::openapi::TokenPolicy;
use super::static_text::StaticText;
use crate::access::hosts::Hosts;
use crate::observe::log_line::Issued;
use crate::service::Service;

/// State that all requests share.
#[derive(Debug)]
pub(super) struct HttpState {
    pub(super) service: Service,
    pub(super) hosts: Arc<Hosts>,
    pub(super) body_bytes_max: usize,
    /// Every layout that has a name.
    pub(super) layouts: StaticText,
}

impl HasService for HttpState {
    fn service(&self) -> &Service {
        &self.service
    }
}

impl HttpState {
    /// Returns the callers that the server admits, for the API description.
    pub(super) fn token_policy(&self) -> TokenPolicy {
        match self.service.access() {
            None => TokenPolicy::NotRequired,
            Some(access) => TokenPolicy::Required { but_for_metrics: access.has_open_metrics() },
        }
    }
}

/// Returns the response, with the fields for its log line.
pub(super) fn issued(
    service: &Service,
    mut response: Response,
    source: &str,
    count: u64,
) -> Response {
    if service.live().is_watched() {
        response.extensions_mut().insert(Issued { source: source.to_owned(), count });
    }
    response
}

/// A sent response: complete, or any other.
pub(super) type SentBody = Either<Full<Bytes>, Body>;
