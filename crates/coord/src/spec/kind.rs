//! Kinds of sources, and the words that other keys take as their values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a source's IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Time, worker and sequence in one number.
    #[default]
    Snowflake,
    /// Numbers from ranges that the store hands out.
    Segment,
    /// Numbers that strictly increase per key, over the whole cluster.
    Counter,
    /// UUIDs of one version.
    Uuid,
    /// ULIDs.
    Ulid,
}

impl Kind {
    /// Returns the name that configuration uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Snowflake => "snowflake",
            Self::Segment => "segment",
            Self::Counter => "counter",
            Self::Uuid => "uuid",
            Self::Ulid => "ulid",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Minter of a snowflake source's IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MintBy {
    /// Each process mints, from windows that the store granted.
    #[default]
    Process,
    /// The store mints at each request: a process keeps nothing.
    Store,
}

/// Scope in which an ID never comes twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unique {
    /// The source.
    #[default]
    Source,
    /// All sources of the namespace with this value. They share one generator in each process.
    Namespace,
}

/// Scope of the order of IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// IDs increase within a process.
    #[default]
    Local,
    /// IDs increase over all processes.
    Global,
}

/// Policy of a source for a clock that is set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRollback {
    /// Ticks continue from elapsed time at half speed until the clock has caught up.
    Hold,
    /// Small steps are waited out, larger ones are errors (Leaf).
    Wait,
    /// Every step is an error (Twitter, Baidu).
    Fail,
    /// The generator moves to another value of the ID's clock bits (article 000).
    ClockSequence,
    /// Sequences continue where each of the last milliseconds left them (article 002's 200 slots).
    Ring,
    /// The clock is read once, and ticks are spent as needed (Baidu's cached generator).
    Borrow,
}

/// Disguise of the order and number of IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisguiseMode {
    /// IDs are not disguised.
    #[default]
    None,
    /// All bits are permuted: nothing shows.
    Full,
    /// Worker and sequence bits are permuted, keyed by tick: IDs still sort by time.
    Ordered,
}

/// Policy of a prefilled source whose queue is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnEmpty {
    /// Fail at once.
    #[default]
    Error,
    /// Wait for the refill, up to `prefill.wait_max`.
    Wait,
}

/// Rule for how many numbers a segment source takes from the store at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepRule {
    /// Follows the consumption rate, the store's latency, and a bound on waste.
    #[default]
    Adaptive,
    /// Always the same number.
    Fixed,
    /// Doubled when the numbers lasted less than 15 minutes, halved when more than 30 (Leaf).
    Leaf,
}

/// Basis of a counter's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirm {
    /// The lease, on a clock that counts while the machine sleeps.
    #[default]
    Lease,
    /// The store, called before each result: a safeguard against pauses that no clock shows.
    Store,
}

/// Name by which a key's section is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyNames {
    /// `SOURCE:KEY`, the key's name in RESP.
    #[default]
    WithSource,
    /// `KEY` alone: for the source that RESP uses for keys without a source.
    Alone,
}

/// Time at which the number of a serial restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SerialReset {
    /// Never.
    Never,
    /// With each year.
    Year,
    /// With each month.
    Month,
    /// With each day.
    Day,
}

impl SerialReset {
    /// Returns the name that configuration uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
        }
    }
}

/// Returns the configuration name of a value that serialises as a text.
pub(super) fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
