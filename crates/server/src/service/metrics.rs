//! Metrics of all requests, and their page.

use std::sync::Arc;

use snowmint_wire::error::Code;

use super::complaint::Cause;
use super::{Error, Service};
use crate::access::Right;
use crate::meter::{Protocol, Tally};
use crate::roster::Roster;

impl Service {
    /// Returns the same service, for callers of this protocol.
    #[must_use]
    pub(crate) fn speaking(&self, protocol: Protocol) -> Self {
        Self { protocol, ..self.clone() }
    }

    /// Sets the connections of the callers.
    pub(crate) fn watch(&self, roster: &Arc<Roster>) {
        self.meter.watch(self.protocol, roster);
    }

    /// Returns the metrics of a source, for handlers that mint from it themselves.
    pub(crate) fn tally(&self, source: &str) -> Arc<Tally> {
        self.meter.tally(source)
    }

    /// Returns the begin time of requests, for [`Service::answered`].
    pub(crate) fn begun_us(&self) -> u64 {
        self.peers().timer().elapsed_us()
    }

    /// Counts requests that came together, with their duration.
    pub(crate) fn answered(&self, requests: u64, begun_us: u64) {
        let took_us = self.begun_us().saturating_sub(begun_us);
        self.meter.answered(self.protocol, requests, took_us);
    }

    /// Counts a request that waited for nothing: its duration is too short to measure.
    pub(crate) fn answered_at_once(&self) {
        self.meter.answered(self.protocol, 1, 0);
    }

    /// Counts and logs a failed request.
    pub(crate) fn refused(&self, code: Code, cause: Option<&Cause>) {
        self.meter.add_error(self.protocol, code);
        if let Some(cause) = cause {
            self.complaints.tell(code, cause, self.begun_us() / 1_000);
        }
    }

    /// Logs an error that ends a begun response; it is not counted a second time.
    pub(crate) fn broke_off(&self, error: &Error) {
        if let Some(cause) = error.cause() {
            self.complaints.tell(error.code(), cause, self.begun_us() / 1_000);
        }
    }

    /// Returns all metrics, as text for Prometheus.
    ///
    /// # Errors
    /// Without the right, where one is required.
    pub async fn metrics(&self) -> Result<String, Error> {
        if !self.has_open_metrics() {
            self.caller().may_over_all(Right::Metrics)?;
        }
        let timer = self.peers().timer();
        let ready = self.readiness().ready;
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let page = self.meter.page(&self.node, ready, timer, wait_ms).await;
        page.map_err(|error| {
            let message =
                format!("internal error: metrics cannot be written: {error}; please report it");
            Error::new(Code::Internal, message)
        })
    }
}
