//! Nearly every request is a `GET` of one ID that can be had right now. It is answered where it arrives: without
//! a future, a look at the clock, or looking anything up. Whatever is not so goes the long way.

use axum::body::Bytes;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use snowmint_coord::spec::Kind;
use snowmint_wire::http::{one_id, write_id_lines};

use super::answer::{Form, NO_STORE};
use super::ids::PATH;
use super::{Sent, idempotency};
use crate::access::SITE;
use crate::service::{AtHand, Service};

/// What a connection keeps from one request to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    source: Option<AtHand>,
}

/// An answer that can be had at once, not written yet: hyper keeps and moves what it is given, so that is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce {
    id: u64,
    form: Form,
}

impl Memory {
    /// The answer, if it can be had at once. Its ID is taken.
    pub(super) fn answer<B>(&mut self, service: &Service, request: &Request<B>) -> Option<AtOnce> {
        let uri = request.uri();
        let name = uri.path().strip_prefix(PATH)?;
        // An `Accept`, a token to check, an access log, an `Idempotency-Key`.
        if request.method() != Method::GET
            || uri.query().is_some()
            || service.access().is_some()
            || service.live().logs_access()
        {
            return None;
        }
        let form = form(request.headers())?;
        let id = self.mint(service, name)?;
        service.answered_at_once();
        Some(AtOnce { id, form })
    }

    /// One ID of a source whose IDs are plain numbers.
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
            known.settle();
            return Some(id);
        }
        // It may have been deleted or replaced.
        self.source = None;
        None
    }
}

/// The form that is wanted; none where another line says that the request may be a repeated one, or that a
/// browser sends it, which may do so for a page of another site.
fn form(headers: &HeaderMap) -> Option<Form> {
    let mut form = Form::Json;
    // Nearly nobody sends either line, and all names are looked at for less than one is looked up for.
    for name in headers.keys() {
        if name == idempotency::KEY || name == SITE {
            return None;
        }
        if name == ACCEPT {
            form = Form::wanted(headers);
        }
    }
    Some(form)
}

impl AtOnce {
    pub(super) fn written(self) -> Response<Sent> {
        let body = match self.form {
            Form::Json => one_id(self.id),
            Form::Text => {
                let mut line = Vec::new();
                write_id_lines(&mut line, &[self.id]);
                line
            }
        };
        let mut response = Response::new(Sent::Left(Full::new(Bytes::from(body))));
        let kind = HeaderValue::from_static(self.form.content_type());
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    }
}
