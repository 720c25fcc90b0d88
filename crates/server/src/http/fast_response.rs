//! The fast path: nearly every request is a `GET` of one ID that can be minted immediately. It gets
//! its response on arrival, without a future, timing, or any lookup. Every other request
//! takes the general path.

use axum::body::Bytes;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderValue, Method, Request, Response, Version};
use http_body_util::Full;
use snowmint_coord::spec::Kind;
use snowmint_wire::http::{one_id, write_id_lines};

use super::id_paths::PATH;
use super::response::{NO_STORE, ResponseFormat};
use super::state::{HttpState, SentBody};
use crate::access::SITE;
use crate::access::hosts::Hosts;
use crate::service::{CachedSource, Service};

/// State that a connection keeps from one request to the next.
#[derive(Debug, Default)]
pub(crate) struct FastPath {
    source: Option<CachedSource>,
    /// Last host that was named and is served, as the next request names the same; empty before the
    /// first.
    host: Vec<u8>,
}

/// An immediate response, not written yet: hyper keeps and moves this value, so it is small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastResponse {
    id: u64,
    format: ResponseFormat,
}

impl FastPath {
    /// Returns the response, if it can be immediate. Its ID is taken.
    pub(crate) fn response<B>(
        &mut self,
        state: &HttpState,
        request: &Request<B>,
    ) -> Option<FastResponse> {
        let service = &state.service;
        let uri = request.uri();
        let name = uri.path().strip_prefix(PATH)?;
        // A token needs a check, an access log a line, and traces a span.
        if request.method() != Method::GET
            || uri.query().is_some()
            || service.access().is_some()
            || service.live().is_watched()
        {
            return None;
        }
        let FastRequest { format, host } = fast_request(request)?;
        self.check_host(&state.hosts, host)?;
        let id = self.mint(service, name)?;
        service.record_fast_response();
        Some(FastResponse { id, format })
    }

    fn check_host(&mut self, hosts: &Hosts, host: &[u8]) -> Option<()> {
        if self.host.is_empty() || self.host != host {
            hosts.serves(host).then_some(())?;
            self.host.clear();
            self.host.extend_from_slice(host);
        }
        Some(())
    }

    /// Mints one ID of a source whose IDs are plain numbers.
    fn mint(&mut self, service: &Service, name: &str) -> Option<u64> {
        if self.source.as_ref().is_none_or(|known| known.name() != name) {
            self.source = service.known(name);
        }
        let known = self.source.as_mut()?;
        let source = known.source();
        let is_plain =
            matches!(source.kind(), Kind::Snowflake | Kind::Segment) && source.is_decimal();
        if is_plain && let Ok(id) = source.try_mint() {
            known.issued();
            known.count_issued();
            return Some(id);
        }
        // The source may have been deleted or replaced.
        self.source = None;
        None
    }
}

/// Relevant parts of a request's head.
struct FastRequest<'a> {
    format: ResponseFormat,
    host: &'a [u8],
}

/// Reads the head; `None` if a header shows a browser, which may call for a page of another site,
/// or if the request names no host or several.
fn fast_request<B>(request: &Request<B>) -> Option<FastRequest<'_>> {
    let mut format = ResponseFormat::Json;
    let mut host = request.uri().authority().map(|target| target.as_str().as_bytes());
    // RFC 9112, 3.2: HTTP/1.1 needs `Host` also with an absolute target.
    if host.is_some() && request.version() == Version::HTTP_11 {
        return None;
    }
    // Rarely any of these but `Host` is present, and one pass over all names is cheaper than one
    // lookup.
    for (name, value) in request.headers() {
        if name == HOST && host.replace(value.as_bytes()).is_some() {
            return None;
        }
        if name == SITE || name == ORIGIN {
            return None;
        }
        if name == ACCEPT {
            format = ResponseFormat::wanted(request.headers());
        }
    }
    Some(FastRequest { format, host: host? })
}

impl FastResponse {
    pub(crate) fn written(self) -> Response<SentBody> {
        let body = match self.format {
            ResponseFormat::Json => one_id(self.id),
            ResponseFormat::Text => {
                let mut line = Vec::new();
                write_id_lines(&mut line, &[self.id]);
                line
            }
        };
        let mut response = Response::new(SentBody::Left(Full::new(Bytes::from(body))));
        let kind = HeaderValue::from_static(self.format.content_type());
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    }
}
