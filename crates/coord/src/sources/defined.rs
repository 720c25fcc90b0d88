//! Definition of a source, parsed.

use std::sync::OnceLock;

use super::id_codec::IdCodec;
use crate::model::catalog::SourceState;
use crate::spec::{Plan, PrefillPlan, SnowflakePlan, SourceSpec};

/// Current definition of a source.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) plan: Plan,
    pub(crate) id_codec: IdCodec,
    pub(crate) state: SourceState,
    pub(crate) version: u64,
    /// Definition as canonical JSON, made on first use.
    pub(crate) text: OnceLock<String>,
}

/// Returns the plan of a source's queue. A deleted source has none: its IDs must never be issued.
pub(super) fn prefill_of(plan: &SnowflakePlan, state: SourceState) -> Option<PrefillPlan> {
    plan.prefill.filter(|_| state != SourceState::Deleted)
}
