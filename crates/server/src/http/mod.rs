//! The HTTP adapter.

mod admin;
mod answer;
mod asked;
mod at_once;
pub(crate) mod compat;
mod console;
mod counters;
mod fixed;
mod forward;
mod health;
mod ids;
mod media;
mod metrics;
mod openapi;
mod owing;
mod pages;
mod stream;

use std::cell::RefCell;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, post};
use futures_util::FutureExt as _;
use futures_util::future::Either;
use h2::Reason;
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use snowmint_wire::error::Code;
use snowmint_wire::http::JSON;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::accept::{self, Surroundings, stopping};
use crate::config::{HEAD_BYTES_MIN, HttpSettings};
use crate::grpc;
use crate::hosts::Hosts;
use crate::log_line::Issued;
use crate::reading::Requests;
use crate::roster::{Places, Roster, Ticket, Why};
use crate::service::{CHANGED_PATH, Error, Service, layouts_body};
use crate::tls::{Opening, Peer, Side};
use answer::Refusal;
use asked::Shared;
use at_once::{AtOnce, Memory};
use fixed::Fixed;
use owing::{AllOpen, Open, Owing};
pub(crate) use owing::{Counts, keeping};
use pages::Pages;
use stream::Watched;

/// Most requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// Most bytes that a request over HTTP/2 may send before it is read, and all of a connection
/// together.
const UNREAD_BYTES_MAX: u32 = 64 * 1024;
const ALL_UNREAD_BYTES_MAX: u32 = 256 * 1024;
/// Most bytes of a response over HTTP/2 that are held until the socket takes them.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Response to a connection beyond the limit, regardless of its request.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
content-type: application/json\r\n\
cache-control: no-store\r\n\
retry-after: 1\r\n\
connection: close\r\n\
content-length: 124\r\n\
\r\n\
{\"error\":{\"code\":\"overloaded\",\"message\":\"open connections reached http.connections_max; retry later\",\"retry_after_ms\":1000}}";

/// State that all requests share.
#[derive(Debug)]
struct Door {
    service: Service,
    hosts: Arc<Hosts>,
    body_bytes_max: usize,
    /// Every layout that has a name.
    layouts: Fixed,
}

impl Shared for Door {
    fn service(&self) -> &Service {
        &self.service
    }
}

impl Door {
    /// Returns the callers that the server admits, for the API description.
    fn asks(&self) -> openapi::Asks {
        match self.service.access() {
            None => openapi::Asks::Nobody,
            Some(access) => openapi::Asks::ForTokens { but_for_metrics: access.has_open_metrics() },
        }
    }
}

/// Returns the response, with the fields for its log line.
fn issued(service: &Service, mut response: Response, source: &str, count: u64) -> Response {
    if service.live().is_watched() {
        response.extensions_mut().insert(Issued { source: source.to_owned(), count });
    }
    response
}

/// A sent response: complete, or any other.
type Sent = http_body_util::Either<Full<Bytes>, Body>;

/// Serves HTTP, and gRPC with it, until the server stops.
pub(crate) async fn serve(
    listener: TcpListener,
    (service, grpc): (Service, grpc::Door),
    requests: Requests,
    settings: HttpSettings,
    (hosts, compat): (Arc<Hosts>, compat::Paths),
    surroundings: Surroundings,
) {
    let places = Places {
        max: settings.connections_max,
        key: "http.connections_max",
        token_within_ms: service.access().map(|_| settings.auth_time_max.ms()),
    };
    let roster = Roster::new(places, Arc::clone(&surroundings.timer));
    service.watch(&roster);
    // Plain data always becomes JSON.
    let layouts = serde_json::to_vec(&layouts_body()).unwrap_or_default();
    let layouts = Fixed::new(JSON, layouts.into());
    let door = Door { service, hosts, body_bytes_max: settings.body_bytes_max, layouts };
    let door = Arc::new(door);
    let compat::Paths { router: compat, prefixes } = compat;
    let router = router(Arc::clone(&door), compat);
    let (timer, within_ms) = (Arc::clone(&surroundings.timer), settings.request_time_max.ms());
    let all_open = AllOpen::new();
    let pages =
        Pages { door, grpc, router, compat: prefixes, requests, all_open, timer, within_ms };
    let pages = Arc::new(pages);
    let builder = Arc::new(builder(&settings));
    let settings = Arc::new(settings);
    let closing = surroundings.closing.clone();
    let opening = Opening::new(surroundings.tls.as_ref(), Side::Http);
    accept::serve(listener, roster, surroundings, opening.refusal(REFUSAL), |stream, ticket| {
        converse(
            (stream, opening.clone()),
            Arc::new(ticket),
            Arc::clone(&builder),
            Arc::clone(&settings),
            Arc::clone(&pages),
            closing.clone(),
        )
    })
    .await;
}

fn builder(settings: &HttpSettings) -> auto::Builder<TokioExecutor> {
    let head_bytes_max = settings.head_bytes_max.max(HEAD_BYTES_MIN.into());
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // At most 100 header lines: with a number of ours hyper would take memory for them at each
    // request.
    builder.http1().max_buf_size(head_bytes_max);
    builder
        .http2()
        .max_concurrent_streams(STREAMS_MAX)
        // A client with that many calls may cancel them all at once; one that cancels more is cut
        // off.
        .max_pending_accept_reset_streams(usize::try_from(STREAMS_MAX).ok())
        .initial_stream_window_size(UNREAD_BYTES_MAX)
        .initial_connection_window_size(ALL_UNREAD_BYTES_MAX)
        .max_send_buf_size(UNSENT_BYTES_MAX)
        .max_header_list_size(u32::try_from(head_bytes_max).unwrap_or(u32::MAX));
    builder
}

/// Returns the router of every path. `compat` has the paths of other systems, in their formats.
fn router(door: Arc<Door>, compat: Router) -> Router {
    let (described, about) = openapi::described().split_for_parts();
    described
        .route("/v1/ids/{source}", ids::taking(MethodRouter::new(), "GET,POST"))
        .route(CHANGED_PATH, post(admin::changed))
        .merge(openapi::pages(&about, door.asks()))
        .merge(console::pages())
        .merge(compat.with_state(()))
        .fallback(answer::no_such_path)
        .method_not_allowed_fallback(answer::no_such_method)
        .layer(map_response(answer::never_stored))
        .layer(DefaultBodyLimit::disable())
        .with_state(door)
}

/// Serves one connection, until a stop or until others need its place, and then the requests in
/// progress. Two events move its deadline: a request's head is complete, bytes were sent. Received
/// bytes move nothing, so that a trickle keeps no connection open. Responses that count toward the
/// limit of unsent IDs have deadlines of their own.
async fn converse(
    (stream, opening): (TcpStream, Opening),
    ticket: Arc<Ticket>,
    builder: Arc<auto::Builder<TokioExecutor>>,
    settings: Arc<HttpSettings>,
    pages: Arc<Pages>,
    mut closing: watch::Receiver<bool>,
) {
    ticket.allow_ms(settings.head_time_max.ms());
    let peer = ticket.entry().peer;
    let Some(stream) = opening.open(stream, peer, &mut closing).await else { return };
    let (request_ms, idle_ms) = (settings.request_time_max.ms(), settings.idle_max.ms());
    let from = Peer { connection: Arc::clone(ticket.entry()), names: stream.names() };
    let on_request = Arc::clone(&ticket);
    let on_end = Arc::clone(&ticket);
    let memory = RefCell::new(Memory::default());
    let service = service_fn(move |request: Request<Incoming>| {
        on_request.answered(1);
        on_request.allow_ms(request_ms);
        let now = |answer| Either::Left(async move { told(answer) });
        let at_once = memory.borrow_mut().answer(&pages.door, &request);
        if let Some(at_once) = at_once {
            return now(Ok(at_once));
        }
        let open = match pages.opens(&request, &on_request, &from) {
            Ok(open) => open,
            Err(refused) => return now(Err(refused)),
        };
        let ticket = Arc::clone(&on_request);
        let busy = Arc::clone(&ticket).works(request.body().is_end_stream());
        let (pages, from) = (Arc::clone(&pages), from.clone());
        // Only when it is polled: many requests come at once, and most memory is a response's.
        let answer = async move {
            match from.connection.asked_to_leave() {
                Some(Why::Refused) => dismissal(),
                _ => pages.answer(request, from).await,
            }
        };
        let sent = move |response: Response| {
            if is_refusal(&response) {
                ticket.refused();
            }
            let kept = (response.extensions().get().copied(), open);
            let response = response.map(|body| Sent::Right(owed(body, kept, ticket, idle_ms)));
            drop(busy);
            Ok(response)
        };
        Either::Right(answer.map(sent))
    });
    let stream = TokioIo::new(Watched::new(stream, ticket, idle_ms));
    let connection = builder.serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stopping(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        why = on_end.asked_to_leave() => {
            tracing::debug!(%peer, ?why, "connection asked to end");
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, error, "connection ended in an error");
    }
}

/// Returns the response to any later request on a connection that ends after rejections. It may be
/// another caller's request.
fn dismissal() -> Response {
    let message = "connection ends after too many requests without a token; connect again";
    Refusal(Error::new(Code::Overloaded, message)).into_response()
}

/// Returns whether a response of HTTP or gRPC rejects the request.
fn is_refusal(response: &Response) -> bool {
    let status = response.headers().get("grpc-status");
    response.status().is_client_error() || status.is_some_and(|status| status != "0")
}

/// Returns the immediate response, or the reason for its absence.
fn told(now: Result<AtOnce, Reason>) -> Result<Response<Sent>, h2::Error> {
    now.map(AtOnce::written).map_err(h2::Error::from)
}

/// Wraps a body that has a read deadline, or counts for its connection.
fn owed(
    body: Body,
    (counts, open): (Option<Counts>, Option<Open>),
    ticket: Arc<Ticket>,
    within_ms: u64,
) -> Body {
    if counts.is_none() && open.is_none() {
        return body;
    }
    let owed = counts.map(|counts| (counts, ticket.owes(within_ms)));
    Body::new(Owing::new(body, owed, open))
}

#[cfg(test)]
mod tests {
    use super::REFUSAL;
    use snowmint_wire::error::Code;
    use snowmint_wire::http::ErrorBody;

    #[test]
    fn unavailable_response_is_complete() {
        let text = std::str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let body: ErrorBody = serde_json::from_str(body).unwrap();
        assert_eq!(Code::from_name(&body.error.code), Some(Code::Overloaded));
        assert!(head.starts_with(&format!("HTTP/1.1 {} ", Code::Overloaded.row().http)));
    }
}
