//! State that all requests share, and the forms of their responses.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body_util::{Either, Full};
use snowmint_wire::http::JSON;

use super::bodies::layouts_body;
use super::for_caller::HasService;
use super::openapi::TokenPolicy;
use super::static_text::StaticText;
use crate::access::hosts::Hosts;
use crate::observe::log_line::Issued;
use crate::service::Service;

/// State that all requests share.
#[derive(Debug)]
pub(crate) struct HttpState {
    pub(crate) service: Service,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) body_bytes_max: usize,
    /// Every layout that has a name.
    pub(super) layouts: StaticText,
}

impl HasService for HttpState {
    fn service(&self) -> &Service {
        &self.service
    }
}

impl HttpState {
    pub(crate) fn new(service: Service, hosts: Arc<Hosts>, body_bytes_max: usize) -> Self {
        // Plain data always becomes JSON.
        let layouts = serde_json::to_vec(&layouts_body()).unwrap_or_default();
        let layouts = StaticText::new(JSON, layouts.into());
        Self { service, hosts, body_bytes_max, layouts }
    }

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
pub(crate) type SentBody = Either<Full<Bytes>, Body>;
