//! The RESP adapter: any Redis client can connect.

mod access;
mod answers;
mod cmd;
mod connection;
mod kept;
mod replies;
mod session;
mod transaction;

use snowmint_coord::Timer;
use std::sync::Arc;
use tokio::net::TcpListener;

use crate::accept::{self, Surroundings};
use crate::config::RespSettings;
use crate::reading::Requests;
use crate::roster::{Places, Roster};
use crate::service::Service;
use crate::tls::{Opening, Side};

/// Redis's reply to a connection beyond the limit.
const REFUSAL: &[u8] = b"-ERR max number of clients reached\r\n";

/// State that all connections share.
#[derive(Debug)]
struct Door {
    service: Service,
    /// Limit of all waiting requests, toward which memory kept for clients counts.
    requests: Requests,
    settings: RespSettings,
    timer: Arc<dyn Timer>,
    /// Elapsed time at the start, for `INFO`.
    started_ms: u64,
    port: u16,
}

/// Serves RESP until the server stops.
pub(crate) async fn serve(
    listener: TcpListener,
    (service, requests): (Service, Requests),
    settings: RespSettings,
    surroundings: Surroundings,
) {
    let places = Places {
        max: settings.connections_max,
        key: "resp.connections_max",
        token_within_ms: service.access().map(|_| settings.auth_time_max.ms()),
    };
    let roster = Roster::new(places, Arc::clone(&surroundings.timer));
    service.watch(&roster);
    let door = Arc::new(Door {
        service,
        requests,
        settings,
        started_ms: surroundings.timer.elapsed().get(),
        timer: Arc::clone(&surroundings.timer),
        port: listener.local_addr().map_or(0, |address| address.port()),
    });
    let closing = surroundings.closing.clone();
    let opening = Opening::new(surroundings.tls.as_ref(), Side::Resp);
    accept::serve(listener, roster, surroundings, opening.refusal(REFUSAL), |stream, ticket| {
        connection::converse((stream, opening.clone()), Arc::clone(&door), ticket, closing.clone())
    })
    .await;
}
