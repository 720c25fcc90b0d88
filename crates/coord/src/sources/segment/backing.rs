//! Backing of a segment source: the segments that it takes numbers from now.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::SegmentSource;
use crate::error::Result;
use crate::sources::id_batch::NumberRange;
use crate::spec::SegmentPlan;

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

    /// Calls the current source, and its successor if it was replaced meanwhile.
    #[inline]
    pub(in crate::sources) fn try_current<T, E>(
        &self,
        call: impl Fn(&Arc<SegmentSource>) -> Result<T, E>,
    ) -> Result<T, E> {
        let current = self.0.load();
        let result = call(&current);
        if result.is_err() && self.replaced(&current) { call(&self.0.load()) } else { result }
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

    pub(in crate::sources) fn replaced(&self, current: &Arc<SegmentSource>) -> bool {
        !Arc::ptr_eq(current, &self.0.load())
    }

    /// Applies a changed definition.
    pub(in crate::sources) fn alter(&self, plan: &SegmentPlan, version: u64, enabled: bool) {
        let now = self.0.load();
        if now.serves(plan) {
            return now.alter(plan.clone(), version, enabled);
        }
        // No prefetched number goes back to the store: the store has set the mark above it.
        self.succeed(&now, &now.successor(plan.clone(), version, enabled));
    }

    /// Drops the prefetched numbers unused: the store may issue them again.
    pub(crate) fn drop_prefetched(&self) {
        let now = self.0.load();
        self.succeed(&now, &now.without_prefetched());
    }

    fn succeed(&self, now: &SegmentSource, next: &Arc<SegmentSource>) {
        // Stored before the close, so that a caller that finds the old source closed finds this one.
        self.0.store(Arc::clone(next));
        // The old source's prefetched numbers count as lost.
        let _ = now.close();
    }
}
