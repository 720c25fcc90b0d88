//! Settings that may change while the server runs.

use std::sync::Arc;

use super::state::Service;
use crate::config::Limits;
use crate::observe::live::Live;

impl Service {
    /// Returns the current limits.
    #[must_use]
    pub fn limits(&self) -> Arc<Limits> {
        self.live.limits()
    }

    /// Replaces the limits, for all requests from now on.
    pub fn set_limits(&self, limits: Limits) {
        self.node.limit_prefill(limits.prefill_ids_max);
        self.unsent.set_limit(limits.unsent_max.into());
        self.live.set_limits(limits);
    }

    /// Sets whether each request gets a line in the log, from now on.
    pub fn log_access(&self, access: bool) {
        self.live.log_access(access);
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }
}
