//! Counters: their keys, checked, and back.

use serde::{Deserialize, Serialize};

use super::check::value;
use crate::model::segment::NUMBER_MAX;
use crate::spec::{Kind, SourceSpec, SpecError};

/// Default step: a restart skips at most as many numbers of each key, and one store write brings
/// them.
const STEP_DEFAULT: u64 = 10_000;
/// Largest step, 2^40 of 2^63: one write may not use up a section's numbers.
const STEP_LIMIT: u64 = 1 << 40;

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

/// A counter source in which everything is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterPlan {
    /// Lowest number of any key.
    pub start: u64,
    /// Numbers taken from the store at a time.
    pub step: u64,
    /// Whether the store is called before each result.
    pub confirm: bool,
    /// Whether a key's section is found by the key alone.
    pub keys_alone: bool,
}

pub(super) fn check(spec: &SourceSpec) -> Result<CounterPlan, SpecError> {
    let counter = spec.counter.clone().unwrap_or_default();
    let start = counter.start.unwrap_or(1);
    if !(1..=NUMBER_MAX / 2).contains(&start) {
        return Err(value("counter.start", start, format!("take 1 to {}", NUMBER_MAX / 2)));
    }
    let step = counter.step.unwrap_or(STEP_DEFAULT);
    if !(1..=STEP_LIMIT).contains(&step) {
        return Err(value("counter.step", step, format!("take 1 to {STEP_LIMIT}")));
    }
    Ok(CounterPlan {
        start,
        step,
        confirm: counter.confirm == Some(Confirm::Store),
        keys_alone: counter.keys == Some(KeyNames::Alone),
    })
}

impl CounterPlan {
    pub(super) fn to_spec(self) -> SourceSpec {
        let counter = CounterSpec {
            start: Some(self.start),
            step: Some(self.step),
            confirm: Some(if self.confirm { Confirm::Store } else { Confirm::Lease }),
            keys: Some(if self.keys_alone { KeyNames::Alone } else { KeyNames::WithSource }),
        };
        SourceSpec { counter: Some(counter), ..SourceSpec::of(Kind::Counter) }
    }
}

impl CounterSpec {
    /// Returns the part that never changes while the source exists.
    pub(in crate::spec) fn identity(&self) -> Self {
        Self { step: None, confirm: None, ..self.clone() }
    }
}
