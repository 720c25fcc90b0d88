//! Trait of what differs between the kinds of sources.

use std::fmt;

use snowmint_core::text::Format;

use super::defined::Defined;
use super::id_batch::Decoded;
use super::segment::Unused;
use super::values::SourceStats;
use crate::error::Result;

/// Behaviour of one kind of source, besides minting numbers: each further instruction of that is
/// measurable, so `SourceInner` has a match for it.
pub(crate) trait SourceKind: fmt::Debug + Send + Sync {
    /// Applies a changed definition.
    fn alter(&self, _defined: &Defined) {}

    /// Returns its state; `ready` tells whether the definition lets it mint.
    fn stats(&self, ready: bool) -> SourceStats {
        SourceStats { ready, ..SourceStats::default() }
    }

    /// Returns whether each request calls servers or the store: nothing is ever prefetched.
    fn is_per_request(&self) -> bool {
        false
    }

    /// Returns whether each request calls servers or the store, also where something is prefetched.
    fn calls_each_time(&self) -> bool {
        self.is_per_request()
    }

    /// Mints texts. `None` from a kind that mints numbers, or takes no key where one is given.
    fn mint_texts(&self, _count: u32, _key: Option<&str>) -> Option<Result<Vec<String>>> {
        None
    }

    /// Returns the parts of an ID of the source `name`. Numbers are read in the given format, or
    /// else in the source's own or in decimal; disguises are undone.
    ///
    /// # Errors
    /// `Invalid` with the fault in the text.
    fn decode(
        &self,
        name: &str,
        defined: &Defined,
        text: &str,
        format: Option<Format>,
    ) -> Result<Decoded> {
        defined.decode_number(name, text, format)
    }

    /// Drops the prefetched IDs unused: the store may issue them again.
    fn drop_prefetched(&self) {}

    /// Ends prefetching for good; returns the unused numbers, if there are any.
    fn close_prefetched(&self) -> Option<Unused> {
        None
    }

    /// Returns the end of all numbers seen reserved in the store.
    fn seen_end(&self) -> Option<u64> {
        None
    }
}
