//! What a source is: one set of keys, the same in a configuration file, on the command line, over
//! the network and in the library.
//!
//! [`SourceSpec`] holds the keys as they were written, none of them required. [`SourceSpec::check`]
//! turns them into a [`Plan`], in which everything is decided and possible; whatever is not possible
//! is an error that names the key. The catalog keeps [`SourceSpec::canonical`], where every default
//! is written out, so that a later version with other defaults does not change a source that exists.

mod duration;
mod error;
pub mod keys;
mod plan;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use duration::{Span, SpanError};
pub use error::SpecError;
pub use plan::{
    Clockwork, Confirm, CounterPlan, CounterSpec, DisguisePlan, DisguiseVersion, Hides, KeyNames,
    Minted, Period, Plan, PrefillPlan, SegmentPlan, SerialParts, SerialPlan, SnowflakePlan,
    StartPlan, StepPlan, Stripe, UuidPlan,
};
pub use tables::{DisguiseSpec, PrefillSpec, SerialReset, SerialSpec, StepSpec, UuidSpec};

/// What kind of IDs a source has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Time, worker and sequence in one number.
    #[default]
    Snowflake,
    /// Numbers from ranges that the store hands out.
    Segment,
    /// Strictly increasing per key, over the whole cluster.
    Counter,
    /// UUIDs of one version.
    Uuid,
    /// ULIDs.
    Ulid,
}

impl Kind {
    /// The name that configuration uses.
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

    /// Whether its IDs are numbers of 64 bits.
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

/// Who mints the IDs of a snowflake source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MintBy {
    /// Each process, from what the store granted it.
    #[default]
    Process,
    /// The store, at each request: nothing is kept in a process.
    Store,
}

/// Within what an ID never comes twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unique {
    /// Within its source.
    #[default]
    Source,
    /// Within all sources of the namespace that say so. They share one generator in each process.
    Namespace,
}

/// How far the order of IDs reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// IDs increase within a process.
    #[default]
    Local,
    /// IDs increase over all processes.
    Global,
}

/// What a source does when the clock goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnRollback {
    /// Ticks keep flowing from elapsed time at half speed until the clock has caught up.
    Hold,
    /// Small steps are waited out, larger ones refused (Leaf).
    Wait,
    /// Every step is refused (Twitter, Baidu).
    Fail,
    /// Another value of the ID's clock bits is taken (article 000).
    ClockSequence,
    /// Sequences go on where each of the last milliseconds left them (article 002's 200 slots).
    Ring,
    /// The clock is read once, and ticks are spent as needed (Baidu's cached generator).
    Borrow,
}

/// How a disguise hides the order and number of IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisguiseMode {
    /// IDs are as they are.
    #[default]
    None,
    /// All bits are permuted: nothing shows.
    Full,
    /// Worker and sequence bits are permuted, keyed by tick: IDs still sort by time.
    Ordered,
}

/// What a prefilled source does when its queue is dry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnEmpty {
    /// Refuse at once.
    #[default]
    Error,
    /// Wait for the refill, up to `prefill.wait_max`.
    Wait,
}

/// How a segment source decides how many numbers it takes from the store at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepRule {
    /// By the rate at which numbers go, the store's latency, and a bound on waste.
    #[default]
    Adaptive,
    /// Always as many.
    Fixed,
    /// Doubled when the numbers lasted less than 15 minutes, halved when more than 30 (Leaf).
    Leaf,
}

