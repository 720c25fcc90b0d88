//! The gRPC adapter: on the port of HTTP, for calls over HTTP/2.

mod admin;
mod caller;
mod health;
mod long;
mod mint;
mod parts;
mod reflection;
mod response_body;
mod status;
mod store;
mod stream;

use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};
use axum::response::Response;
use hyper::body::Incoming;
use opentelemetry::trace::FutureExt as _;
use snowmint_coord::{Store, Timer, within};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::mint_server::MintServer;
use snowmint_wire::grpc::store::store_server::StoreServer;
use tokio::sync::watch;
use tonic::Status;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::pb::v1::server_reflection_server::ServerReflectionServer;
use tower::ServiceExt as _;

use crate::access::Caller;
use crate::access::hosts::Hosts;
use crate::config::HttpSettings;
use crate::error::{Error, shown};
use crate::net::shutdown::stopping;
use crate::net::tls::ConnectionInfo;
use crate::observe::log_line::LogLine;
use crate::observe::meter::Protocol;
use crate::requests::quota::QuotaPermit;
use crate::requests::reading::{WaitingRequests, Whole, check_head};
use crate::service::{Service, SharedTurn};
use long::LongCalls;
use mint::MintService;
use reflection::Reflection;
use response_body::{BodyPermit, ResponseBody};
use store::{MESSAGE_BYTES_MAX, StoreService};

/// Reflection service, by which tools list the services. They hold the call open for any time.
const REFLECTION: &str = "/grpc.reflection.";
/// Its call, and that of its draft, which older tools know only: their messages are the same.
const REFLECTION_CALL: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const DRAFT_CALL: &str = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

/// Prefix of our own services, and their calls without a secret, which need no token; calls of
/// `grpc.health.v1` and reflection need none either.
const OWN: &str = "/snowmint.";
const OPEN: [&str; 2] = [LAYOUTS, LAYOUT];
const LAYOUTS: &str = "/snowmint.v1.Mint/ListLayouts";
const LAYOUT: &str = "/snowmint.v1.Mint/GetLayout";
/// Open calls with small responses.
const SMALL: [&str; 2] = [LAYOUT, "/grpc.health.v1.Health/Check"];
/// Length of the prefix of each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// State that all calls share.
#[derive(Clone, Debug)]
pub(crate) struct GrpcState {
    service: Service,
    hosts: Arc<Hosts>,
    requests: WaitingRequests,
    long: LongCalls,
    health: health::Health,
    routes: Router,
    bytes_max: usize,
    head_bytes_max: usize,
    timer: Arc<dyn Timer>,
    closing: watch::Receiver<bool>,
    /// Longest time of a call until its response begins.
    within_ms: u64,
}

