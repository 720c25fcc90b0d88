//! Readiness of a running node: what the driver reports, and the reasons of the own sources.

use std::sync::PoisonError;

use super::reason::Readiness;
use super::state::Node;

impl Node {
    /// Returns whether the node can mint for all of its [own](Node::is_own) sources that were
    /// opened, or [whose first opening](Node::begin_opening) is not over, and the reasons if not.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let core = self.core();
        let mut readiness = core.readiness.lock().unwrap_or_else(PoisonError::into_inner).clone();
        readiness.reasons.extend(core.own_reasons());
        // The reasons of the driver are more precise.
        if readiness.reasons.is_empty() {
            readiness.reasons = core.opening_reasons();
        }
        readiness.ready &= readiness.reasons.is_empty();
        readiness
    }
}
