//! Metrics of all requests, and their page.

use std::sync::Arc;

use snowmint_wire::error::Code;

use super::state::Service;
use crate::access::{Access, Right};
use crate::clients::tracker::ConnectionTracker;
use crate::error::{Cause, Error};
use crate::observe::meter::{PageFormat, Protocol, Tally};

impl Service {
    /// Returns the same service, for callers of this protocol.
    #[must_use]
    pub(crate) fn for_protocol(&self, protocol: Protocol) -> Self {
        Self { protocol, ..self.clone() }
    }

    /// Sets the connections of the callers.
    pub(crate) fn watch(&self, tracker: &Arc<ConnectionTracker>) {
        self.meter.watch(self.protocol, tracker);
    }

    /// Returns the metrics of a source, for handlers that mint from it themselves.
    pub(crate) fn tally(&self, source: &str) -> Arc<Tally> {
        self.meter.tally(source)
    }

    /// Returns the elapsed time in microseconds, for [`Service::record_responses`].
    pub(crate) fn now_us(&self) -> u64 {
        self.peers().timer().elapsed_us()
    }

    /// Counts requests that came together, with their duration.
    pub(crate) fn record_responses(&self, requests: u64, begun_us: u64) {
        let took_us = self.now_us().saturating_sub(begun_us);
        self.meter.responded(self.protocol, requests, took_us);
    }

    /// Counts a request that waited for nothing: its duration is too short to measure.
    pub(crate) fn record_fast_response(&self) {
        self.meter.responded(self.protocol, 1, 0);
    }

    /// Counts and logs a failed request.
    pub(crate) fn record_error(&self, code: Code, cause: Option<&Cause>) {
        self.meter.add_error(self.protocol, code);
        if let Some(cause) = cause {
            self.throttled_log.log(code, cause, self.now_us() / 1_000);
        }
    }

    /// Logs an error that ends a begun response; it is not counted a second time.
    pub(crate) fn record_stream_error(&self, error: &Error) {
        if let Some(cause) = error.cause() {
            self.throttled_log.log(error.code(), cause, self.now_us() / 1_000);
        }
    }

    /// Returns all metrics, as text for Prometheus in one of its formats.
    ///
    /// # Errors
    /// Without the right, where one is required.
    pub(crate) async fn metrics(&self, format: PageFormat) -> Result<String, Error> {
        if !self.has_open_metrics() {
            self.caller().may_over_all(Right::Metrics)?;
        }
        let timer = self.peers().timer();
        let ready = self.readiness().ready;
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let expiring = self.access.as_ref().map(Access::expiring).unwrap_or_default();
        let page = self.meter.page(format, &self.node, ready, expiring, timer, wait_ms).await;
        page.map_err(|error| {
            let message =
                format!("internal error: metrics cannot be written: {error}; please report it");
            Error::new(Code::Internal, message)
        })
    }
}
