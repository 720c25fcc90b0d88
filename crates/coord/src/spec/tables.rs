//! Groups of keys, as tables of a source's definition.

use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::kind::{DisguiseMode, OnEmpty, StepRule};

/// The keys `prefill.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefillSpec {
    /// Whether there is a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Exponent of the queue's capacity: (highest sequence + 1) * 2^boost IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boost: Option<u32>,
    /// Percentage of the queue below which it is refilled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// Interval of further refills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Span>,
    /// Policy of an empty queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// Longest wait for an empty queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_max: Option<Span>,
}

/// The keys `disguise.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisguiseSpec {
    /// Extent of what is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DisguiseMode>,
    /// Number of the key ring in each server's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    /// Derivation of the source's key from the configured one: 1 or 2. Stored texts without it are
    /// from before there were versions, and mean 1; a new definition without it gets the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
    /// Most bits of a disguised number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
    /// Check value of the key, written when the source is defined. A server with another key of
    /// this number is rejected, since two keys would make the same ID twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// The keys `step.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Rule for how many numbers are taken at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<StepRule>,
    /// Numbers taken at a time, or at first, where the rule begins with a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Fewest numbers taken at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Most numbers taken at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Time that the numbers taken at a time should last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Percentage of all numbers taken that may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waste_max: Option<u8>,
}

/// The keys `counter.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterSpec {
    /// Lowest number of any key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Numbers taken from the store at a time, for all keys of a section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Basis of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// Name by which a key's section is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyNames>,
}

impl CounterSpec {
    /// Returns the part that never changes while the source exists.
    pub(super) fn identity(&self) -> Self {
        Self { step: None, confirm: None, ..self.clone() }
    }
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

/// The keys `serial.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SerialSpec {
    /// Prefix of each serial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Form of the date that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Time zone that decides the day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Digits of the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
    /// Time at which the number restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<SerialReset>,
}

/// The keys `uuid.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UuidSpec {
    /// 1, 3, 4, 5, 6, 7 or 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
    /// `dns`, `url`, `oid`, `x500` or a UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
