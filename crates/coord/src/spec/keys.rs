//! The table of a source's keys: one place for their names, values, defaults and meanings. The
//! command line, the configuration file and the error messages use it.

use serde_json::{Map, Value};

use super::kind::Kind;

/// Written form of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Text, in quotes in TOML and JSON. Durations are texts too: `5s`.
    Text,
    /// Whole number.
    Number,
    /// `true` or `false`.
    Flag,
}

/// One key of a source.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name, with dots: `prefill.boost`.
    pub name: &'static str,
    /// Written form of its value.
    pub takes: Takes,
    /// Default, as text; empty where there is nothing to write.
    pub default: &'static str,
    /// Kinds of source for which it has a meaning: `all`, or names of kinds, each perhaps with a
    /// condition (`segment; snowflake with mint = store`).
    pub kinds: &'static str,
    /// Meaning, in a sentence.
    pub doc: &'static str,
}

impl Key {
    /// Returns the name of its table, or its own where it is in none.
    fn table(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(table, _)| table)
    }

    /// Returns whether it has a meaning for sources of this kind, perhaps under a condition.
    fn is_for(&self, kind: Kind) -> bool {
        let mut parts = self.kinds.split([',', ';']);
        self.kinds == "all" || parts.any(|part| part.split_whitespace().next() == Some(kind.name()))
    }
}

const fn key(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    kinds: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, takes, default, kinds, doc }
}

