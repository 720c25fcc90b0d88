//! A source that a connection uses repeatedly, looked up once.

use std::sync::{Arc, PoisonError};

use snowmint_coord::Source;

use super::state::Service;
use crate::observe::meter::{Protocol, Tally};

/// A cached source, and the number of its IDs that are not counted yet.
#[derive(Debug)]
pub(crate) struct CachedSource {
    name: String,
    source: Source,
    tally: Arc<Tally>,
    protocol: Protocol,
    uncounted: u64,
}

impl CachedSource {
    /// Returns its name.
    #[inline]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the source.
    #[inline]
    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    /// Notes an issued ID.
    #[inline]
    pub(crate) const fn issued(&mut self) {
        self.uncounted = self.uncounted.saturating_add(1);
    }

    /// Counts the issued IDs: once for all requests that came together.
    pub(crate) fn count_issued(&mut self) {
        if self.uncounted > 0 {
            self.tally.add(self.protocol, std::mem::take(&mut self.uncounted));
        }
    }
}

impl Drop for CachedSource {
    fn drop(&mut self) {
        self.count_issued();
    }
}

impl Service {
    /// Returns this source, for the connection to keep.
    pub(crate) fn keep(&self, name: &str, source: Source) -> CachedSource {
        let (name, tally, protocol) = (name.to_owned(), self.tally(name), self.protocol);
        CachedSource { name, source, tally, protocol, uncounted: 0 }
    }

    /// Returns a source by name, if an earlier request used it.
    pub(crate) fn known(&self, name: &str) -> Option<CachedSource> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        let (source, tally) = sources.get(name)?.clone();
        let (name, protocol) = (name.to_owned(), self.protocol);
        Some(CachedSource { name, source, tally, protocol, uncounted: 0 })
    }
}
