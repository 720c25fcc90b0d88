//! Nearly every request is a `GET` of one ID that can be had right now. It is answered where it arrives: without
//! a future, a look at the clock, or looking anything up. Whatever is not so goes the long way.

use axum::body::Bytes;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use snowmint_coord::spec::Kind;
use snowmint_core::text::Format;
use snowmint_wire::http::{write_id_lines, write_ids};

use super::answer::{Form, NO_STORE};
use super::idempotency;
use super::ids::PATH;
use crate::service::{AtHand, Service};

/// What a connection keeps from one request to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    source: Option<AtHand>,
    /// Where answers are put together.
    room: Vec<u8>,
}

impl Memory {
    /// The answer, if it can be had at once.
    pub(super) fn answer<B>(
        &mut self,
        service: &Service,
        request: &Request<B>,
    ) -> Option<Response<Full<Bytes>>> {
        let (uri, headers) = (request.uri(), request.headers());
        let name = uri.path().strip_prefix(PATH)?;
        // A wish, somebody who must be asked who he is, a line in the log, a repeated request.
        if request.method() != Method::GET
            || uri.query().is_some()
            || service.access().is_some()
            || service.live().logs_access()
            || headers.contains_key(idempotency::KEY)
        {
            return None;
        }
        let id = self.mint(service, name)?;
        service.answered_at_once();
        Some(self.written(id, headers))
    }

    /// One ID of a source whose IDs are plain numbers.
    fn mint(&mut self, service: &Service, name: &str) -> Option<u64> {
        if self.source.as_ref().is_none_or(|known| known.name() != name) {
            self.source = service.known(name);
        }
        let known = self.source.as_mut()?;
        let source = known.source();
        let is_plain = matches!(source.kind(), Kind::Snowflake | Kind::Segment)
            && source.format() == Format::default();
        if is_plain && let Ok(id) = source.try_mint() {
            known.issued();
            known.settle();
            return Some(id);
        }
        // It may have been deleted or replaced.
        self.source = None;
        None
    }

    fn written(&mut self, id: u64, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let form = Form::wanted(headers);
        self.room.clear();
        match form {
            Form::Json => write_ids(&mut self.room, &[id], true),
            Form::Text => write_id_lines(&mut self.room, &[id]),
        }
        let mut response = Response::new(Full::new(Bytes::copy_from_slice(&self.room)));
        let kind = HeaderValue::from_static(form.content_type());
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    }
}