/// Returns whether a request is a gRPC call, in any encoding.
pub(crate) fn is_call(method: &Method, headers: &HeaderMap) -> bool {
    if method != Method::POST {
        return false;
    }
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let rest = kind.strip_prefix(b"application/grpc");
    // `application/grpc-web` is another protocol.
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

impl GrpcState {
    /// Creates the adapter. `offered`: the store for embedded clients, if the server offers one.
    ///
    /// # Errors
    /// When the description of the service cannot be read, which a test would have found; without
    /// randomness.
    pub(crate) fn new(
        service: Service,
        offered: Option<Arc<dyn Store>>,
        (hosts, requests): (Arc<Hosts>, WaitingRequests),
        (settings, machines_max): (&HttpSettings, u64),
        timer: Arc<dyn Timer>,
    ) -> io::Result<Self> {
        let bytes_max = settings.body_bytes_max;
        let mint = MintService::new(service.clone());
        let offers = offered.is_some();
        let long = LongCalls::new(service.access().is_some());
        let (clock, calls) = (Arc::clone(&timer), long.clone());
        let health = health::Health::new(service.clone(), offers, clock, settings, calls);
        let reflection = Reflection::new(offers).map_err(io::Error::other)?;
        let mut routes = Routes::new(MintServer::new(mint).max_decoding_message_size(bytes_max));
        if let Some(store) = offered {
            let store_service = StoreService::new(store, service.clone(), machines_max)
                .map_err(io::Error::other)?;
            let bytes_max = bytes_max.max(MESSAGE_BYTES_MAX);
            routes = routes
                .add_service(StoreServer::new(store_service).max_decoding_message_size(bytes_max));
        }
        let routes = routes
            .add_service(HealthServer::new(health.clone()).max_decoding_message_size(bytes_max))
            .add_service(
                ServerReflectionServer::new(reflection).max_decoding_message_size(bytes_max),
            )
            .prepare()
            .into_axum_router();
        let closing = service.closing().clone();
        let within_ms = settings.request_time_max.ms();
        Ok(Self {
            service,
            hosts,
            requests,
            long,
            health,
            routes,
            bytes_max,
            head_bytes_max: settings.head_bytes_max,
            timer,
            closing,
            within_ms,
        })
    }

    /// Reads the readiness for watches, forever.
    pub(crate) fn looking(&self) -> impl Future<Output = ()> + use<> {
        self.health.looking()
    }

    /// Responds to a call, and counts it. A stream counts when it begins.
    pub(crate) async fn response(
        &self,
        mut request: Request<Incoming>,
        from: &ConnectionInfo,
    ) -> Response {
        let caller = from.caller(self.service.access(), request.headers());
        let path = request.uri().path();
        let program = store::is_store_call(path).then(|| (caller.clone(), path.to_owned()));
        request.extensions_mut().insert(caller);
        let begun_us = self.service.now_us();
        let live = self.service.live();
        let request_line = live.is_watched().then(|| request.uri().path().to_owned());
        let span = live.traces().zip(request_line.as_ref()).map(|(traces, line)| {
            let method = line.trim_start_matches('/').to_owned();
            traces.begin(Protocol::Grpc, method, Some(request.headers()))
        });
        let response = match &span {
            None => self.respond(request).await,
            Some(span) => Box::pin(self.respond(request)).with_context(span.clone()).await,
        };
        let code = status::error_code(response.headers());
        if let Some(code) = code {
            self.service.record_error(code, status::cause(&response));
            if let Some((caller, method)) = program {
                let reason = status::message(response.headers());
                self.service.for_caller(caller).audit_client_rejection(
                    snowmint_store_rpc::verb_of(&method),
                    code,
                    &reason,
                );
            }
        }
        self.service.record_responses(1, begun_us);
        if let Some(request_line) = request_line {
            let (protocol, issued) = (Protocol::Grpc, response.extensions().get());
            let outcome = code.map_or("ok", Code::as_str);
            let (micros, span) = (self.service.now_us().saturating_sub(begun_us), span.as_ref());
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

    /// Rejects calls whose message need not be read.
    fn check(&self, request: &Request<Incoming>) -> Result<(), Error> {
        check_head(request, self.head_bytes_max)?;
        self.hosts.check(request)?;
        self.hosts.check_page(request)?;
        check_encoding(request.headers())?;
        let caller = self.caller(request);
        let path = request.uri().path();
        if path.starts_with(OWN) && !OPEN.contains(&path) {
            // Each call checks a right of its own, by the content of its message.
            if let Some(connection) = caller.connection() {
                caller.is_on(connection);
            }
            caller.must_be_known()?;
        }
        self.requests.check(caller)
    }

    /// Returns the caller; a request without one is anonymous.
    fn caller<'a, T>(&'a self, request: &'a Request<T>) -> &'a Caller {
        request.extensions().get().unwrap_or(self.service.caller())
    }

    /// Returns the library's response to a call whose only message is read before; reflection reads
    /// many.
    async fn call(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<(Response, Option<QuotaPermit>), Error> {
        let caller = self.caller(&request).clone();
        let path = request.uri().path();
        if path.starts_with(REFLECTION) {
            let permit = self.long.begin(&caller)?;
            if path == DRAFT_CALL {
                *request.uri_mut() = Uri::from_static(REFLECTION_CALL);
            }
            let response = self.routed(request.map(Body::new)).await;
            return Ok((response, Some(permit)));
        }
        let is_store = store::is_store_call(path);
        // Its response is long, and needs no token.
        let long = (path == LAYOUTS).then(|| self.long.begin(&caller)).transpose()?;
        let bytes_max =
            if is_store { self.bytes_max.max(MESSAGE_BYTES_MAX) } else { self.bytes_max };
        let (mut head, body) = request.into_parts();
        let whole_max = bytes_max.saturating_add(PREFIX_BYTES);
        let read = self.requests.whole(&caller, Version::HTTP_2, body, whole_max).await;
        let Whole { bytes, waiting } = read.map_err(|unread| unread.error(bytes_max))?;
        let work = Box::pin(async {
            // Each of these calls is one of a store.
            let mut turn = SharedTurn::default();
            if is_store {
                let message = bytes.get(PREFIX_BYTES..).unwrap_or_default();
                let target = store::target_of(&head, message);
                let service = self.service.for_caller(caller.clone());
                turn = SharedTurn::new(service.turn_at(target).await?);
                head.extensions.insert(turn.clone());
            }
            let _turn = turn;
            Ok::<_, Error>(self.routed(Request::from_parts(head, Body::from(bytes))).await)
        });
        let response = self.requests.counted(&caller, waiting, work).await?;
        Ok((response, long))
    }

    async fn routed(&self, request: Request<Body>) -> Response {
        match self.routes.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Returns the error for a call that takes too long.
    fn late_error(&self) -> Error {
        let ms = self.within_ms;
        let message = format!("call exceeded {ms} ms (http.request_time_max); ask for less");
        Error::new(Code::TooSlow, message)
    }

    async fn respond(&self, request: Request<Incoming>) -> Response {
        if let Err(error) = self.check(&request) {
            return Status::from(error).into_http();
        }
        let path = request.uri().path().to_owned();
        let in_full = self.caller(&request).sees_details();
        // Pinned here: the future is large, and is not copied.
        let calling = pin!(self.call(request));
        let called = within(&*self.timer, self.within_ms, calling).await;
        let called = called.unwrap_or_else(|| Err(self.late_error()));
        let (mut response, permit) = match called {
            Ok((response, permit)) if SMALL.contains(&path.as_str()) => {
                (response_body::copied(status::normalized(&path, response, in_full)).await, permit)
            }
            Ok((response, permit)) => (status::normalized(&path, response, in_full), permit),
            Err(error) => {
                let error = if in_full { error.in_full() } else { error };
                (Status::from(error).into_http(), None)
            }
        };
        let body_permit = response.extensions_mut().remove::<BodyPermit>();
        if let Some(kind) = body_permit.as_ref().and_then(BodyPermit::counts) {
            response.extensions_mut().insert(kind);
        }
        let ends = path.starts_with(REFLECTION).then(|| {
            let mut closing = self.closing.clone();
            async move { stopping(&mut closing).await }
        });
        response.map(|body| Body::new(ResponseBody::new(body, (body_permit, permit), ends)))
    }
}

/// Rejects messages in other encodings than the one that all clients have.
fn check_encoding(headers: &HeaderMap) -> Result<(), Error> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/grpc" | "application/grpc+proto" => Ok(()),
        _ => {
            let kind = shown(kind);
            let message = format!("content type {kind} is wrong; send application/grpc+proto");
            Err(Error::new(Code::Unsupported, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_is_recognised_by_its_content_type() {
        let is = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            is_call(&Method::POST, &headers)
        };
        assert!(!is_call(&Method::POST, &HeaderMap::new()));
        for call in ["application/grpc", "application/grpc+proto", "application/grpc;x=y"] {
            assert!(is(call), "{call}");
        }
        for other in ["application/json", "application/grpc-web+proto", "application/grpcs", ""] {
            assert!(!is(other), "{other}");
        }
    }
}
