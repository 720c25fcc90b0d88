//! The standard health service: it reports "serving" while the server is ready.
//!
//! Any caller may watch, without a token. So a watch is small: one task reads the readiness for all
//! watches, and each connection and each caller has a bounded number of them.

use std::sync::Arc;

use futures_util::stream;
use snowmint_coord::Timer;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::SERVICE;
use snowmint_wire::grpc::store::SERVICE as STORE_SERVICE;
use tokio::sync::{Notify, watch};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use super::caller::of_caller;
use super::long::LongCalls;
use crate::config::HttpSettings;
use crate::error::{Error, shown};
use crate::net::shutdown::stopping;
use crate::requests::quota::QuotaPermit;
use crate::service::Service;

/// Interval at which readiness is read for watches.
const POLL_MS: u64 = 250;

#[derive(Clone, Debug)]
pub(super) struct Health {
    service: Service,
    /// Whether the store is offered.
    offers: bool,
    board: Arc<Board>,
    calls: LongCalls,
}

/// Subject of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// The whole server and the services that mint: all are ready together.
    Server,
    /// The store: while it is offered, a server forwards calls to it whether it can mint by itself
    /// or not.
    Store,
    Unknown,
}

impl Health {
    pub(super) fn new(
        service: Service,
        offers: bool,
        timer: Arc<dyn Timer>,
        settings: &HttpSettings,
        calls: LongCalls,
    ) -> Self {
        let repeat_ms = (settings.idle_max.ms() / 3).max(POLL_MS);
        let board = Arc::new(Board::new(service.clone(), timer, repeat_ms));
        Self { service, offers, board, calls }
    }

    /// Reads the readiness for watches, while there are any.
    pub(super) fn looking(&self) -> impl Future<Output = ()> + use<> {
        Arc::clone(&self.board).look()
    }

    fn subject(&self, name: &str) -> Subject {
        match name {
            STORE_SERVICE if self.offers => Subject::Store,
            "" | SERVICE => Subject::Server,
            _ => Subject::Unknown,
        }
    }

    fn status(&self, subject: Subject, is_ready: bool) -> ServingStatus {
        let is_serving = match subject {
            Subject::Unknown => return ServingStatus::ServiceUnknown,
            Subject::Store => true,
            Subject::Server => is_ready,
        };
        if is_serving && !*self.service.closing().borrow() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        }
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = request.into_inner().service;
        match self.status(self.subject(&name), self.service.readiness().ready) {
            ServingStatus::ServiceUnknown => {
                let message = format!("unknown service {}; check {SERVICE}", shown(&name));
                Err(Error::new(Code::NotFound, message).into())
            }
            status => Ok(Response::new(HealthCheckResponse { status: status.into() })),
        }
    }

    type WatchStream = BoxStream<HealthCheckResponse>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let permit = self.calls.begin(of_caller(&self.service, &request).caller())?;
        let watch = Watch {
            subject: self.subject(&request.get_ref().service),
            health: self.clone(),
            seen: self.board.watch(),
            reported: None,
            _permit: permit,
        };
        Ok(Response::new(Box::pin(stream::unfold(watch, Watch::next))))
    }
}

/// Source of the messages of all watches.
#[derive(Debug)]
struct Board {
    service: Service,
    timer: Arc<dyn Timer>,
    /// Interval of repeated messages, which keep the connections of watches from counting as idle.
    repeat_ms: u64,
    seen: watch::Sender<HealthState>,
    /// Signals that a watch began while there was none.
    came: Notify,
}

/// State as last seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HealthState {
    is_ready: bool,
    /// Number of repeats sent to watches.
    repeats: u64,
}

impl Board {
    fn new(service: Service, timer: Arc<dyn Timer>, repeat_ms: u64) -> Self {
        let seen = watch::Sender::default();
        Self { service, timer, repeat_ms, seen, came: Notify::new() }
    }

    fn watch(&self) -> watch::Receiver<HealthState> {
        let seen = self.seen.subscribe();
        // The last state may be old.
        self.update(false);
        self.came.notify_one();
        seen
    }

    fn update(&self, repeats: bool) {
        let is_ready = self.service.readiness().ready;
        self.seen.send_if_modified(|seen| {
            let before = *seen;
            seen.is_ready = is_ready;
            seen.repeats = seen.repeats.wrapping_add(u64::from(repeats));
            *seen != before
        });
    }

    async fn look(self: Arc<Self>) {
        let mut waited_ms: u64 = 0;
        loop {
            if self.seen.receiver_count() == 0 {
                self.came.notified().await;
            }
            self.timer.sleep_ms(POLL_MS).await;
            waited_ms = waited_ms.saturating_add(POLL_MS);
            let repeats = waited_ms >= self.repeat_ms;
            if repeats {
                waited_ms = 0;
            }
            self.update(repeats);
        }
    }
}

/// A watch: a caller that gets a message whenever the status changes.
#[derive(Debug)]
struct Watch {
    health: Health,
    subject: Subject,
    seen: watch::Receiver<HealthState>,
    /// Last status sent, and its repeat.
    reported: Option<(ServingStatus, u64)>,
    _permit: QuotaPermit,
}

impl Watch {
    /// Returns the next message; `None` when the server stops, which the last message has
    /// announced.
    async fn next(mut self) -> Option<(Result<HealthCheckResponse, Status>, Self)> {
        let mut closing = self.health.service.closing().clone();
        loop {
            let is_closing = *closing.borrow();
            let HealthState { is_ready, repeats } = *self.seen.borrow_and_update();
            let status = self.health.status(self.subject, is_ready);
            if self.reported.is_none_or(|reported| reported != (status, repeats)) {
                self.reported = Some((status, repeats));
                return Some((Ok(HealthCheckResponse { status: status.into() }), self));
            }
            if is_closing {
                return None;
            }
            tokio::select! {
                _ = self.seen.changed() => {}
                () = stopping(&mut closing) => {}
            }
        }
    }
}