/// A source's keys as they were written; none is required. See [`keys::KEYS`] for what each means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// The kind of IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Whether the source mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How the bits of an ID are divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// When tick 0 begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// Whether a layout that ends within a year is taken as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_life: Option<bool>,
    /// Who mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mint: Option<MintBy>,
    /// The worker number of the store that mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// Within what an ID never comes twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// How far the order reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// What happens when the clock goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_rollback: Option<OnRollback>,
    /// How far IDs may run ahead of the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_max: Option<Span>,
    /// The largest step back that is waited out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_max: Option<Span>,
    /// `twice` or a length of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// How far IDs may lag the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Span>,
    /// `zero`, `random`, `random:N` or `carried`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_start: Option<String>,
    /// The queue that IDs are minted into ahead of need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefill: Option<PrefillSpec>,
    /// How IDs are disguised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disguise: Option<DisguiseSpec>,
    /// The form of IDs as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many numbers a segment source takes from the store at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSpec>,
    /// Which stripe of the numbers a segment source has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The distance between the numbers of a segment source: how many stripes there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increment: Option<u64>,
    /// No number of a segment source is lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Which of the store's numbers is the first of the stripe: written by a restripe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<u64>,
    /// No number of a segment source is as high, and none was handed out: written while stripes are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Where the numbers of a segment source come from while another system hands them out too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The stores that serve the source: each has a residue of a segment source's numbers, or a worker
    /// number under which it mints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stores: Option<String>,
    /// How counters count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<CounterSpec>,
    /// How the numbers of a segment source are written as serials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<SerialSpec>,
    /// What kind of UUIDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<UuidSpec>,
}

impl SourceSpec {
    /// A source of this kind, with every default.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    /// The source described by JSON.
    ///
    /// # Errors
    /// [`SpecError::Unreadable`], with the reader's words on what and where.
    pub fn from_json(json: &str) -> Result<Self, SpecError> {
        serde_json::from_str(json).map_err(|error| SpecError::Unreadable { why: error.to_string() })
    }

    /// Sets one key by its dotted name, as the command line does: `prefill.boost` to `3`.
    ///
    /// # Errors
    /// [`SpecError::UnknownKey`], or [`SpecError::Value`] when the text is not what the key takes.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        let key = keys::find(name).ok_or_else(|| SpecError::UnknownKey { key: name.into() })?;
        let refused = |why: String| SpecError::Value { key: key.name, value: text.into(), why };
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
                    .ok_or_else(|| refused("it is no table".into()))?;
            } else {
                table.insert(part.into(), value);
                break;
            }
        }
        *self = serde_json::from_value(whole.into()).map_err(|error| refused(error.to_string()))?;
        Ok(())
    }

    /// Decides everything that was left open.
    ///
    /// # Errors
    /// [`SpecError`], which names the key that is not possible.
    pub fn check(&self) -> Result<Plan, SpecError> {
        plan::check(self)
    }

    /// Whether the source mints; true unless it says otherwise.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled != Some(false)
    }

    /// The kind; snowflake unless it says otherwise.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or_default()
    }

    /// The same source with every default that has a meaning for its kind written out. Checking it
    /// gives the same [`Plan`].
    ///
    /// # Errors
    /// As [`SourceSpec::check`].
    pub fn canonical(&self) -> Result<Self, SpecError> {
        let mut canonical = self.check()?.to_spec();
        canonical.enabled = Some(self.is_enabled());
        if let (Some(to), Some(from)) = (&mut canonical.disguise, &self.disguise) {
            to.check.clone_from(&from.check);
        }
        Ok(canonical)
    }

    /// The part that never changes while the source exists, as JSON with sorted keys: two processes
    /// that disagree in it would make IDs that collide.
    ///
    /// # Errors
    /// As [`SourceSpec::check`].
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
            origin: canonical.origin,
            // Which they are may change; that they are several may not.
            stores: canonical.stores.map(|_| "several".into()),
            serial: canonical.serial,
            uuid: canonical.uuid,
            counter: canonical.counter.as_ref().map(CounterSpec::identity),
            ..Self::default()
        };
        Ok(serde_json::Value::from(identity.to_json()).to_string())
    }

    /// The keys that are set, as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(map)) => map,
            // Plain data with text keys always becomes an object.
            _ => serde_json::Map::new(),
        }
    }
}
