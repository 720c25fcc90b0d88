//! Numbers from an upstream, for a source that allocates from one.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::SegmentSource;
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::model::segment::{Bounds, Segment};
use crate::sources::node_context::STALE_MS;
use crate::spec::upstream::UpstreamPlan;
use crate::store::upstream::{ALLOCATIONS_MAX, upstream_of};

/// A call of the upstream, counted until this is dropped.
struct Allocating<'a>(&'a AtomicUsize);

impl<'a> Allocating<'a> {
    fn begin(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::AcqRel);
        Self(calls)
    }
}

impl Drop for Allocating<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SegmentSource {
    /// Returns the error for a caller whose time is up while a call of the upstream is in flight.
    pub(super) fn upstream_late(&self, within_ms: u64) -> Option<Error> {
        let plan = self.plan.load();
        let upstream = &plan.upstream.as_ref()?.name;
        (self.allocating.load(Ordering::Acquire) > 0).then(|| {
            Error::unavailable(format!(
                "upstream {upstream:?} gave source {:?} no numbers within {within_ms} ms; check \
                 its database",
                self.name
            ))
        })
    }

    /// Allocates numbers from the upstream, and moves the store's mark over them.
    pub(super) async fn reserve_allocated(
        &self,
        length: u64,
        plan: &UpstreamPlan,
    ) -> Result<Segment> {
        let upstream = upstream_of(&self.ctx.upstreams, &self.name, &plan.name)?;
        let mut attempts = 0;
        loop {
            let allocated = {
                let _allocating = Allocating::begin(&self.allocating);
                self.ctx.upstream_call(&plan.name, upstream.allocate(&plan.key, length)).await
            };
            let allocated = allocated.map_err(|error| {
                self.ctx.catalog_stale();
                self.not_allocated(&plan.name, error)
            })?;
            let count = allocated.end.saturating_sub(allocated.first);
            let reserved = self.reserve_within(count, Some(Bounds::Range(allocated))).await;
            attempts += 1;
            match reserved {
                // Allocated numbers that servers do not give at once are a gap, too.
                Ok(segment) => {
                    let came = segment.last.saturating_sub(segment.first).saturating_add(1);
                    self.refill().burn(count.saturating_sub(came));
                    return Ok(segment);
                }
                // Another server of ours allocated later and reserved earlier: a gap.
                Err(error)
                    if matches!(error.kind(), ErrorKind::MarkMoved { .. })
                        && attempts < ALLOCATIONS_MAX =>
                {
                    self.refill().burn(count);
                }
                reserved => return reserved,
            }
        }
    }

    /// Returns the upstream's error for callers: it names the upstream as the configuration does.
    /// The address of its database stays in the log.
    fn not_allocated(&self, upstream: &str, error: Error) -> Error {
        let (retry, name) = (error.retry(), &self.name);
        match error.kind() {
            // The source is being cut over: the catalog will show it soon.
            ErrorKind::Conflict => error.with_retry(Retry::AfterMs(STALE_MS)),
            ErrorKind::Exhausted => Error::exhausted(format!(
                "upstream {upstream:?} of source {name:?} has no numbers left; define another \
                 source"
            ))
            .with_source(error),
            ErrorKind::Unavailable => Error::unavailable(format!(
                "upstream {upstream:?} gave source {name:?} no numbers; check its database"
            ))
            .with_retry(retry)
            .with_source(error),
            _ => error,
        }
    }
}
