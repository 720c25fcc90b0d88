//! Plans: keys as written become a plan in which everything is decided and possible.

mod counter;
mod disguise;
mod minter_check;
mod segment;
mod serial;
mod snowflake;
mod snowflake_check;
mod stripe_keys;
mod text;
mod uuid_plan;

pub use counter::CounterPlan;
pub use disguise::{DisguisePlan, DisguiseVersion, Hides};
pub use segment::{SegmentPlan, StepPlan};
pub use serial::{Period, SerialParts, SerialPlan};
pub use snowflake::{MinterPlan, PrefillPlan, RollbackPlan, SnowflakePlan, StartPlan};
pub use uuid_plan::UuidPlan;

pub use crate::model::stripe::Stripe;
use crate::spec::error::SpecError;
use crate::spec::kind::Kind;
use crate::spec::source_spec::SourceSpec;

/// A source in which everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// Time, worker and sequence.
    Snowflake(SnowflakePlan),
    /// Ranges of numbers.
    Segment(SegmentPlan),
    /// Numbers for each key.
    Counter(CounterPlan),
    /// UUIDs.
    Uuid(UuidPlan),
    /// ULIDs.
    Ulid,
}

impl Plan {
    /// Returns the names of a multi-store source's stores; empty for the primary store alone.
    #[must_use]
    pub fn stores(&self) -> Vec<&str> {
        match self {
            Self::Segment(plan) => plan.stores.iter().map(String::as_str).collect(),
            Self::Snowflake(plan) => plan.minter_plan.minters().map(|(store, _)| store).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the keys that make this plan, every default written out.
    pub(in crate::spec) fn to_spec(&self) -> SourceSpec {
        match self {
            Self::Snowflake(plan) => plan.to_spec(),
            Self::Segment(plan) => plan.to_spec(),
            Self::Counter(plan) => plan.to_spec(),
            Self::Uuid(plan) => plan.to_spec(),
            Self::Ulid => SourceSpec::of(Kind::Ulid),
        }
    }
}

pub(super) fn check(spec: &SourceSpec) -> Result<Plan, SpecError> {
    let kind = spec.kind();
    reject_unused_keys(spec, kind)?;
    match kind {
        Kind::Snowflake => snowflake_check::snowflake(spec).map(Plan::Snowflake),
        Kind::Segment => SegmentPlan::check(spec).map(Plan::Segment),
        Kind::Uuid => uuid_plan::uuid(spec).map(Plan::Uuid),
        Kind::Counter => counter::check(spec).map(Plan::Counter),
        Kind::Ulid => Ok(Plan::Ulid),
    }
}

/// Rejects a key without a meaning: it is a misunderstanding and never ignored.
fn reject_unused_keys(spec: &SourceSpec, kind: Kind) -> Result<(), SpecError> {
    let snowflake = kind == Kind::Snowflake;
    let segment = kind == Kind::Segment;
    let rules = [
        ("layout", spec.layout.is_some(), snowflake),
        ("epoch", spec.epoch.is_some(), snowflake),
        ("short_life", spec.short_life.is_some(), snowflake),
        ("mint", spec.mint.is_some(), snowflake),
        ("worker", spec.worker.is_some(), snowflake),
        ("unique", spec.unique.is_some(), snowflake),
        ("order", spec.order.is_some(), snowflake),
        ("on_rollback", spec.on_rollback.is_some(), snowflake),
        ("lead_max", spec.lead_max.is_some(), snowflake),
        ("wait_max", spec.wait_max.is_some(), snowflake),
        ("wait_for", spec.wait_for.is_some(), snowflake),
        ("burst", spec.burst.is_some(), snowflake),
        ("sequence_start", spec.sequence_start.is_some(), snowflake),
        ("prefill", spec.prefill.is_some(), snowflake),
        ("disguise", spec.disguise.is_some(), snowflake || segment),
        ("text", spec.text.is_some(), snowflake || segment),
        ("step", spec.step.is_some(), segment),
        ("offset", spec.offset.is_some(), segment),
        ("increment", spec.increment.is_some(), segment),
        ("first", spec.first.is_some(), segment),
        ("first_at", spec.first_at.is_some(), segment),
        ("until", spec.until.is_some(), segment),
        ("upstream", spec.upstream.is_some(), segment),
        ("stores", spec.stores.is_some(), snowflake || segment),
        ("counter", spec.counter.is_some(), kind == Kind::Counter),
        ("serial", spec.serial.is_some(), segment),
        ("uuid", spec.uuid.is_some(), kind == Kind::Uuid),
    ];
    match rules.into_iter().find(|(_, given, means)| *given && !means) {
        Some((key, ..)) => Err(SpecError::NotForKind { key, kind }),
        None => Ok(()),
    }
}
