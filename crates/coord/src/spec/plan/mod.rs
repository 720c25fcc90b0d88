//! From keys as they were written to a plan in which everything is decided and possible.

mod canonical;
mod check;
mod counter;
mod minted;
mod segment;
mod serial;
mod stripe;

use snowmint_core::Layout;
use snowmint_core::text::Format;

use super::{Order, Unique};
pub(super) use check::check;
pub use counter::{Confirm, CounterPlan, CounterSpec, KeyNames};
pub use minted::Minted;
pub use segment::{SegmentPlan, StepPlan};
pub use serial::{Period, SerialParts, SerialPlan};
pub use stripe::Stripe;

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
    /// The names of the stores that serve it, of a source that has several; none: its own store alone.
    #[must_use]
    pub fn stores(&self) -> Vec<&str> {
        match self {
            Self::Segment(plan) => plan.stores.iter().map(String::as_str).collect(),
            Self::Snowflake(plan) => plan.minted.minters().map(|(store, _)| store).collect(),
            _ => Vec::new(),
        }
    }
}

/// A snowflake source in which everything is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnowflakePlan {
    /// How bits are divided.
    pub layout: Layout,
    /// Who mints.
    pub minted: Minted,
    /// Whether it may end within a year.
    pub short_life: bool,
    /// Within what an ID never comes twice.
    pub unique: Unique,
    /// How far the order of IDs reaches.
    pub order: Order,
    /// What happens when the clock goes back.
    pub clockwork: Clockwork,
    /// How far IDs may lag the clock, in milliseconds.
    pub burst_ms: u64,
    /// Where a tick's sequence starts.
    pub start: StartPlan,
    /// The queue ahead of need, if any.
    pub prefill: Option<PrefillPlan>,
    /// The disguise, if any.
    pub disguise: Option<DisguisePlan>,
    /// The form of IDs as text.
    pub text: Format,
}

/// What happens when the clock goes back, with its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clockwork {
    /// Half speed from elapsed time, up to a lead.
    Hold {
        /// Beyond this lead over the clock minting is refused.
        lead_max_ms: u64,
    },
    /// Small steps are waited out.
    Wait {
        /// The largest step that is.
        wait_max_ms: u64,
        /// A fixed wait; none: twice the step.
        fixed_ms: Option<u64>,
    },
    /// Refused.
    Fail,
    /// Another value of the clock bits.
    ClockSequence,
    /// Sequences go on within the last ticks.
    Ring {
        /// Beyond this lead over the clock minting is refused.
        lead_max_ms: u64,
    },
    /// Ticks are spent as needed.
    Borrow {
        /// Beyond this lead over the clock minting is refused.
        lead_max_ms: u64,
    },
}

impl Clockwork {
    /// Its name in configuration, and in what is told of clock steps.
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

    /// How far IDs may lead the clock, in milliseconds.
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

/// Where a tick's sequence starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPlan {
    /// At 0.
    Zero,
    /// At a random number below this.
    RandomBelow(u64),
    /// Where the tick before left it.
    Carried,
}

/// A queue ahead of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefillPlan {
    /// How many IDs it holds: a power of two.
    pub capacity: usize,
    /// The exponent that `capacity` was made from.
    pub boost: u32,
    /// Below this many IDs it is refilled.
    pub refill_below: usize,
    /// The same, in percent of the capacity.
    pub threshold_percent: u32,
    /// How often it is also refilled, in milliseconds.
    pub schedule_ms: Option<u64>,
    /// How long a taker waits for a dry queue; none: an error at once.
    pub wait_max_ms: Option<u64>,
}

/// A disguise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisguisePlan {
    /// The number of the key ring.
    pub key: u32,
    /// How the source's key is made of that one.
    pub version: DisguiseVersion,
    /// What is hidden.
    pub hides: Hides,
}

/// What a disguise hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hides {
    /// All bits: 63 or 53 for numbers; none for a layout, whose own width is kept.
    All {
        /// How many.
        bits: Option<u8>,
    },
    /// Worker and sequence bits, keyed by tick.
    BelowTime,
}

/// How a source's key is made of the one that servers are configured with. It can never change: another key is
/// another permutation, and two of them make one number of two IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisguiseVersion {
    /// 1: it is that key. All sources that name it are disguised alike, so whoever may have IDs of one of them decoded
    /// reads those of the others.
    Shared,
    /// 2: derived from that key, the namespace and the name of the source; of sources that are unique in the namespace,
    /// whose IDs must differ, from the namespace alone.
    Derived,
}

impl DisguiseVersion {
    /// What new definitions get.
    pub const NEWEST: Self = Self::Derived;

    /// As definitions say it.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Shared => 1,
            Self::Derived => 2,
        }
    }
}

/// A kind of UUIDs.
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
    /// As version 1, with the bits in an order that sorts.
    V6,
    /// Unix milliseconds, a counter, and random bits.
    V7,
    /// 122 bits of the caller's own, or random.
    V8,
}

impl UuidPlan {
    /// The version number.
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
