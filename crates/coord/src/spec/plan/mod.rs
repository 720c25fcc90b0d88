//! Plans: keys as written become a plan in which everything is decided and possible.

mod canonical;
mod check;
mod counter;
mod minter_plan;
mod segment;
mod serial;
mod stripe_keys;

use snowmint_core::Layout;
use snowmint_core::text::Format;

use super::{Order, Unique};
pub use crate::model::stripe::Stripe;
pub(super) use check::check;
pub use counter::{Confirm, CounterPlan, CounterSpec, KeyNames};
pub use minter_plan::MinterPlan;
pub use segment::{SegmentPlan, StepPlan};
pub use serial::{Period, SerialParts, SerialPlan};

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
}

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

/// Policy for a clock that is set back, with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollbackPlan {
    /// Ticks continue at half speed from elapsed time, up to a lead.
    Hold {
        /// Lead over the clock beyond which minting fails, in milliseconds.
        lead_max_ms: u64,
    },
    /// Small steps are waited out.
    Wait {
        /// Largest step that is waited out, in milliseconds.
        wait_max_ms: u64,
        /// Fixed wait in milliseconds; `None` for twice the step.
        fixed_ms: Option<u64>,
    },
    /// Every step is an error.
    Fail,
    /// The generator moves to another value of the clock bits.
    ClockSequence,
    /// Sequences continue within the last ticks.
    Ring {
        /// Lead over the clock beyond which minting fails, in milliseconds.
        lead_max_ms: u64,
    },
    /// Ticks are spent as needed.
    Borrow {
        /// Lead over the clock beyond which minting fails, in milliseconds.
        lead_max_ms: u64,
    },
}

impl RollbackPlan {
    /// Returns its name in configuration and in reports of clock steps.
    #[must_use]
    pub const fn policy(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Wait { .. } => "wait",
            Self::Fail => "fail",
            Self::ClockSequence => "clock-sequence",
            Self::Ring { .. } => "ring",
            Self::Borrow { .. } => "borrow",
        }
    }

    /// Returns how far IDs may lead the clock, in milliseconds.
    #[must_use]
    pub const fn lead_max_ms(&self) -> u64 {
        match *self {
            Self::Hold { lead_max_ms }
            | Self::Borrow { lead_max_ms }
            | Self::Ring { lead_max_ms } => lead_max_ms,
            Self::Wait { .. } | Self::Fail | Self::ClockSequence => 0,
        }
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

/// Disguise of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisguisePlan {
    /// Number of the key ring.
    pub key: u32,
    /// Derivation of the source's key from the key ring's.
    pub version: DisguiseVersion,
    /// Bits that are hidden.
    pub hides: Hides,
}

/// Bits that a disguise hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hides {
    /// All bits: 63 or 53 for numbers; `None` for a layout, whose own width is kept.
    All {
        /// Number of bits.
        bits: Option<u8>,
    },
    /// Worker and sequence bits, keyed by tick.
    BelowTime,
}

/// Derivation of a source's key from the configured one. It can never change: another key is
/// another permutation, and two permutations make one number of two IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisguiseVersion {
    /// 1: the configured key itself. All sources that name it have the same disguise, so a caller
    /// that may have IDs of one of them decoded can read those of all.
    Shared,
    /// 2: derived from the configured key, the namespace and the source's name. For sources that
    /// are unique in the namespace, whose IDs must differ, from the key and the namespace alone.
    Derived,
}

impl DisguiseVersion {
    /// Version of new definitions.
    pub const NEWEST: Self = Self::Derived;

    /// Returns the number used in definitions.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Shared => 1,
            Self::Derived => 2,
        }
    }
}

/// UUID version, with its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UuidPlan {
    /// Gregorian time, with a random node instead of a MAC address.
    V1,
    /// The MD5 of a name in a namespace.
    V3(uuid::Uuid),
    /// Random.
    V4,
    /// The SHA-1 of a name in a namespace.
    V5(uuid::Uuid),
    /// Version 1 with the bits in an order that sorts.
    V6,
    /// Unix milliseconds, a counter, and random bits.
    V7,
    /// 122 bits of the caller's own, or random.
    V8,
}

impl UuidPlan {
    /// Returns the version number.
    #[must_use]
    pub const fn version(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V3(_) => 3,
            Self::V4 => 4,
            Self::V5(_) => 5,
            Self::V6 => 6,
            Self::V7 => 7,
            Self::V8 => 8,
        }
    }
}
