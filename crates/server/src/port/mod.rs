//! The port that HTTP and gRPC share.

mod dispatcher;

use std::cell::RefCell;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use futures_util::future::Either;
use h2::Reason;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use snowmint_wire::error::Code;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::access::hosts::Hosts;
use crate::clients::tracker::{ConnectionGuard, ConnectionTracker, EndReason, ListenerBounds};
use crate::config::{HEAD_BYTES_MIN, HttpSettings};
use crate::error::Error;
use crate::grpc;
use crate::http::fast_response::{FastPath, FastResponse};
use crate::http::response::ErrorResponse;
use crate::http::state::{HttpState, SentBody};
use crate::http::{compat, router};
use crate::net::http_socket::HttpSocket;
use crate::net::listener::{self, ListenerContext};
use crate::net::read_deadline_body::{BodyKind, ReadDeadlineBody, UnreadPermit, UnreadQuota};
use crate::net::shutdown::stopping;
use crate::net::tls::{ConnectionInfo, ConnectionOpening, Side};
use crate::requests::reading::{WaitingRequests, is_head_too_long, read_head_bytes_max};
use crate::service::Service;
use dispatcher::Dispatcher;

/// Most requests at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
/// Most bytes that a request over HTTP/2 may send before it is read, and all of a connection
/// together.
const UNREAD_BYTES_MAX: u32 = 64 * 1024;
const ALL_UNREAD_BYTES_MAX: u32 = 256 * 1024;
/// Most bytes of a response over HTTP/2 that are held until the socket takes them.
const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// Response to a connection beyond the limit, regardless of its request.
const REJECTION: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
content-type: application/json\r\n\
cache-control: no-store\r\n\
retry-after: 1\r\n\
connection: close\r\n\
content-length: 124\r\n\
\r\n\
{\"error\":{\"code\":\"overloaded\",\"message\":\"open connections reached http.connections_max; retry later\",\"retry_after_ms\":1000}}";

/// Serves HTTP, and gRPC with it, until the server stops.
pub(crate) async fn serve(
    listener: TcpListener,
    (service, grpc): (Service, grpc::GrpcState),
    requests: WaitingRequests,
    settings: HttpSettings,
    (hosts, compat): (Arc<Hosts>, compat::Paths),
    ctx: ListenerContext,
) {
    let bounds = ListenerBounds {
        max: settings.connections_max,
        key: "http.connections_max",
        token_within_ms: service.access().map(|_| settings.auth_time_max.ms()),
    };
    let tracker = ConnectionTracker::new(bounds, Arc::clone(&ctx.timer));
    service.watch(&tracker);
    let state = Arc::new(HttpState::new(service, hosts, settings.body_bytes_max));
    let compat::Paths { router: compat, prefixes } = compat;
    let router = router(Arc::clone(&state), compat);
    let (timer, within_ms) = (Arc::clone(&ctx.timer), settings.request_time_max.ms());
    let unread = UnreadQuota::new();
    let head_bytes_max = settings.head_bytes_max;
    let dispatcher = Dispatcher {
        state,
        grpc,
        router,
        compat: prefixes,
        requests,
        unread,
        timer,
        within_ms,
        head_bytes_max,
    };
    let dispatcher = Arc::new(dispatcher);
    let builder = Arc::new(builder(&settings));
    let settings = Arc::new(settings);
    let closing = ctx.closing.clone();
    let opening = ConnectionOpening::new(ctx.tls.as_ref(), Side::Http);
    listener::serve(listener, tracker, ctx, opening.rejection(REJECTION), |stream, guard| {
        serve_connection(
            (stream, opening.clone()),
            Arc::new(guard),
            Arc::clone(&builder),
            Arc::clone(&settings),
            Arc::clone(&dispatcher),
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
    // One write for the head and the body: both are small.
    builder.http1().max_buf_size(head_bytes_max).writev(false);
    builder
        .http2()
        .max_concurrent_streams(STREAMS_MAX)
        // A client with that many calls may cancel them all at once; one that cancels more is cut
        // off.
        .max_pending_accept_reset_streams(usize::try_from(STREAMS_MAX).ok())
        .initial_stream_window_size(UNREAD_BYTES_MAX)
        .initial_connection_window_size(ALL_UNREAD_BYTES_MAX)
        .max_send_buf_size(UNSENT_BYTES_MAX)
        .max_header_list_size(
            u32::try_from(read_head_bytes_max(head_bytes_max)).unwrap_or(u32::MAX),
        );
    builder
}

/// Serves one connection, until a stop or until others need its place, and then the requests in
/// progress. Two events move its deadline: a request's head is complete, bytes were sent. Received
/// bytes move nothing, so that a trickle keeps no connection open. Responses that count toward the
/// limit of unsent IDs have deadlines of their own.
async fn serve_connection(
    (stream, opening): (TcpStream, ConnectionOpening),
    guard: Arc<ConnectionGuard>,
    builder: Arc<auto::Builder<TokioExecutor>>,
    settings: Arc<HttpSettings>,
    dispatcher: Arc<Dispatcher>,
    mut closing: watch::Receiver<bool>,
) {
    guard.allow_ms(settings.head_time_max.ms());
    let peer = guard.connection().peer;
    let Some(stream) = opening.open(stream, peer, &mut closing).await else { return };
    let (request_ms, idle_ms) = (settings.request_time_max.ms(), settings.idle_max.ms());
    let from = ConnectionInfo { connection: Arc::clone(guard.connection()), names: stream.names() };
    let on_request = Arc::clone(&guard);
    let on_end = Arc::clone(&guard);
    let fast_path = RefCell::new(FastPath::default());
    let service = service_fn(move |request: Request<Incoming>| {
        on_request.responded(1);
        on_request.allow_ms(request_ms);
        let now = |response| Either::Left(async move { fast_result(response) });
        if !is_head_too_long(&request, dispatcher.head_bytes_max) {
            let fast_response = fast_path.borrow_mut().response(&dispatcher.state, &request);
            if let Some(fast_response) = fast_response {
                return now(Ok(fast_response));
            }
        }
        let open = match dispatcher.count_unread(&request, &on_request, &from) {
            Ok(open) => open,
            Err(refused) => return now(Err(refused)),
        };
        let guard = Arc::clone(&on_request);
        let busy = Arc::clone(&guard).works(request.body().is_end_stream());
        let (dispatcher, from) = (Arc::clone(&dispatcher), from.clone());
        // Only when it is polled: many requests come at once, and most memory is a response's.
        let response = async move {
            match from.connection.end_requested() {
                Some(EndReason::Refused) => dismissal(),
                _ => dispatcher.response(request, from).await,
            }
        };
        let sent = move |response: Response| {
            if is_error(&response) {
                guard.refused();
            }
            let kept = (response.extensions().get().copied(), open);
            let response = response
                .map(|body| SentBody::Right(with_read_deadline(body, kept, guard, idle_ms)));
            drop(busy);
            Ok(response)
        };
        Either::Right(response.map(sent))
    });
    let stream = TokioIo::new(HttpSocket::new(stream, guard, idle_ms));
    let connection = builder.serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stopping(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        reason = on_end.end_requested() => {
            tracing::debug!(%peer, ?reason, "graceful end of a connection requested");
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
    ErrorResponse(Error::new(Code::Overloaded, message)).into_response()
}

/// Returns whether a response of HTTP or gRPC rejects the request.
fn is_error(response: &Response) -> bool {
    let status = response.headers().get("grpc-status");
    response.status().is_client_error() || status.is_some_and(|status| status != "0")
}

/// Returns the immediate response, or the reason for its absence.
fn fast_result(now: Result<FastResponse, Reason>) -> Result<Response<SentBody>, h2::Error> {
    now.map(FastResponse::written).map_err(h2::Error::from)
}

/// Wraps a body that has a read deadline, or counts for its connection.
fn with_read_deadline(
    body: Body,
    (kind, open): (Option<BodyKind>, Option<UnreadPermit>),
    guard: Arc<ConnectionGuard>,
    within_ms: u64,
) -> Body {
    if kind.is_none() && open.is_none() {
        return body;
    }
    let read_deadline = kind.map(|kind| (kind, guard.add_read_deadline(within_ms)));
    Body::new(ReadDeadlineBody::new(body, read_deadline, open))
}

#[cfg(test)]
mod tests {
    use super::REJECTION;
    use snowmint_wire::error::Code;
    use snowmint_wire::http::ErrorBody;

    #[test]
    fn unavailable_response_is_complete() {
        let text = std::str::from_utf8(REJECTION).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let body: ErrorBody = serde_json::from_str(body).unwrap();
        assert_eq!(Code::from_name(&body.error.code), Some(Code::Overloaded));
        assert!(head.starts_with(&format!("HTTP/1.1 {} ", Code::Overloaded.row().http)));
    }
}
