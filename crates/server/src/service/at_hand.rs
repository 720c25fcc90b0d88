//! A source that a connection asks again and again, looked up once.

use std::sync::{Arc, PoisonError};

use snowmint_coord::Source;

use super::Service;
use crate::meter::{Protocol, Tally};

/// A source at hand, and how many of its IDs were not counted yet.
#[derive(Debug)]
pub(crate) struct AtHand {
    name: String,
    source: Source,
    tally: Arc<Tally>,
    protocol: Protocol,
    uncounted: u64,
}

impl AtHand {
    /// What it is called.
    #[inline]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The source.
    #[inline]
    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    /// An ID of it was issued.
    #[inline]
    pub(crate) const fn issued(&mut self) {
        self.uncounted = self.uncounted.saturating_add(1);
    }

    /// Counts what was issued: once for all requests that came together.
    pub(crate) fn settle(&mut self) {
        if self.uncounted > 0 {
            self.tally.add(self.protocol, std::mem::take(&mut self.uncounted));
        }
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Service {
    /// This source, to be kept by the connection that asked for it.
    pub(crate) fn keep(&self, name: &str, source: Source) -> AtHand {
        let (name, tally, protocol) = (name.to_owned(), self.tally(name), self.protocol);
        AtHand { name, source, tally, protocol, uncounted: 0 }
    }

    /// A source by name, if somebody asked for it before.
    pub(crate) fn known(&self, name: &str) -> Option<AtHand> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        let (source, tally) = sources.get(name)?.clone();
        let (name, protocol) = (name.to_owned(), self.protocol);
        Some(AtHand { name, source, tally, protocol, uncounted: 0 })
    }
}
