//! All paths, and the steps of every request: checks before its body arrives, the body, the
//! response, and its records.

use std::borrow::Cow;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use futures_util::stream;
use h2::Reason;
use hyper::body::{Body as _, Incoming};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode, Version};
use opentelemetry::trace::FutureExt as _;
use snowmint_coord::catalog::check_name;
use snowmint_coord::{Timer, within};
use snowmint_wire::error::Code;
use tower::ServiceExt as _;

use crate::access::Caller;
use crate::clients::tracker::ConnectionGuard;
use crate::error::Error;
use crate::grpc;
use crate::http::id_paths::PATH;
use crate::http::open_paths::{PROBES, is_open};
use crate::http::response::{self, ErrorResponse};
use crate::http::state::HttpState;
use crate::http::{ids, media};
use crate::net::read_deadline_body::{UnreadPermit, UnreadQuota};
use crate::net::tls::ConnectionInfo;
use crate::observe::log_line::LogLine;
use crate::observe::meter::Protocol;
use crate::requests::reading::{Unread, Waiting, WaitingRequests, Whole, check_head};

/// Path prefix of this server's own interface.
const OWN: &str = "/v1/";
/// Path prefix of counter bounds.
const COUNTERS: &str = "/v1/counters/";
/// Path prefix of decoding.
const DECODE: &str = "/v1/decode/";

/// Dispatcher of all paths. There is one: a request takes a reference to it, and copies nothing.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) state: Arc<HttpState>,
    pub(super) grpc: grpc::GrpcState,
    pub(super) router: Router,
    /// Beginnings of the paths of other systems. Some take bodies with any method, and tokens in
    /// bodies.
    pub(super) compat: Vec<&'static str>,
    pub(super) requests: WaitingRequests,
    pub(super) unread: UnreadQuota,
    pub(super) timer: Arc<dyn Timer>,
    /// Longest time of a body.
    pub(super) within_ms: u64,
    /// Longest head.
    pub(super) head_bytes_max: usize,
}

impl Dispatcher {
    /// Counts the response to a request over HTTP/2 for its connection where that has shown no
    /// token. A stream costs little to open, and its response stays in memory until the client
    /// reads it.
    ///
    /// # Errors
    /// When the connection has too many. Nothing was done for the request, and it can be sent
    /// again.
    pub(super) fn count_unread(
        &self,
        request: &Request<Incoming>,
        guard: &Arc<ConnectionGuard>,
        from: &ConnectionInfo,
    ) -> Result<Option<UnreadPermit>, Reason> {
        if request.version() != Version::HTTP_2 || !guard.lacks_token() {
            return Ok(None);
        }
        if let Some(open) = self.unread.acquire(guard) {
            return Ok(Some(open));
        }
        // Requests come together: the first of many with a token may not have been checked yet.
        let caller = from.caller(self.state.service.access(), request.headers());
        caller.is_on(&from.connection);
        if caller.has_a_token() { Ok(None) } else { Err(Reason::REFUSED_STREAM) }
    }

