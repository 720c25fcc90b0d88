//! The RESP adapter: any Redis client can connect.

mod access;
mod buffered_bytes;
mod cmd;
mod connection;
mod dispatcher;
mod oversized;
mod replies;
mod reply_mode;
mod session;
mod state;
mod transaction;

use std::sync::Arc;

use tokio::net::TcpListener;

use crate::clients::tracker::{ConnectionTracker, ListenerBounds};
use crate::config::RespSettings;
use crate::net::listener::{self, ListenerContext};
use crate::net::tls::{ConnectionOpening, Side};
use crate::requests::reading::WaitingRequests;
use crate::service::Service;
use state::{OpsMeter, RespState};

/// Redis's reply to a connection beyond the limit.
const REJECTION: &[u8] = b"-ERR max number of clients reached\r\n";

/// Serves RESP until the server stops.
pub(crate) async fn serve(
    listener: TcpListener,
    (service, requests): (Service, WaitingRequests),
    settings: RespSettings,
    ctx: ListenerContext,
) {
    let bounds = ListenerBounds {
        max: settings.connections_max,
        key: "resp.connections_max",
        token_within_ms: service.access().map(|_| settings.auth_time_max.ms()),
    };
    let tracker = ConnectionTracker::new(bounds, Arc::clone(&ctx.timer));
    service.watch(&tracker);
    let state = Arc::new(RespState {
        service,
        requests,
        settings,
        started_ms: ctx.timer.elapsed().get(),
        timer: Arc::clone(&ctx.timer),
        ops: OpsMeter::default(),
        port: listener.local_addr().map_or(0, |address| address.port()),
    });
    let closing = ctx.closing.clone();
    let opening = ConnectionOpening::new(ctx.tls.as_ref(), Side::Resp);
    listener::serve(listener, tracker, ctx, opening.rejection(REJECTION), |stream, guard| {
        connection::converse((stream, opening.clone()), Arc::clone(&state), guard, closing.clone())
    })
    .await;
}
