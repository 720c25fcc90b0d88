//! The standard health service: serving while the server is ready, which is asked at each call.

use std::sync::Arc;

use futures_util::stream;
use snowmint_coord::Timer;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::SERVICE;
use snowmint_wire::grpc::store::SERVICE as STORE_SERVICE;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use crate::accept::stopping;
use crate::config::HttpSettings;
use crate::service::{Error, Service, shown};

/// How often readiness is looked at for those who watch it.
const LOOK_MS: u64 = 250;

#[derive(Clone, Debug)]
pub(super) struct Health {
    service: Service,
    timer: Arc<dyn Timer>,
    /// Whether the store is offered.
    offers: bool,
    /// How often those who watch are told again, so that their connection does not count as idle.
    repeat_ms: u64,
}

impl Health {
    pub(super) fn new(
        service: Service,
        offers: bool,
        timer: Arc<dyn Timer>,
        settings: &HttpSettings,
    ) -> Self {
        let repeat_ms = (settings.idle_max.ms() / 3).max(LOOK_MS);
        Self { service, timer, offers, repeat_ms }
    }

    /// Of the whole server, and of the services that it has; all are ready together, but for the store: while
    /// it is offered, a server passes on to it whether it can mint by itself or not.
    fn status(&self, name: &str) -> ServingStatus {
        if self.offers && name == STORE_SERVICE {
            let is_closing = *self.service.closing().borrow();
            return if is_closing { ServingStatus::NotServing } else { ServingStatus::Serving };
        }
        if !name.is_empty() && name != SERVICE {
            ServingStatus::ServiceUnknown
        } else if self.service.readiness().ready {
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
        match self.status(&name) {
            ServingStatus::ServiceUnknown => {
                let message = format!("no service {}: {SERVICE} is one", shown(&name));
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
        let watch = Watch { health: self.clone(), name: request.into_inner().service, told: None };
        Ok(Response::new(Box::pin(stream::unfold(watch, Watch::next))))
    }
}

/// Somebody who is told whenever the status changes.
#[derive(Debug)]
struct Watch {
    health: Health,
    name: String,
    told: Option<ServingStatus>,
}

impl Watch {
    /// None when the server stops, which the last message has said.
    async fn next(mut self) -> Option<(Result<HealthCheckResponse, Status>, Self)> {
        let mut closing = self.health.service.closing().clone();
        let mut waited_ms: u64 = 0;
        loop {
            let is_closing = *closing.borrow();
            let status = self.health.status(&self.name);
            if self.told != Some(status) || waited_ms >= self.health.repeat_ms {
                self.told = Some(status);
                return Some((Ok(HealthCheckResponse { status: status.into() }), self));
            }
            if is_closing {
                return None;
            }
            tokio::select! {
                () = self.health.timer.sleep_ms(LOOK_MS) => {}
                () = stopping(&mut closing) => {}
            }
            waited_ms = waited_ms.saturating_add(LOOK_MS);
        }
    }
}
