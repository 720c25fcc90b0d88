//! Metrics of the server, and their page for Prometheus, with the node's metrics.
//!
//! Handlers add to plain atomics, once for all requests that came together. That path looks up no
//! label; everything is put together when the page is requested.

mod families;
mod forecasts;
pub(crate) mod history;
mod page;
mod page_format;
pub(crate) mod process;
#[cfg(test)]
mod reference;
mod sampling;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use snowmint_coord::Times;
use snowmint_wire::error::Code;

use crate::clients::tracker::ConnectionTracker;
use forecasts::Forecasts;
use history::History;
pub(crate) use page_format::PageFormat;

/// Protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Resp,
    Grpc,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Http, Self::Resp, Self::Grpc];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Resp => "resp",
            Self::Grpc => "grpc",
        }
    }
}

/// Results of the requests for one source.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    /// IDs issued, by protocol.
    issued: [AtomicU64; Protocol::ALL.len()],
    /// Failed requests that were valid in themselves.
    errors: AtomicU64,
}

impl Tally {
    /// Adds issued IDs.
    pub(crate) fn add(&self, protocol: Protocol, count: u64) {
        if let Some(issued) = self.issued.get(protocol as usize) {
            // Relaxed, like all loads and stores here: the numbers are for people, and order
            // nothing else.
            issued.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn issued(&self, protocol: Protocol) -> u64 {
        self.issued.get(protocol as usize).map_or(0, |issued| issued.load(Ordering::Relaxed))
    }

    /// Returns whether requests that fail with this code are counted: not mistakes of the caller,
    /// and not redirects and short delays, which are normal under load.
    pub(crate) fn counts(code: Code) -> bool {
        code.row().http >= 500
            && !matches!(code, Code::TickFull | Code::NotOwner | Code::Overloaded)
    }

    /// Counts a request that failed with this code, if it counts.
    pub(crate) fn add_error(&self, code: Code) {
        if Self::counts(code) {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

/// Metrics of one protocol.
#[derive(Debug)]
#[repr(align(128))]
struct ProtocolMetrics {
    /// Errors, in the order of [`Code::ALL`].
    errors: [AtomicU64; Code::ALL.len()],
    times: Times,
    tracker: OnceLock<Arc<ConnectionTracker>>,
}

impl Default for ProtocolMetrics {
    fn default() -> Self {
        let errors = std::array::from_fn(|_| AtomicU64::new(0));
        Self { errors, times: Times::default(), tracker: OnceLock::new() }
    }
}

/// All metrics of the server.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    by_protocol: [ProtocolMetrics; Protocol::ALL.len()],
    /// Sources that are, or were, in the catalog.
    tallies: RwLock<BTreeMap<String, Arc<Tally>>>,
    forecasts: Forecasts,
    history: History,
}

impl Meter {
    /// Returns the metrics of a source, if it has any.
    pub(crate) fn known_tally(&self, source: &str) -> Option<Arc<Tally>> {
        self.tallies.read().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }

    /// Returns the metrics of a source.
    pub(crate) fn tally(&self, source: &str) -> Arc<Tally> {
        self.known_tally(source).unwrap_or_else(|| {
            let mut tallies = self.tallies.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(tallies.entry(source.to_owned()).or_default())
        })
    }

    fn protocol_metrics(&self, protocol: Protocol) -> Option<&ProtocolMetrics> {
        self.by_protocol.get(protocol as usize)
    }

    /// Counts a failed request.
    pub(crate) fn add_error(&self, protocol: Protocol, code: Code) {
        let errors =
            self.protocol_metrics(protocol).and_then(|metrics| metrics.errors.get(code as usize));
        if let Some(errors) = errors {
            errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts requests that came together, with the time after which all had their responses.
    pub(crate) fn responded(&self, protocol: Protocol, requests: u64, took_us: u64) {
        if let Some(metrics) = self.protocol_metrics(protocol) {
            metrics.times.add(took_us, requests);
        }
    }

    /// Sets the connections of this protocol.
    pub(crate) fn watch(&self, protocol: Protocol, tracker: &Arc<ConnectionTracker>) {
        if let Some(metrics) = self.protocol_metrics(protocol) {
            // Each protocol is served at one place.
            let _ = metrics.tracker.set(Arc::clone(tracker));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_and_every_code_has_a_place_of_its_own() {
        for (place, protocol) in Protocol::ALL.into_iter().enumerate() {
            assert_eq!(protocol as usize, place);
        }
        for (place, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, place);
        }
        let meter = Meter::default();
        meter.tally("a").add(Protocol::Resp, 3);
        meter.tally("a").add(Protocol::Resp, 4);
        let issued =
            |source: &str| Protocol::ALL.map(|protocol| meter.tally(source).issued(protocol));
        assert_eq!((issued("a"), issued("b")), ([0, 7, 0], [0, 0, 0]));
    }
}
