//! The table of a source's keys: one place for their names, values, defaults and meanings. The
//! command line, the configuration file and the error messages use it.

use serde_json::{Map, Value};

use super::bounds;
use super::error::SpecError;
use super::key::{Key, Takes, key};
use super::kind::{DisguiseMode, Kind, MintBy, OnEmpty, OnRollback, Order, StepRule, Unique};
use super::source_spec::{SourceSpec, TABLES};
use super::words::words;
use crate::error::json;

/// The keys of all sources, and those of snowflake and segment sources but serials.
const ROWS: &[Key] = &[
    key("kind", Takes::Word(words::<Kind>), "snowflake", "all", "{words}").fixed(),
    key("enabled", Takes::Flag, "true", "all", "false: the source rejects requests to mint"),
    key(
        "layout",
        Takes::Text,
        "time=41,worker=10,sequence=12",
        "snowflake",
        "name of a layout, with overrides, or its fields in written order",
    )
    .fixed(),
    key(
        "epoch",
        Takes::Text,
        "the layout's own, else 2026-01-01T00:00:00Z",
        "snowflake",
        "start of tick 0: RFC 3339, or Unix milliseconds in quotes",
    ),
    key(
        "short_life",
        Takes::Flag,
        "false",
        "snowflake",
        "whether a layout that ends within a year is accepted",
    ),
    key(
        "mint",
        Takes::Word(words::<MintBy>),
        "process",
        "snowflake",
        "process: each process mints in the window that the store granted it; store: the store mints at \
         each request, and a process prefetches nothing",
    )
    .fixed(),
    key(
        "worker",
        Takes::Number,
        "",
        "snowflake with mint = store",
        "worker number in all IDs that the store mints; for several stores, see the key stores",
    )
    .fixed(),
    key(
        "unique",
        Takes::Word(words::<Unique>),
        "source",
        "snowflake",
        "scope in which no ID comes twice: source (this one), or namespace (all its sources with this value)",
    )
    .fixed(),
    key(
        "order",
        Takes::Word(words::<Order>),
        "local",
        "snowflake",
        "local: IDs increase in each process; global: over all processes",
    )
    .fixed(),
    key(
        "on_rollback",
        Takes::Word(words::<OnRollback>),
        "hold, or clock-sequence where the layout has clock bits",
        "snowflake",
        "policy when the clock is set back: {words}",
    ),
    key(
        "lead_max",
        Takes::Duration,
        "5s; 10s with borrow",
        "snowflake with hold, borrow or ring",
        "longest lead of IDs over the clock; beyond it, minting fails",
    )
    .within(&bounds::LEAD_MS),
    key(
        "wait_max",
        Takes::Duration,
        "5ms",
        "snowflake with wait, wait_for = twice",
        "largest step back that is waited out; beyond it, minting fails",
    )
    .within(&bounds::WAIT_MS),
    key(
        "wait_for",
        Takes::Text,
        "twice",
        "snowflake with wait",
        "length of the wait: twice (the step), or a fixed time",
    ),
    key(
        "burst",
        Takes::Duration,
        "0ms",
        "snowflake",
        "longest lag of IDs behind the clock, so that unused ticks just past serve a burst",
    )
    .within(&bounds::BURST_MS),
    key(
        "sequence_start",
        Takes::Text,
        "zero",
        "snowflake",
        "start of a tick's sequence: zero, random, random:N (below N) or carried",
    ),
    key(
        "shards",
        Takes::Number,
        "1",
        "snowflake with mint = process",
        "number of shards, chosen by id % shards: IDs take turns over them at any rate; each tick \
         may lose shards - 1 sequence numbers",
    ),
    key("prefill.enabled", Takes::Flag, "false", "snowflake", "mint into a queue ahead of need"),
    key(
        "prefill.boost",
        Takes::Number,
        "3",
        "snowflake",
        "size of the queue: (highest sequence + 1) * 2^boost IDs",
    ),
    key(
        "prefill.threshold",
        Takes::Number,
        "50",
        "snowflake",
        "percentage of the queue; a refill starts when less is left",
    )
    .within(&bounds::PREFILL_THRESHOLD),
    key(
        "prefill.schedule",
        Takes::Duration,
        "",
        "snowflake",
        "interval of additional refills; left out: only on need",
    )
    .within(&(1..=u64::MAX)),
    key(
        "prefill.on_empty",
        Takes::Word(words::<OnEmpty>),
        "error",
        "snowflake",
        "result when the queue is empty: error, or wait (up to prefill.wait_max)",
    ),
    key(
        "prefill.wait_max",
        Takes::Duration,
        "100ms",
        "snowflake",
        "longest wait for an empty queue, with prefill.on_empty = wait",
    )
    .within(&bounds::WAIT_MS),
    key(
        "disguise.mode",
        Takes::Word(words::<DisguiseMode>),
        "none",
        "snowflake, segment",
        "none, full (hides the order) or ordered (IDs still sort by time; snowflake only)",
    )
    .fixed(),
    key(
        "disguise.key",
        Takes::Number,
        "1",
        "snowflake, segment",
        "number of the disguise key; the keys are in each server's own configuration",
    )
    .within(&(0..=0xFFFF_FFFF))
    .fixed(),
    key(
        "disguise.version",
        Takes::Number,
        "2, or that of an existing definition",
        "snowflake, segment",
        "derivation of the source's key from the configured one: 2, for this source alone (unique = \
         namespace: for all sources of the namespace with that value), or 1, the same for all sources, \
         as in 0.1.0",
    )
    .within(&(1..=2))
    .fixed(),
    key(
        "disguise.bits",
        Takes::Number,
        "63",
        "segment with full",
        "most bits of a disguised number: 63, or 53 for JavaScript readers",
    )
    .fixed(),
    key(
        "disguise.check",
        Takes::Text,
        "",
        "snowflake, segment",
        "check value of the disguise key, written by the server that defines the source",
    )
    .fixed(),
    key(
        "text",
        Takes::Text,
        "decimal",
        "snowflake, segment",
        "form of IDs as text: decimal, hex, base36, base62, base32, base58 or friendly",
    ),
    key(
        "step.rule",
        Takes::Word(words::<StepRule>),
        "adaptive",
        "segment",
        "numbers taken from the store at once; adaptive: by their rate and the store's latency; \
         fixed: step.size; leaf: doubled if the last ones lasted under 15 minutes, halved if 30 or more",
    ),
    key(
        "step.size",
        Takes::Number,
        "1000",
        "segment with fixed or leaf",
        "numbers taken at once; with leaf, at first and at least; fixed with 1: nothing is prefetched, \
         and each request takes its numbers from the store",
    )
    .within(&bounds::STEP),
    key("step.min", Takes::Number, "100", "segment with adaptive", "fewest numbers taken at once")
        .within(&bounds::STEP),
    key(
        "step.max",
        Takes::Number,
        "1000000",
        "segment with adaptive or leaf",
        "most numbers taken at once",
    )
    .within(&bounds::STEP),
    key(
        "step.lasts",
        Takes::Duration,
        "10s",
        "segment with adaptive",
        "time that the numbers taken at once should last at the present rate",
    )
    .within(&bounds::STEP_LASTS_MS),
    key(
        "step.waste_max",
        Takes::Number,
        "50",
        "segment with adaptive",
        "most numbers that are lost if a process is killed, in percent of all that it took from the \
         store; step.min are taken in any case; 100: no bound",
    )
    .within(&bounds::STEP_WASTE),
    key(
        "offset",
        Takes::Number,
        "1",
        "segment",
        "stripe of the source, from 1 to increment: it has offset, offset + increment, ...",
    )
    .within(&bounds::NUMBER)
    .fixed(),
    key(
        "increment",
        Takes::Number,
        "1",
        "segment",
        "number of stripes: the distance from a number to the next",
    )
    .within(&bounds::NUMBER)
    .fixed(),
    key("first", Takes::Number, "1", "segment", "lowest number")
        .within(&bounds::NUMBER)
        .fixed(),
    key(
        "first_at",
        Takes::Number,
        "1",
        "segment",
        "position of the first number in the store's count; written by source restripe",
    )
    .within(&bounds::NUMBER)
    .fixed(),
    key(
        "until",
        Takes::Number,
        "",
        "segment",
        "end number: the source has only lower numbers, and none from it on was handed out; written by \
         source restripe while it calls all deployments",
    )
    .within(&(1..=u64::MAX)),
    key(
        "upstream",
        Takes::Text,
        "",
        "segment",
        "upstream, NAME:KEY: the source allocates its numbers from KEY of another system, NAME of \
         [upstreams], while both serve; ended by import --cut-over",
    )
    .fixed(),
    key(
        "stores",
        Takes::Text,
        "",
        "segment; snowflake with mint = store",
        "A,B,C: stores, named under [stores], each with its own stripe of the numbers; with mint = \
         store A=3,B=4: stores that mint, each with its own worker number; IDs increase within a \
         store only",
    )
    .fixed(),
];

