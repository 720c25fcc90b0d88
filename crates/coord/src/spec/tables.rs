//! Keys that belong together, as tables of a source's keys.

use serde::{Deserialize, Serialize};

use super::{DisguiseMode, OnEmpty, Span, StepRule};

/// The keys `prefill.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefillSpec {
    /// Whether there is a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The queue holds (highest sequence + 1) * 2^boost IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boost: Option<u32>,
    /// The share of the queue, in percent, below which it is refilled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// How often it is also refilled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Span>,
    /// What a dry queue does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_empty: Option<OnEmpty>,
    /// The longest wait for a dry queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_max: Option<Span>,
}

/// The keys `disguise.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisguiseSpec {
    /// How much is hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DisguiseMode>,
    /// The number of the key ring in each server's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<u32>,
    /// How the source's key is made of the configured one: 1 or 2. Texts that leave it out are of before there were
    /// versions, and say 1; a new definition without it gets the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
    /// How many bits a disguised number may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
    /// A check value of the key, written when the source is defined: a server whose key of this
    /// number is another one is refused, since two keys would make the same ID twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// The keys `step.*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// How it is decided how many numbers are taken at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<StepRule>,
    /// How many are taken at once, or at first, where the rule begins from a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The fewest numbers taken at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The most numbers taken at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// How long the numbers taken at once should last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// The share of all numbers taken, in percent, that may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waste_max: Option<u8>,
}

/// When the number of a serial begins anew.
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
    /// The name that configuration uses.
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
    /// What each serial begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The form of the date that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The time zone that decides which day it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// How many digits the number has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
    /// When the number begins anew.
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
