//! Definition of a source: one set of keys, the same in a configuration file, on the command line,
//! over the network and in the library.
//!
//! [`SourceSpec`] holds the keys as written; none of them is required. [`SourceSpec::check`] turns
//! them into a [`Plan`], in which everything is decided and possible. An impossible value is an
//! error that names its key. The catalog keeps [`SourceSpec::canonical`] with every default written
//! out: a later version with other defaults does not change an existing source.

mod duration;
mod error;
pub mod keys;
mod plan;
pub(crate) mod stored;
pub(crate) mod stores;
mod tables;
#[cfg(test)]
mod tests;
pub mod upstream;
mod written;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::json;
pub use duration::{Span, SpanError};
pub use error::SpecError;
pub use plan::{
    Confirm, CounterPlan, CounterSpec, DisguisePlan, DisguiseVersion, Hides, KeyNames, MinterPlan,
    Period, Plan, PrefillPlan, RollbackPlan, SegmentPlan, SerialParts, SerialPlan, SnowflakePlan,
    StartPlan, StepPlan, Stripe, UuidPlan,
};
pub use tables::{DisguiseSpec, PrefillSpec, SerialReset, SerialSpec, StepSpec, UuidSpec};

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

    /// Returns whether its IDs are 64-bit numbers.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Snowflake | Self::Segment | Self::Counter)
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

/// A source's keys as written; none is required. See [`keys::KEYS`] for the meaning of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Kind of IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Whether the source mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Layout of an ID's bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// Time at which tick 0 begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// Whether a layout that ends within a year is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_life: Option<bool>,
    /// Minter: process or store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mint: Option<MintBy>,
    /// Worker number of the store that mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// Scope in which an ID never comes twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// Scope of the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// Policy for a clock that is set back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_rollback: Option<OnRollback>,
    /// Longest lead of IDs over the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_max: Option<Span>,
    /// Largest step back that is waited out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_max: Option<Span>,
    /// `twice` or a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// Longest lag of IDs behind the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Span>,
    /// `zero`, `random`, `random:N` or `carried`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_start: Option<String>,
    /// Queue into which IDs are minted ahead of need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill: Option<PrefillSpec>,
    /// Disguise of the IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disguise: Option<DisguiseSpec>,
    /// Text format of IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Rule for how many numbers a segment source takes from the store at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSpec>,
    /// Stripe of a segment source, from 1 to `increment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Distance between the numbers of a segment source: the number of stripes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increment: Option<u64>,
    /// Lowest number of a segment source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Position of the stripe's first number among the store's numbers: written by a restripe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<u64>,
    /// Number below which a segment source stays, and has stayed: written while stripes are
    /// changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Upstream of a segment source's numbers, while another system hands them out too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Stores that serve the source: each has a stripe of a segment source's numbers, or mints
    /// under its own worker number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stores: Option<String>,
    /// Keys of a counter source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<CounterSpec>,
    /// Serial form of a segment source's numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<SerialSpec>,
    /// UUID version and namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<UuidSpec>,
}

impl SourceSpec {
    /// Returns a source of this kind, with every default.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// Parses a source from JSON. For texts of the catalog, see [`SourceSpec::from_stored`].
    ///
    /// # Errors
    /// [`SpecError::Unreadable`], with the parser's message.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        serde_json::from_str(json)
            .map_err(|error| SpecError::Unreadable { reason: json::reason(&error) })
    }

    /// Sets one key by its dotted name, like the command line: `prefill.boost` to `3`.
    ///
    /// # Errors
    /// [`SpecError::UnknownKey`], or [`SpecError::Value`] when the key cannot take the text.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        let key = keys::find(name).ok_or_else(|| SpecError::UnknownKey { key: name.into() })?;
        let refused =
            |reason: String| SpecError::Value { key: key.name, value: text.into(), reason };
        let value = match key.takes {
            keys::Takes::Text => serde_json::Value::from(text),
            keys::Takes::Number => text
                .parse::<u64>()
                .map_err(|_| refused("it takes a whole number of at least 0".into()))?
                .into(),
            keys::Takes::Flag => {
                text.parse::<bool>().map_err(|_| refused("it takes true or false".into()))?.into()
            }
        };
        let mut whole = self.to_json();
        let mut table = &mut whole;
        let mut parts = key.name.split('.').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_some() {
                table = table
                    .entry(part)
                    .or_insert_with(|| serde_json::Map::new().into())
                    .as_object_mut()
                    .ok_or_else(|| refused("it is not a table".into()))?;
            } else {
                table.insert(part.into(), value);
                break;
            }
        }
        *self =
            serde_json::from_value(whole.into()).map_err(|error| refused(json::reason(&error)))?;
        Ok(())
    }

    /// Decides everything that was left open.
    ///
    /// # Errors
    /// [`SpecError`], which names the impossible key.
    pub fn check(&self) -> Result<Plan, SpecError> {
        plan::check(self)
    }

    /// Returns whether the source mints; true by default.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled != Some(false)
    }

    /// Returns the kind; snowflake by default.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or_default()
    }

    /// Returns the same source with every default for its kind written out. Checking it gives the
    /// same [`Plan`].
    ///
    /// # Errors
    /// Those of [`SourceSpec::check`].
    pub fn canonical(&self) -> Result<Self, SpecError> {
        let mut canonical = self.check()?.to_spec();
        canonical.enabled = Some(self.is_enabled());
        if let (Some(to), Some(from)) = (&mut canonical.disguise, &self.disguise) {
            to.check.clone_from(&from.check);
        }
        Ok(canonical)
    }

    /// Returns the part that never changes while the source exists, as a stored text. Two
    /// processes that differ in it would make IDs that collide.
    ///
    /// # Errors
    /// Those of [`SourceSpec::check`].
    pub fn identity(&self) -> Result<String, SpecError> {
        let canonical = self.canonical()?;
        let identity = Self {
            kind: canonical.kind,
            layout: canonical.layout,
            mint: canonical.mint,
            worker: canonical.worker,
            unique: canonical.unique,
            order: canonical.order,
            disguise: canonical.disguise,
            offset: canonical.offset,
            increment: canonical.increment,
            first: canonical.first,
            first_at: canonical.first_at,
            upstream: canonical.upstream,
            // The set of stores may change; that there are several may not.
            stores: canonical.stores.map(|_| "several".into()),
            serial: canonical.serial,
            uuid: canonical.uuid,
            counter: canonical.counter.as_ref().map(CounterSpec::identity),
            ..Self::default()
        };
        Ok(identity.to_stored())
    }

    /// Returns the keys that are set, as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(map)) => map,
            // Plain data with text keys always becomes an object.
            _ => serde_json::Map::new(),
        }
    }
}