/// Every key of a source.
pub const KEYS: &[Key] = &[
    key("kind", Takes::Text, "snowflake", "all", "snowflake, segment, counter, uuid or ulid"),
    key("enabled", Takes::Flag, "true", "all", "false: the source rejects requests to mint"),
    key(
        "layout",
        Takes::Text,
        "time=41,worker=10,sequence=12",
        "snowflake",
        "name of a layout, with overrides, or its fields in written order",
    ),
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
        Takes::Text,
        "process",
        "snowflake",
        "process: each process mints in the window that the store granted it; store: the store mints at \
         each request, and a process prefetches nothing",
    ),
    key(
        "worker",
        Takes::Number,
        "",
        "snowflake with mint = store",
        "worker number in all IDs that the store mints; for several stores, see the key stores",
    ),
    key(
        "unique",
        Takes::Text,
        "source",
        "snowflake",
        "scope in which no ID comes twice: source (this one), or namespace (all its sources with this value)",
    ),
    key(
        "order",
        Takes::Text,
        "local",
        "snowflake",
        "local: IDs increase in each process; global: over all processes",
    ),
    key(
        "on_rollback",
        Takes::Text,
        "hold, or clock-sequence where the layout has clock bits",
        "snowflake",
        "policy when the clock is set back: hold, wait, fail, clock-sequence, ring or borrow",
    ),
    key(
        "lead_max",
        Takes::Text,
        "5s; 10s with borrow",
        "snowflake with hold, borrow or ring",
        "longest lead of IDs over the clock; beyond it, minting fails",
    ),
    key(
        "wait_max",
        Takes::Text,
        "5ms",
        "snowflake with wait, wait_for = twice",
        "largest step back that is waited out; beyond it, minting fails",
    ),
    key(
        "wait_for",
        Takes::Text,
        "twice",
        "snowflake with wait",
        "length of the wait: twice (the step), or a fixed time",
    ),
    key(
        "burst",
        Takes::Text,
        "0ms",
        "snowflake",
        "longest lag of IDs behind the clock, so that unused ticks just past serve a burst",
    ),
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
    ),
    key(
        "prefill.schedule",
        Takes::Text,
        "",
        "snowflake",
        "interval of additional refills; left out: only on need",
    ),
    key(
        "prefill.on_empty",
        Takes::Text,
        "error",
        "snowflake",
        "result when the queue is empty: error, or wait (up to prefill.wait_max)",
    ),
    key(
        "prefill.wait_max",
        Takes::Text,
        "100ms",
        "snowflake",
        "longest wait for an empty queue, with prefill.on_empty = wait",
    ),
    key(
        "disguise.mode",
        Takes::Text,
        "none",
        "snowflake, segment",
        "none, full (hides the order) or ordered (IDs still sort by time; snowflake only)",
    ),
    key(
        "disguise.key",
        Takes::Number,
        "1",
        "snowflake, segment",
        "number of the disguise key; the keys are in each server's own configuration",
    ),
    key(
        "disguise.version",
        Takes::Number,
        "2, or that of an existing definition",
        "snowflake, segment",
        "derivation of the source's key from the configured one: 2, for this source alone (unique = \
         namespace: for all sources of the namespace with that value), or 1, the same for all sources, \
         as in 0.1.0",
    ),
    key(
        "disguise.bits",
        Takes::Number,
        "63",
        "segment with full",
        "most bits of a disguised number: 63, or 53 for JavaScript readers",
    ),
    key(
        "disguise.check",
        Takes::Text,
        "",
        "snowflake, segment",
        "check value of the disguise key, written by the server that defines the source",
    ),
    key(
        "text",
        Takes::Text,
        "decimal",
        "snowflake, segment",
        "form of IDs as text: decimal, hex, base36, base62, base32, base58 or friendly",
    ),
    key(
        "step.rule",
        Takes::Text,
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
    ),
    key("step.min", Takes::Number, "100", "segment with adaptive", "fewest numbers taken at once"),
    key(
        "step.max",
        Takes::Number,
        "1000000",
        "segment with adaptive or leaf",
        "most numbers taken at once",
    ),
    key(
        "step.lasts",
        Takes::Text,
        "10s",
        "segment with adaptive",
        "time that the numbers taken at once should last at the present rate",
    ),
    key(
        "step.waste_max",
        Takes::Number,
        "50",
        "segment with adaptive",
        "most numbers that are lost if a process is killed, in percent of all that it took from the \
         store; step.min are taken in any case; 100: no bound",
    ),
    key(
        "offset",
        Takes::Number,
        "1",
        "segment",
        "stripe of the source, from 1 to increment: it has offset, offset + increment, ...",
    ),
    key(
        "increment",
        Takes::Number,
        "1",
        "segment",
        "number of stripes: the distance from a number to the next",
    ),
    key("first", Takes::Number, "1", "segment", "lowest number"),
    key(
        "first_at",
        Takes::Number,
        "1",
        "segment",
        "position of the first number in the store's count; written by source restripe",
    ),
    key(
        "until",
        Takes::Number,
        "",
        "segment",
        "end number: the source has only lower numbers, and none from it on was handed out; written by \
         source restripe while it calls all deployments",
    ),
    key(
        "upstream",
        Takes::Text,
        "",
        "segment",
        "upstream, NAME:KEY: the source allocates its numbers from KEY of another system, NAME of \
         [upstreams], while both serve; ended by import --cut-over",
    ),
    key(
        "stores",
        Takes::Text,
        "",
        "segment; snowflake with mint = store",
        "A,B,C: stores, named under [stores], each with its own stripe of the numbers; with mint = \
         store A=3,B=4: stores that mint, each with its own worker number; IDs increase within a \
         store only",
    ),
    key("counter.start", Takes::Number, "1", "counter", "lowest number of every key"),
    key(
        "counter.step",
        Takes::Number,
        "10000",
        "counter",
        "numbers taken from the store at once, for all keys of a section",
    ),
    key(
        "counter.confirm",
        Takes::Text,
        "lease",
        "counter",
        "check before each response: lease (the server's own), or store (a call to the store)",
    ),
    key(
        "counter.keys",
        Takes::Text,
        "with-source",
        "counter",
        "text that decides a key's section: with-source (SOURCE:KEY) or alone (KEY), for \
         resp.default_counter_source",
    ),
    key("serial.prefix", Takes::Text, "", "segment with serials", "start of each serial"),
    key(
        "serial.date",
        Takes::Text,
        "",
        "segment with serials",
        "date in each serial, and the period in which its number begins at 1 again: yyyyMMdd, yyyy-MM-dd, \
         yyMMdd (each day), yyyyMM, yyyy-MM, yyMM (each month), yyyy, yy (each year); left out: no \
         date, and never",
    ),
    key(
        "serial.zone",
        Takes::Text,
        "UTC",
        "segment with serials",
        "time zone that decides the day, by its IANA name",
    ),
    key(
        "serial.width",
        Takes::Number,
        "6",
        "segment with serials",
        "digits of the number, with leading zeros",
    ),
    key(
        "serial.reset",
        Takes::Text,
        "as serial.date says",
        "segment with serials",
        "period in which the number begins at 1 again: day, month, year or never; it must agree with serial.date",
    ),
    key("uuid.version", Takes::Number, "7", "uuid", "1, 3, 4, 5, 6, 7 or 8"),
    key(
        "uuid.namespace",
        Takes::Text,
        "",
        "uuid of version 3 or 5",
        "dns, url, oid, x500 or a UUID; names come with each call as its key",
    ),
];

/// Returns the key of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Returns the first of the given keys and tables without a meaning for this kind.
pub(super) fn without_meaning(given: &Map<String, Value>, kind: Kind) -> Option<&'static str> {
    let means = |table: &str| KEYS.iter().any(|key| key.table() == table && key.is_for(kind));
    KEYS.iter().map(Key::table).find(|&table| given.contains_key(table) && !means(table))
}

/// Returns all names, for messages.
pub(crate) fn names() -> String {
    KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
}
