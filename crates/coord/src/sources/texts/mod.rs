//! Sources of texts, through well-kept crates: a file for each kind, and the list of them.

mod ulid;
mod uuid;

use std::sync::Arc;

use self::ulid::UlidSource;
use self::uuid::UuidSource;
use super::source_kind::SourceKind;
use crate::error::Result;
use crate::platform::clock::NodeClock;
use crate::spec::TextPlan;

/// Opens the source of a plan.
pub(super) fn open(plan: &TextPlan, clock: &NodeClock) -> Result<Box<dyn SourceKind>> {
    let clock = Arc::clone(clock);
    Ok(match plan {
        TextPlan::Uuid(plan) => Box::new(UuidSource::new(*plan, clock)?),
        TextPlan::Ulid => Box::new(UlidSource::new(clock)),
    })
}
