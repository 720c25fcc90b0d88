//! Upstreams: numbers of a segment source while another system issues numbers from the same range.
//!
//! Two systems with separate counters sooner or later issue the same number. So while both serve,
//! both allocate from one place: the other system's table, by that system's own step. The allocated
//! numbers belong to this deployment alone. The store's mark is then moved over them, as for any
//! other reserve, so that the numbers of all servers rise and numbers overtaken meanwhile are a
//! gap. A change of the source's identity ends this: the cut-over sets the mark above everything
//! that the other system ever issued ([`Node::cut_over`](crate::Node::cut_over)).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::model::ticks::NumberInterval;

/// Maximum attempts of an allocation when other servers overtake it.
pub(crate) const ALLOCATIONS_MAX: u32 = 16;

/// An upstream: another ID system's table that numbers are allocated from.
#[async_trait]
pub trait Upstream: fmt::Debug + Send + Sync {
    /// Allocates the next `length` numbers of a key for this caller alone.
    ///
    /// Atomicity: one step of the other system. On retry: a repeat allocates other numbers; the
    /// first ones, if any, are lost.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for an invalid request; `Unavailable`.
    async fn allocate(&self, key: &str, length: u64) -> Result<NumberInterval>;
}

/// Upstreams, by the names that sources use.
pub type Upstreams = BTreeMap<String, Arc<dyn Upstream>>;

/// Returns the upstream that a source allocates from.
///
/// # Errors
/// `Unsupported` when this process does not know it: reserving numbers without it could repeat
/// them.
pub(crate) fn upstream_of(
    upstreams: &Upstreams,
    source: &str,
    upstream: &str,
) -> Result<Arc<dyn Upstream>> {
    upstreams.get(upstream).cloned().ok_or_else(|| {
        Error::unsupported(format!(
            "source {source:?} allocates from upstream {upstream:?}, unknown here; add it under \
             [upstreams]"
        ))
    })
}
