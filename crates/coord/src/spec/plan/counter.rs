//! Counters: their keys, checked, and back.

use crate::spec::bounds::{COUNTER_START, STEP};
use crate::spec::error::{SpecError, within};
use crate::spec::kind::{Confirm, KeyNames, Kind};
use crate::spec::source_spec::{CounterSpec, SourceSpec};

/// Default step: a restart skips at most as many numbers of each key, and one store write brings
/// them.
const STEP_DEFAULT: u64 = 10_000;

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
    Ok(CounterPlan {
        start: within("counter.start", counter.start.unwrap_or(1), &COUNTER_START, "")?,
        step: within("counter.step", counter.step.unwrap_or(STEP_DEFAULT), &STEP, "")?,
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
