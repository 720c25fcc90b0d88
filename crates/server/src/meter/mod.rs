//! What the server counts, and how Prometheus is shown it, with what the node counts.
//!
//! Answers add to plain atomics, once for all requests that came together. Nothing is looked up by a
//! label on that way; everything is put together when somebody asks for the page.

mod families;
mod forecasts;
mod page;
mod process;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use snowmint_coord::Times;
use snowmint_wire::error::Code;

use crate::roster::Roster;
use forecasts::Forecasts;
pub(crate) use page::CONTENT_TYPE;

/// What a server is spoken to in.
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

/// What became of the requests for one source.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    /// How many IDs were issued, by protocol.
    issued: [AtomicU64; Protocol::ALL.len()],
    /// How many requests were refused that were right in themselves.
    refused: AtomicU64,
}

impl Tally {
    /// So many more.
    pub(crate) fn add(&self, protocol: Protocol, count: u64) {
        if let Some(issued) = self.issued.get(protocol as usize) {
            // Relaxed, as everywhere here: these are numbers for people, and order nothing else.
            issued.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn issued(&self, protocol: Protocol) -> u64 {
        self.issued.get(protocol as usize).map_or(0, |issued| issued.load(Ordering::Relaxed))
    }

    /// A request was refused with this code. Not counted: a caller's mistake, and what sends it elsewhere or away for a
    /// moment, as happens by itself under load.
    pub(crate) fn refuse(&self, code: Code) {
        let is_ours = code.row().http >= 500
            && !matches!(code, Code::TickFull | Code::Elsewhere | Code::Overloaded);
        if is_ours {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// What is counted of one protocol.
#[derive(Debug)]
#[repr(align(128))]
struct Door {
    /// In the order of [`Code::ALL`].
    refusals: [AtomicU64; Code::ALL.len()],
    times: Times,
    roster: OnceLock<Arc<Roster>>,
}

impl Default for Door {
    fn default() -> Self {
        let refusals = std::array::from_fn(|_| AtomicU64::new(0));
        Self { refusals, times: Times::default(), roster: OnceLock::new() }
    }
}

/// All that the server counts.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    doors: [Door; Protocol::ALL.len()],
    /// Of sources that the catalog has, or had.
    tallies: RwLock<BTreeMap<String, Arc<Tally>>>,
    forecasts: Forecasts,
}

impl Meter {
    /// What is counted of a source, if anything is.
    pub(crate) fn known_tally(&self, source: &str) -> Option<Arc<Tally>> {
        self.tallies.read().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }

    /// What is counted of a source.
    pub(crate) fn tally(&self, source: &str) -> Arc<Tally> {
        self.known_tally(source).unwrap_or_else(|| {
            let mut tallies = self.tallies.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(tallies.entry(source.to_owned()).or_default())
        })
    }

    fn door(&self, protocol: Protocol) -> Option<&Door> {
        self.doors.get(protocol as usize)
    }

    /// A request was refused.
    pub(crate) fn refused(&self, protocol: Protocol, code: Code) {
        let refused = self.door(protocol).and_then(|door| door.refusals.get(code as usize));
        if let Some(refused) = refused {
            refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many requests that came together were answered, all of them in so long.
    pub(crate) fn answered(&self, protocol: Protocol, requests: u64, took_us: u64) {
        if let Some(door) = self.door(protocol) {
            door.times.add(took_us, requests);
        }
    }

    /// Whose connections are those of this protocol.
    pub(crate) fn watch(&self, protocol: Protocol, roster: &Arc<Roster>) {
        if let Some(door) = self.door(protocol) {
            // Each protocol is served at one place.
            let _ = door.roster.set(Arc::clone(roster));
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