/// Returns every key of a source.
pub fn all() -> impl DoubleEndedIterator<Item = &'static Key> {
    ROWS.iter().chain(TABLES.iter().copied().flatten())
}

/// Returns the key of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    all().find(|key| key.name == name)
}

/// Returns the first of the given keys and tables without a meaning for this kind.
pub(super) fn without_meaning(given: &Map<String, Value>, kind: Kind) -> Option<&'static str> {
    let means = |table: &str| all().any(|key| key.table() == table && key.is_for(kind));
    all().map(Key::table).find(|&table| given.contains_key(table) && !means(table))
}

/// Removes all keys that are no part of a source's identity.
pub(super) fn retain_identity(keys: &mut Map<String, Value>) {
    for key in all().filter(|key| !key.fixed) {
        match key.name.split_once('.') {
            None => drop(keys.remove(key.name)),
            Some((table, name)) => {
                if let Some(Value::Object(table)) = keys.get_mut(table) {
                    table.remove(name);
                }
            }
        }
    }
    keys.retain(|_, value| value.as_object().is_none_or(|table| !table.is_empty()));
}

/// Returns all names, for messages.
fn names() -> String {
    all().map(|key| key.name).collect::<Vec<_>>().join(", ")
}

impl SourceSpec {
    /// Sets one key by its dotted name, like the command line: `prefill.boost` to `3`.
    ///
    /// # Errors
    /// [`SpecError::UnknownKey`], or [`SpecError::Value`] when the key cannot take the text.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        let key =
            find(name).ok_or_else(|| SpecError::UnknownKey { key: name.into(), known: names() })?;
        let refused =
            |reason: String| SpecError::Value { key: key.name, value: text.into(), reason };
        let value = match key.takes {
            Takes::Word(words) if !words().contains(&text) => {
                return Err(refused(format!("it takes one of {}", words().join(", "))));
            }
            Takes::Text | Takes::Word(_) | Takes::Duration => text.into(),
            Takes::Number => text
                .parse::<u64>()
                .map_err(|_| refused("it takes a whole number of at least 0".into()))?
                .into(),
            Takes::Flag => {
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
                    .or_insert_with(|| Map::new().into())
                    .as_object_mut()
                    .ok_or_else(|| refused("it is not a table".into()))?;
            } else {
                table.insert(part.into(), value);
                break;
            }
        }
        *self = serde_json::from_value(whole.into()).map_err(|error| {
            let bounds = key.bounds().filter(|_| matches!(key.takes, Takes::Number));
            refused(bounds.map_or_else(|| json::reason(&error), |these| format!("take {these}")))
        })?;
        Ok(())
    }
}