    /// Responds to a request.
    pub(super) fn response(
        self: Arc<Self>,
        request: Request<Incoming>,
        from: ConnectionInfo,
    ) -> BoxFuture<'static, Response> {
        // gRPC counts its own calls.
        if request.version() == Version::HTTP_2
            && grpc::is_call(request.method(), request.headers())
        {
            return Box::pin(async move { self.grpc.response(request, &from).await });
        }
        Box::pin(self.respond_and_record(request, from))
    }

    /// Responds, counts the response, and records it where configured.
    async fn respond_and_record(
        self: Arc<Self>,
        request: Request<Incoming>,
        from: ConnectionInfo,
    ) -> Response {
        let state = &self.state;
        let begun_us = state.service.now_us();
        let live = state.service.live();
        let shown = || format!("{} {}", request.method(), shown_path(request.uri().path()));
        let request_line = live.is_watched().then(shown);
        let span = live.traces().zip(request_line.as_ref()).map(|(traces, line)| {
            traces.begin(Protocol::Http, line.clone(), Some(request.headers()))
        });
        let response = match &span {
            None => self.respond(request, &from).await,
            // Boxed: it exists a second time, for the few servers with spans.
            Some(span) => Box::pin(self.respond(request, &from)).with_context(span.clone()).await,
        };
        let code = response.extensions().get::<Code>();
        if let Some(code) = code {
            state.service.record_error(*code, response.extensions().get());
        }
        state.service.record_responses(1, begun_us);
        if let Some(request_line) = request_line {
            let status = response.status();
            let outcome = match code {
                Some(code) => code.as_str(),
                None if status.is_success() => "ok",
                None => status.as_str(),
            };
            let (protocol, issued) = (Protocol::Http, response.extensions().get());
            let (micros, span) = (state.service.now_us().saturating_sub(begun_us), span.as_ref());
            LogLine {
                protocol,
                request: &request_line,
                issued,
                source: None,
                outcome,
                micros,
                span,
            }
            .log(live);
        }
        response
    }

    /// Reads the body where one is needed, and responds. While it waits, it keeps only the head.
    async fn respond(&self, request: Request<Incoming>, from: &ConnectionInfo) -> Response {
        let caller = match self.check(&request, from) {
            Ok(caller) => caller,
            Err(rejection) => return response::set_no_store(rejection).await,
        };
        if is_get_of_ids(&request) {
            let (head, _) = request.into_parts();
            let response = Box::pin(self.ids(&head, caller.clone()));
            return self.counted(&caller, Waiting::default(), response).await;
        }
        let (request, waiting) = if self.reads_body(&request) {
            match Box::pin(self.read_body(request, &caller)).await {
                Ok(whole) => whole,
                Err(error) => {
                    let rejection = ErrorResponse(error).into_response();
                    return response::set_no_store(rejection).await;
                }
            }
        } else {
            (request.map(|_| Body::empty()), Waiting::default())
        };
        let response = Box::pin(self.route(request, caller.clone()));
        self.counted(&caller, waiting, response).await
    }

    /// Completes a response, which counts toward the limit while it waits.
    async fn counted<F: Future<Output = Response>>(
        &self,
        caller: &Caller,
        waiting: Waiting,
        response: Pin<Box<F>>,
    ) -> Response {
        let response = self.requests.counted(caller, waiting, response).await;
        response::with_details_for(caller, response)
    }

    /// Returns the caller of a request; or the response to one that its head rejects, before its
    /// body arrives.
    #[allow(clippy::result_large_err, reason = "a response is what is sent")]
    fn check(
        &self,
        request: &Request<Incoming>,
        from: &ConnectionInfo,
    ) -> Result<Caller, Response> {
        let hosts = &self.state.hosts;
        let page = |()| if changes(request) { hosts.check_page(request) } else { Ok(()) };
        let refused = |error: Error| ErrorResponse(error).into_response();
        check_head(request, self.head_bytes_max).map_err(|error| {
            let mut response = refused(error);
            *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            response
        })?;
        hosts.check(request).and_then(page).map_err(refused)?;
        let path = request.uri().path();
        let (is_own, is_open) = (path.starts_with(OWN), is_open(path));
        // Other systems' APIs read a body of any method.
        if reads(request.method()) || self.reads_body(request) {
            let media = media::encoding_error(request.headers());
            let form = || is_own.then(|| media::form_error(request.headers())).flatten();
            media.or_else(form).map_or(Ok(()), Err)?;
        }
        let caller = from.caller(self.state.service.access(), request.headers());
        if is_own && (!is_open || self.reads_body(request)) {
            caller.is_on(&from.connection);
            caller.must_be_known().map_err(refused)?;
        }
        if !PROBES.contains(&path) {
            self.requests.check(&caller).map_err(refused)?;
        }
        Ok(caller)
    }

    /// Returns whether a request has a body that matters for the response.
    fn reads_body(&self, request: &Request<Incoming>) -> bool {
        let path = request.uri().path();
        let is_read = if path.starts_with(OWN) {
            reads(request.method())
        } else {
            self.compat.iter().any(|prefix| path.starts_with(prefix))
        };
        is_read && !request.body().is_end_stream()
    }

    /// Returns the request with its whole body, and what it counts for while it waits.
    async fn read_body(
        &self,
        request: Request<Incoming>,
        caller: &Caller,
    ) -> Result<(Request<Body>, Waiting), Error> {
        // Over HTTP/1 the connection has the deadline. The exception is a client that gets `100
        // Continue`, which counts as sent.
        let is_timed =
            request.version() == Version::HTTP_2 || request.headers().contains_key(EXPECT);
        let (head, body) = request.into_parts();
        let bytes_max = self.state.body_bytes_max;
        let reading = self.requests.whole(caller, head.version, body, bytes_max);
        let read = if is_timed {
            let read = within(&*self.timer, self.within_ms, reading).await;
            read.ok_or_else(|| self.late_body_error())?
        } else {
            reading.await
        };
        match read {
            Ok(Whole { bytes, waiting }) => {
                Ok((Request::from_parts(head, Body::from(bytes)), waiting))
            }
            // Other systems have errors of their own: the body fails where it is read.
            Err(Unread::TooLong) => {
                let unread = stream::once(ready(Err::<Bytes, _>("too long")));
                let request = Request::from_parts(head, Body::from_stream(unread));
                Ok((request, Waiting::default()))
            }
            Err(unread) => Err(unread.error(bytes_max)),
        }
    }

    /// Returns the error for a late body.
    fn late_body_error(&self) -> Error {
        let ms = self.within_ms;
        let message = format!(
            "request body not complete after {ms} ms (http.request_time_max); send it sooner"
        );
        Error::new(Code::TooSlow, message)
    }

    /// Responds to a `GET` of IDs without the router, which would take longer than the minting.
    async fn ids(&self, head: &Parts, caller: Caller) -> Response {
        let name = head.uri.path().strip_prefix(PATH).unwrap_or_default();
        let service = self.state.service.for_caller(caller);
        let response = ids::of_source(&service, name, &head.uri, &head.headers).await;
        response::set_no_store(response.into_response()).await
    }

    /// Responds to any other request.
    async fn route(&self, mut request: Request<Body>, caller: Caller) -> Response {
        if grpc::is_call(request.method(), request.headers()) {
            let message = "gRPC needs HTTP/2; use it, or JSON over HTTP/1.1";
            let rejection = ErrorResponse(Error::bad_request(message)).into_response();
            return response::set_no_store(rejection).await;
        }
        request.extensions_mut().insert(caller);
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Returns whether a request asks for IDs and has no body that is read.
fn is_get_of_ids(request: &Request<Incoming>) -> bool {
    let name = request.uri().path().strip_prefix(PATH);
    request.method() == Method::GET && name.is_some_and(|name| check_name("source", name).is_ok())
}

/// Returns whether a body may come with this method.
const fn reads(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Returns whether a request does more than read: a `GET` of IDs does, since it spends them.
fn changes(request: &Request<Incoming>) -> bool {
    match *request.method() {
        Method::HEAD | Method::OPTIONS => false,
        Method::GET => request.uri().path().starts_with(PATH),
        _ => true,
    }
}

/// Returns a path without the key of a counter, which may be a person's name, as queries may have
/// one. It omits an ID, too, since IDs are too many to group requests by.
fn shown_path(path: &str) -> Cow<'_, str> {
    if path.starts_with(DECODE) {
        return Cow::Owned(format!("{DECODE}{{id}}"));
    }
    let source = path.strip_prefix(COUNTERS).and_then(|rest| rest.split('/').next());
    let shown = source.and_then(|source| path.get(..COUNTERS.len() + source.len()));
    Cow::Borrowed(shown.unwrap_or(path))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_log_has_no_keys_and_no_ids() {
        for (path, shown) in [
            ("/v1/counters/messages/alice", "/v1/counters/messages"),
            ("/v1/counters/", "/v1/counters/"),
            ("/v1/ids/orders", "/v1/ids/orders"),
            ("/v1/decode/9034592834", "/v1/decode/{id}"),
            ("/v1/decode/", "/v1/decode/{id}"),
            ("/v1/decode", "/v1/decode"),
        ] {
            assert_eq!(super::shown_path(path), shown, "{path}");
        }
    }
}
