//! Limits and switches that may change while the server runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::config::Limits;
use crate::observe::trace::Traces;

/// Current limits and switches. Clones share them.
#[derive(Clone)]
pub(crate) struct Live {
    limits: Arc<ArcSwap<Limits>>,
    /// Whether each request gets a line in the log.
    access: Arc<AtomicBool>,
    /// Exporter of spans, if any.
    traces: Option<Traces>,
}

impl Live {
    pub(crate) fn new(limits: Limits, access: bool, traces: Option<Traces>) -> Self {
        Self {
            limits: Arc::new(ArcSwap::from_pointee(limits)),
            access: Arc::new(AtomicBool::new(access)),
            traces,
        }
    }

    /// Returns the limits for one request.
    #[inline]
    pub(crate) fn limits(&self) -> Arc<Limits> {
        self.limits.load_full()
    }

    /// Reads one limit.
    #[inline]
    pub(crate) fn limit<T>(&self, of: impl FnOnce(&Limits) -> T) -> T {
        of(&self.limits.load())
    }

    /// Replaces the limits from now on.
    pub(crate) fn set_limits(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// Returns the exporter of spans, if any.
    #[inline]
    pub(crate) const fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    /// Returns whether the access log or traces record each request.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.traces.is_some() || self.logs_access()
    }

    /// Returns whether each request gets a line in the log.
    #[inline]
    pub(crate) fn logs_access(&self) -> bool {
        // Relaxed: the flag orders nothing, and a request more or less in the log does not matter.
        self.access.load(Ordering::Relaxed)
    }

    pub(crate) fn log_access(&self, access: bool) {
        self.access.store(access, Ordering::Relaxed);
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("limits", &self.limits())
            .field("access", &self.logs_access())
            .finish()
    }
}
