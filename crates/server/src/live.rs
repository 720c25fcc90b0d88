//! What may change while the server runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use crate::config::Limits;
use crate::trace::Traces;

/// Limits and switches, as they are now. Clones share them.
#[derive(Clone)]
pub(crate) struct Live {
    limits: Arc<ArcSwap<Limits>>,
    /// Whether each request gets a line in the log.
    access: Arc<AtomicBool>,
    /// Where spans go, if there are any.
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

    /// The limits for one request.
    #[inline]
    pub(crate) fn limits(&self) -> Arc<Limits> {
        self.limits.load_full()
    }

    /// Looks at one limit.
    #[inline]
    pub(crate) fn limit<T>(&self, of: impl FnOnce(&Limits) -> T) -> T {
        of(&self.limits.load())
    }

    /// Other limits, from now on.
    pub(crate) fn set_limits(&self, limits: Limits) {
        self.limits.store(Arc::new(limits));
    }

    /// Where spans go, if there are any.
    #[inline]
    pub(crate) const fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    /// Whether anybody wants to know of each request.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.traces.is_some() || self.logs_access()
    }

    /// Whether each request gets a line in the log.
    #[inline]
    pub(crate) fn logs_access(&self) -> bool {
        // It orders nothing: a request more or less is all the same.
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
