//! The table of a source's keys: one place for their names, values, defaults and meanings. The
//! command line, the configuration file and the error messages use it.

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
    /// Kinds of source for which it has a meaning.
    pub kinds: &'static str,
    /// Meaning, in a sentence.
    pub doc: &'static str,
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
    key("enabled", Takes::Flag, "true", "all", "false: the source refuses to mint"),
    key(
        "layout",
        Takes::Text,
        "time=41,worker=10,sequence=12",
        "snowflake",
        "the name of a layout, with overrides, or its fields in written order",
    ),
    key(
        "epoch",
        Takes::Text,
        "the layout's own, else 2026-01-01T00:00:00Z",
        "snowflake",
        "when tick 0 begins: RFC 3339, or Unix milliseconds in quotes",
    ),
    key(
        "short_life",
        Takes::Flag,
        "false",
        "snowflake",
        "take a layout that ends within a year as it is",
    ),
    key(
        "mint",
        Takes::Text,
        "process",
        "snowflake",
        "process: each process mints from what the store granted it; store: the store mints at each \
         request, and nothing is kept in a process",
    ),
    key(
        "worker",
        Takes::Number,
        "",
        "snowflake with mint = store",
        "the worker number in all IDs that the store mints; where several do, stores has one for each",
    ),
    key(
        "unique",
        Takes::Text,
        "source",
        "snowflake",
        "source: no ID twice in this source; namespace: nor in any other source that says so",
    ),
    key(
        "order",
        Takes::Text,
        "local",
        "snowflake",
        "local: IDs increase per process; global: over all processes",
    ),
    key(
        "on_rollback",
        Takes::Text,
        "hold, or clock-sequence where the layout has clock bits",
        "snowflake",
        "when the clock goes back: hold, wait, fail, clock-sequence, ring or borrow",
    ),
    key(
        "lead_max",
        Takes::Text,
        "5s; 10s with borrow",
        "snowflake with hold, borrow or ring",
        "how far IDs may run ahead of the clock before minting is refused",
    ),
    key(
        "wait_max",
        Takes::Text,
        "5ms",
        "snowflake with wait for twice",
        "the largest step back that is waited out; above it minting is refused",
    ),
    key(
        "wait_for",
        Takes::Text,
        "twice",
        "snowflake with wait",
        "how long to wait: twice (the step), or a fixed length",
    ),
    key(
        "burst",
        Takes::Text,
        "0ms",
        "snowflake",
        "how far IDs may lag the clock, so that unused ticks just past serve a burst",
    ),
    key(
        "sequence_start",
        Takes::Text,
        "zero",
        "snowflake",
        "where a tick's sequence starts: zero, random, random:N (below N) or carried",
    ),
    key("prefill.enabled", Takes::Flag, "false", "snowflake", "mint into a queue ahead of need"),
    key(
        "prefill.boost",
        Takes::Number,
        "3",
        "snowflake",
        "the queue holds (highest sequence + 1) * 2^boost IDs",
    ),
    key(
        "prefill.threshold",
        Takes::Number,
        "50",
        "snowflake",
        "refill when less than this share of the queue is left, in percent",
    ),
    key(
        "prefill.schedule",
        Takes::Text,
        "",
        "snowflake",
        "also refill at this interval; left out: only on need",
    ),
    key(
        "prefill.on_empty",
        Takes::Text,
        "error",
        "snowflake",
        "when the queue is dry: error, or wait (up to prefill.wait_max)",
    ),
    key(
        "prefill.wait_max",
        Takes::Text,
        "100ms",
        "snowflake",
        "the longest wait for a dry queue, with prefill.on_empty = wait",
    ),
    key(
        "disguise.mode",
        Takes::Text,
        "none",
        "snowflake, segment",
        "none, full (no order shows) or ordered (IDs still sort by time; snowflake only)",
    ),
    key(
        "disguise.key",
        Takes::Number,
        "1",
        "snowflake, segment",
        "the number of the key ring that disguises; keys are in each server's own configuration",
    ),
    key(
        "disguise.version",
        Takes::Number,
        "2, or that of the definition that was there",
        "snowflake, segment",
        "how the source's key is made of the configured one: 2, derived for this source alone (unique = \
         namespace: for all of the namespace that are), or 1, the same for all sources, as in 0.1.0",
    ),
    key(
        "disguise.bits",
        Takes::Number,
        "63",
        "segment with full",
        "how many bits a disguised number may have: 63, or 53 for JavaScript readers",
    ),
    key(
        "disguise.check",
        Takes::Text,
        "",
        "snowflake, segment",
        "a check value of the disguise key, written by the server that defines the source",
    ),
    key(
        "text",
        Takes::Text,
        "decimal",
        "snowflake, segment",
        "the form of IDs as text: decimal, hex, base36, base62, base32, base58 or friendly",
    ),
    key(
        "step.rule",
        Takes::Text,
        "adaptive",
        "segment",
        "how many numbers are taken from the store at once: adaptive (by their rate and the store's \
         latency), fixed (step.size), or leaf (twice as many when they lasted under 15 minutes, half \
         when over 30)",
    ),
    key(
        "step.size",
        Takes::Number,
        "1000",
        "segment with fixed or leaf",
        "how many numbers are taken at once; with leaf, at first and at least; fixed with 1: none ahead \
         of need, each request takes from the store what it asks for",
    ),
    key("step.min", Takes::Number, "100", "segment with adaptive", "the fewest numbers taken"),
    key(
        "step.max",
        Takes::Number,
        "1000000",
        "segment with adaptive or leaf",
        "the most numbers taken at once",
    ),
    key(
        "step.lasts",
        Takes::Text,
        "10s",
        "segment with adaptive",
        "how long the numbers taken at once should last at the present rate",
    ),
    key(
        "step.waste_max",
        Takes::Number,
        "50",
        "segment with adaptive",
        "the share, in percent, of all numbers that a process took from the store that are lost if it \
         is killed; step.min are taken in any case; 100: no bound",
    ),
    key(
        "offset",
        Takes::Number,
        "1",
        "segment",
        "which stripe of the numbers the source has, 1 to increment: offset, offset + increment, ...",
    ),
    key(
        "increment",
        Takes::Number,
        "1",
        "segment",
        "how many stripes there are: the distance from a number to the next",
    ),
    key("first", Takes::Number, "1", "segment", "no number is lower"),
    key(
        "first_at",
        Takes::Number,
        "1",
        "segment",
        "which of the store's numbers the first is; written by source restripe",
    ),
    key(
        "until",
        Takes::Number,
        "",
        "segment",
        "no number is as high, and none was handed out; written by source restripe while it tells all installations",
    ),
    key(
        "origin",
        Takes::Text,
        "",
        "segment",
        "NAME:KEY: numbers are drawn from a key of another system, which [origins] names, while both serve; \
         ended by import --cut-over",
    ),
    key(
        "stores",
        Takes::Text,
        "",
        "segment; snowflake with mint = store",
        "A,B,C: the stores, named under [stores], that hand out the numbers, each a residue of its own; with \
         mint = store A=3,B=4: those that mint, each under a worker number of its own. Any of them serves; \
         increasing within a store only",
    ),
    key("counter.start", Takes::Number, "1", "counter", "no number of any key is lower"),
    key(
        "counter.step",
        Takes::Number,
        "10000",
        "counter",
        "how many numbers are taken from the store at once, for all keys of a section",
    ),
    key(
        "counter.confirm",
        Takes::Text,
        "lease",
        "counter",
        "what an answer rests on: the lease, or the store, which is asked before each",
    ),
    key(
        "counter.keys",
        Takes::Text,
        "with-source",
        "counter",
        "how a key's section is found: with-source (SOURCE:KEY) or alone (KEY), for resp.default_counter_source",
    ),
    key("serial.prefix", Takes::Text, "", "segment with serials", "what each serial begins with"),
    key(
        "serial.date",
        Takes::Text,
        "",
        "segment with serials",
        "the date in each serial, and with what its number begins anew: yyyyMMdd, yyyy-MM-dd, yyMMdd \
         (each day), yyyyMM, yyyy-MM, yyMM (each month), yyyy, yy (each year); left out: none, never",
    ),
    key(
        "serial.zone",
        Takes::Text,
        "UTC",
        "segment with serials",
        "the time zone that decides which day it is, by its IANA name",
    ),
    key(
        "serial.width",
        Takes::Number,
        "6",
        "segment with serials",
        "how many digits the number has, with leading zeros",
    ),
    key(
        "serial.reset",
        Takes::Text,
        "as serial.date says",
        "segment with serials",
        "when the number begins anew: day, month, year or never; it must agree with serial.date",
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

/// Returns all names, for messages.
pub(crate) fn names() -> String {
    KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
}
