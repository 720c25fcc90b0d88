//! Plans: keys as written become a plan in which everything is decided and possible.

mod counter;
mod disguise;
mod minter_check;
mod rollback;
mod segment;
mod serial;
mod snowflake;
mod snowflake_check;
mod span;
mod stripe_keys;
mod text;
mod uuid_plan;

pub use counter::CounterPlan;
pub use disguise::{DisguisePlan, DisguiseVersion, Hides};
pub use rollback::RollbackPlan;
pub use segment::{SegmentPlan, StepPlan};
pub use serial::{Period, SerialParts, SerialPlan};
pub use snowflake::{MinterPlan, PrefillPlan, SnowflakePlan, StartPlan};
pub use uuid_plan::UuidPlan;

pub use crate::model::stripe::Stripe;
use crate::spec::error::SpecError;
use crate::spec::keys;
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
    /// Texts, which need no store.
    Text(TextPlan),
}

/// A source of texts in which everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextPlan {
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

    /// Decides everything that a source's keys leave open.
    pub(in crate::spec) fn check(spec: &SourceSpec) -> Result<Self, SpecError> {
        let kind = spec.kind();
        // A key without a meaning is a misunderstanding and never ignored.
        if let Some(key) = keys::without_meaning(&spec.to_json(), kind) {
            return Err(SpecError::NotForKind { key, kind });
        }
        match kind {
            Kind::Snowflake => snowflake_check::snowflake(spec).map(Self::Snowflake),
            Kind::Segment => SegmentPlan::check(spec).map(Self::Segment),
            Kind::Counter => counter::check(spec).map(Self::Counter),
            Kind::Uuid => uuid_plan::uuid(spec).map(TextPlan::Uuid).map(Self::Text),
            Kind::Ulid => Ok(Self::Text(TextPlan::Ulid)),
        }
    }

    /// Returns the keys that make this plan, every default written out.
    pub(in crate::spec) fn to_spec(&self) -> SourceSpec {
        match self {
            Self::Snowflake(plan) => plan.to_spec(),
            Self::Segment(plan) => plan.to_spec(),
            Self::Counter(plan) => plan.to_spec(),
            Self::Text(TextPlan::Uuid(plan)) => plan.to_spec(),
            Self::Text(TextPlan::Ulid) => SourceSpec::of(Kind::Ulid),
        }
    }
}
