//! Backing of a segment source: the segments that it takes numbers from now.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::SegmentSource;
use super::prefetched::Unused;
use crate::error::Result;
use crate::model::catalog::SourceState;
use crate::sources::defined::Defined;
use crate::sources::id_batch::NumberRange;
use crate::sources::retry_policy::RetryPolicy;
use crate::sources::source_kind::SourceKind;
use crate::sources::values::SourceStats;
use crate::spec::Plan;

/// Current segment source; each restripe and each change to or from a step of 1 replaces it.
#[derive(Debug)]
pub(crate) struct SegmentBacking(ArcSwap<SegmentSource>);

impl SegmentBacking {
    pub(in crate::sources) fn new(source: Arc<SegmentSource>) -> Self {
        Self(ArcSwap::new(source))
    }

    pub(crate) fn now(&self) -> Arc<SegmentSource> {
        self.0.load_full()
    }

    /// Calls the current source, and its successor if it was replaced meanwhile: then the IDs that
    /// the first call made are dropped unused.
    #[inline]
    pub(in crate::sources) fn try_current<T, E>(
        &self,
        mut call: impl FnMut(&Arc<SegmentSource>) -> Result<T, E>,
    ) -> Result<T, E> {
        let current = self.0.load();
        let result = call(&current);
        if result.is_err() && self.replaced(&current) { call(&self.0.load()) } else { result }
    }

    pub(in crate::sources) async fn fill(
        &self,
        retry_policy: &mut RetryPolicy,
        out: &mut [u64],
        within_ms: u64,
    ) -> Result<()> {
        let now = self.now();
        match now.fill(retry_policy, out, within_ms).await {
            Err(_) if self.replaced(&now) => self.now().fill(retry_policy, out, within_ms).await,
            filled => filled,
        }
    }

    pub(in crate::sources) async fn reserve_range(
        &self,
        length: u64,
        within_ms: u64,
    ) -> Result<NumberRange> {
        let now = self.now();
        match now.reserve_range(length, within_ms).await {
            Err(_) if self.replaced(&now) => self.now().reserve_range(length, within_ms).await,
            row => row,
        }
    }

    fn replaced(&self, current: &Arc<SegmentSource>) -> bool {
        !Arc::ptr_eq(current, &self.0.load())
    }

    fn succeed(&self, now: &SegmentSource, next: &Arc<SegmentSource>) {
        // Stored before the close, so that a caller that finds the old source closed finds this one.
        self.0.store(Arc::clone(next));
        // The old source's prefetched numbers count as lost.
        let _ = now.close();
    }
}

impl SourceKind for SegmentBacking {
    fn alter(&self, defined: &Defined) {
        let Plan::Segment(plan) = &defined.plan else { return };
        let (version, enabled) = (defined.version, defined.state == SourceState::Enabled);
        let now = self.0.load();
        if now.serves(plan) {
            return now.alter(plan.clone(), version, enabled);
        }
        // No prefetched number goes back to the store: the store has set the mark above it.
        self.succeed(&now, &now.successor(plan.clone(), version, enabled));
    }

    fn stats(&self, ready: bool) -> SourceStats {
        SourceStats { ready, numbers: Some(self.now().stats()), ..SourceStats::default() }
    }

    fn is_per_request(&self) -> bool {
        self.now().is_per_request()
    }

    fn drop_prefetched(&self) {
        let now = self.0.load();
        self.succeed(&now, &now.without_prefetched());
    }

    fn close_prefetched(&self) -> Option<Unused> {
        self.now().close()
    }

    fn seen_end(&self) -> Option<u64> {
        Some(self.now().seen_end())
    }
}
