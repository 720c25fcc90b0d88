//! Snowflake sources: what is decided of them, and their keys, every default written out.

use snowmint_core::Layout;
use snowmint_core::text::Format;

use super::disguise::DisguisePlan;
use super::rollback::RollbackPlan;
use crate::spec::duration::Span;
use crate::spec::kind::{Kind, MintBy, OnEmpty, Order, Unique};
use crate::spec::source_spec::{PrefillSpec, SourceSpec};

/// A snowflake source in which everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnowflakePlan {
    /// Layout of an ID's bits.
    pub layout: Layout,
    /// Minter: processes or stores.
    pub minter_plan: MinterPlan,
    /// Whether its layout may end within a year.
    pub short_life: bool,
    /// Scope in which an ID never comes twice.
    pub unique: Unique,
    /// Scope of the order of IDs.
    pub order: Order,
    /// Policy for a clock that is set back.
    pub rollback_plan: RollbackPlan,
    /// Longest lag of IDs behind the clock, in milliseconds.
    pub burst_ms: u64,
    /// Start of a tick's sequence.
    pub start: StartPlan,
    /// Queue ahead of need, if any.
    pub prefill: Option<PrefillPlan>,
    /// Disguise, if any.
    pub disguise: Option<DisguisePlan>,
    /// Text format of IDs.
    pub text: Format,
}

/// Minter of a snowflake source's IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MinterPlan {
    /// Each process, under a worker number that it claimed.
    Process,
    /// The store, at each request.
    Store {
        /// Worker number in all its IDs.
        worker: u64,
    },
    /// Any of these stores, at each request, each with the worker number in its IDs. Entries
    /// without a name are of removed stores, which mint no more.
    Stores(Vec<(String, u64)>),
}

impl MinterPlan {
    /// Returns the minting stores of a multi-store source, with the worker number in their IDs.
    pub(crate) fn minters(&self) -> impl Iterator<Item = (&str, u64)> {
        let stores = match self {
            Self::Stores(stores) => stores.as_slice(),
            Self::Process | Self::Store { .. } => &[],
        };
        let named = stores.iter().filter(|(store, _)| !store.is_empty());
        named.map(|(store, worker)| (store.as_str(), *worker))
    }

    /// Writes the keys that are not defaults: then no reader has to know about the others.
    fn to_spec(&self, spec: &mut SourceSpec) {
        match self {
            Self::Process => return,
            Self::Store { worker } => spec.worker = Some(*worker),
            Self::Stores(stores) => {
                let each = stores.iter().map(|(store, worker)| format!("{store}={worker}"));
                spec.stores = Some(each.collect::<Vec<_>>().join(","));
            }
        }
        spec.mint = Some(MintBy::Store);
    }
}

/// Start of a tick's sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPlan {
    /// Starts at 0.
    Zero,
    /// Starts at a random number below this one.
    RandomBelow(u64),
    /// Starts where the tick before ended.
    Carried,
    /// Starts so that IDs take turns over this many shards, at least 2.
    Shards(u64),
}

/// Queue ahead of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillPlan {
    /// IDs that it holds: a power of two.
    pub capacity: usize,
    /// Exponent that `capacity` was made from.
    pub boost: u32,
    /// Number of IDs below which it is refilled.
    pub refill_below: usize,
    /// The same, in percent of the capacity.
    pub threshold_percent: u32,
    /// Interval of further refills, in milliseconds.
    pub schedule_ms: Option<u64>,
    /// Milliseconds that a taker waits for an empty queue; `None` for an error at once.
    pub wait_max_ms: Option<u64>,
}

impl SnowflakePlan {
    pub(super) fn to_spec(&self) -> SourceSpec {
        let mut spec = SourceSpec {
            // The layout's written-out form holds unit and epoch.
            layout: Some(self.layout.to_string()),
            // Left out when false: then no reader has to know about it.
            short_life: self.short_life.then_some(true),
            unique: Some(self.unique),
            order: Some(self.order),
            burst: Some(Span::from_ms(self.burst_ms)),
            sequence_start: match self.start {
                StartPlan::Zero => Some("zero".into()),
                StartPlan::RandomBelow(below) => Some(format!("random:{below}")),
                StartPlan::Carried => Some("carried".into()),
                StartPlan::Shards(_) => None,
            },
            // Left out where it is 1: then no reader has to know about it.
            shards: match self.start {
                StartPlan::Shards(count) => Some(count),
                _ => None,
            },
            prefill: self.prefill.map(PrefillPlan::to_spec),
            disguise: self.disguise.map(DisguisePlan::to_spec),
            text: Some(self.text.to_string()),
            ..SourceSpec::of(Kind::Snowflake)
        };
        self.minter_plan.to_spec(&mut spec);
        self.rollback_plan.to_spec(&mut spec);
        spec
    }
}

impl PrefillPlan {
    fn to_spec(self) -> PrefillSpec {
        PrefillSpec {
            enabled: Some(true),
            boost: Some(self.boost),
            threshold: Some(self.threshold_percent),
            schedule: self.schedule_ms.map(Span::from_ms),
            on_empty: Some(if self.wait_max_ms.is_some() { OnEmpty::Wait } else { OnEmpty::Error }),
            wait_max: self.wait_max_ms.map(Span::from_ms),
        }
    }
}
