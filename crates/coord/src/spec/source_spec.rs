//! A source's keys as they are written: one place for their names, values, defaults and meanings.
//! The command line, the configuration file and the error messages use it.

use serde::{Deserialize, Serialize};

use super::bounds;
use super::duration::Span;
use super::error::SpecError;
use super::key::{Key, Row, Taken as _};
use super::kind::{
    Confirm, DisguiseMode, KeyNames, Kind, MintBy, OnEmpty, OnRollback, Order, SerialReset,
    StepRule, Unique,
};
use crate::error::json;

/// Declares a source's keys as they are written, with a row for each. Its comment is its meaning,
/// also for users, and `key` has the kinds of source for which it has one. Keys that are not set
/// are left out of the text.
macro_rules! spec_keys {
    (@row $table:literal, $lines:expr, $key:ident, $type:ty, key($kinds:literal
        $(, default = $default:literal)? $(, within = $within:expr)? $(, fixed = $fixed:literal)?
    )) => {
        Row::Key(
            Key::new(concat!($table, stringify!($key)), <$type>::TAKES, $kinds, $lines)
                $(.or($default))?
                $(.within(&($within)))?
                $(.fixed($fixed))?
        )
    };
    (@row $table:literal, $lines:expr, $key:ident, $type:ty) => {
        Row::Table(<$type>::ROWS)
    };
    ($($(#[doc = $about:literal])* $public:vis struct $name:ident in $table:literal {$(
        $(#[doc = $line:literal])* $(#[key $row:tt])? pub $key:ident: Option<$type:ty>,
    )*})*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        $public struct $name {$(
            $(#[doc = $line])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<$type>,
        )*}

        impl $name {
            /// Rows of its keys, in the order of the pages.
            pub(super) const ROWS: &[Row] = &[$(
                spec_keys!(@row $table, concat!($($line),*), $key, $type $(, key $row)?)
            ),*];
        }
    )*};
}

spec_keys! {
    /// A source's keys as written; none is required.
    pub struct SourceSpec in "" {
        /// Kind of IDs: {words}.
        #[key("all", default = "snowflake", fixed = true)]
        pub kind: Option<Kind>,
        /// False: the source rejects requests to mint.
        #[key("all", default = "true")]
        pub enabled: Option<bool>,
        /// Name of a layout, with overrides, or its fields in written order.
        #[key("snowflake", default = "time=41,worker=10,sequence=12", fixed = true)]
        pub layout: Option<String>,
        /// Start of tick 0: RFC 3339, or Unix milliseconds in quotes.
        #[key("snowflake", default = "the layout's own, else 2026-01-01T00:00:00Z")]
        pub epoch: Option<String>,
        /// Whether a layout that ends within a year is accepted.
        #[key("snowflake", default = "false")]
        pub short_life: Option<bool>,
        /// Process: each process mints in the window that the store granted it; store: the store
        /// mints at each request, and a process prefetches nothing.
        #[key("snowflake", default = "process", fixed = true)]
        pub mint: Option<MintBy>,
        /// Worker number in all IDs that the store mints; for several stores, see the key stores.
        #[key("snowflake with mint = store", fixed = true)]
        pub worker: Option<u64>,
        /// Scope in which no ID comes twice: source (this one), or namespace (all its sources with
        /// this value).
        #[key("snowflake", default = "source", fixed = true)]
        pub unique: Option<Unique>,
        /// Local: IDs increase in each process; global: over all processes.
        #[key("snowflake", default = "local", fixed = true)]
        pub order: Option<Order>,
        /// Policy when the clock is set back: {words}.
        #[key("snowflake", default = "hold, or clock-sequence where the layout has clock bits")]
        pub on_rollback: Option<OnRollback>,
        /// Longest lead of IDs over the clock; beyond it, minting fails.
        #[key(
            "snowflake with hold, borrow or ring",
            default = "5s; 10s with borrow",
            within = bounds::LEAD_MS
        )]
        pub lead_max: Option<Span>,
        /// Largest step back that is waited out; beyond it, minting fails.
        #[key("snowflake with wait, wait_for = twice", default = "5ms", within = bounds::WAIT_MS)]
        pub wait_max: Option<Span>,
        /// Length of the wait: twice (the step), or a fixed time.
        #[key("snowflake with wait", default = "twice")]
        pub wait_for: Option<String>,
        /// Longest lag of IDs behind the clock, so that unused ticks just past serve a burst.
        #[key("snowflake", default = "0ms", within = bounds::BURST_MS)]
        pub burst: Option<Span>,
        /// Start of a tick's sequence: zero, random, random:N (below N) or carried.
        #[key("snowflake", default = "zero")]
        pub sequence_start: Option<String>,
        /// Number of shards, chosen by id % shards: IDs take turns over them at any rate; each tick
        /// may lose shards - 1 sequence numbers.
        #[key("snowflake with mint = process", default = "1")]
        pub shards: Option<u64>,
        /// Queue into which IDs are minted ahead of need.
        pub prefill: Option<PrefillSpec>,
        /// Disguise of the IDs.
        pub disguise: Option<DisguiseSpec>,
        /// Form of IDs as text: decimal, hex, base36, base62, base32, base58 or friendly.
        #[key("snowflake, segment", default = "decimal")]
        pub text: Option<String>,
        /// Rule for how many numbers a segment source takes from the store at a time.
        pub step: Option<StepSpec>,
        /// Stripe of the source, from 1 to increment: it has offset, offset + increment, ...
        #[key("segment", default = "1", within = bounds::NUMBER, fixed = true)]
        pub offset: Option<u64>,
        /// Number of stripes: the distance from a number to the next.
        #[key("segment", default = "1", within = bounds::NUMBER, fixed = true)]
        pub increment: Option<u64>,
        /// Lowest number.
        #[key("segment", default = "1", within = bounds::NUMBER, fixed = true)]
        pub first: Option<u64>,
        /// Position of the first number in the store's count; written by source restripe.
        #[key("segment", default = "1", within = bounds::NUMBER, fixed = true)]
        pub first_at: Option<u64>,
        /// End number: the source has only lower numbers, and none from it on was handed out;
        /// written by source restripe while it calls all deployments.
        #[key("segment", within = 1..=u64::MAX)]
        pub until: Option<u64>,
        /// Upstream, NAME:KEY: the source allocates its numbers from KEY of another system, NAME of
        /// `[upstreams]`, while both serve; ended by import --cut-over.
        #[key("segment", fixed = true)]
        pub upstream: Option<String>,
        /// A,B,C: stores, named under `[stores]`, each with its own stripe of the numbers; with
        /// mint = store A=3,B=4: stores that mint, each with its own worker number; IDs increase
        /// within a store only.
        #[key("segment; snowflake with mint = store", fixed = true)]
        pub stores: Option<String>,
        /// Keys of a counter source.
        pub counter: Option<CounterSpec>,
        /// Serial form of a segment source's numbers.
        pub serial: Option<SerialSpec>,
        /// UUID version and namespace.
        pub uuid: Option<UuidSpec>,
    }

    /// The keys `prefill.*`.
    pub struct PrefillSpec in "prefill." {
        /// Mint into a queue ahead of need.
        #[key("snowflake", default = "false")]
        pub enabled: Option<bool>,
        /// Size of the queue: (highest sequence + 1) * 2^boost IDs.
        #[key("snowflake", default = "3")]
        pub boost: Option<u32>,
        /// Percentage of the queue; a refill starts when less is left.
        #[key("snowflake", default = "50", within = bounds::PREFILL_THRESHOLD)]
        pub threshold: Option<u32>,
        /// Interval of additional refills; left out: only on need.
        #[key("snowflake", within = 1..=u64::MAX)]
        pub schedule: Option<Span>,
        /// Result when the queue is empty: error, or wait (up to prefill.wait_max).
        #[key("snowflake", default = "error")]
        pub on_empty: Option<OnEmpty>,
        /// Longest wait for an empty queue, with prefill.on_empty = wait.
        #[key("snowflake", default = "100ms", within = bounds::WAIT_MS)]
        pub wait_max: Option<Span>,
    }

    /// The keys `disguise.*`.
    pub struct DisguiseSpec in "disguise." {
        /// None, full (hides the order) or ordered (IDs still sort by time; snowflake only).
        #[key("snowflake, segment", default = "none", fixed = true)]
        pub mode: Option<DisguiseMode>,
        /// Number of the disguise key; the keys are in each server's own configuration.
        #[key("snowflake, segment", default = "1", within = 0..=0xFFFF_FFFF, fixed = true)]
        pub key: Option<u32>,
        /// Derivation of the source's key from the configured one: 2, for this source alone (unique
        /// = namespace: for all sources of the namespace with that value), or 1, the same for all
        /// sources, as in 0.1.0.
        #[key(
            "snowflake, segment",
            default = "2, or that of an existing definition",
            within = 1..=2,
            fixed = true
        )]
        pub version: Option<u8>,
        /// Most bits of a disguised number: 63, or 53 for JavaScript readers.
        #[key("segment with full", default = "63", fixed = true)]
        pub bits: Option<u8>,
        /// Check value of the disguise key, written by the server that defines the source.
        #[key("snowflake, segment", fixed = true)]
        pub check: Option<String>,
    }

    /// The keys `step.*`.
    pub struct StepSpec in "step." {
        /// Numbers taken from the store at once; adaptive: by their rate and the store's latency;
        /// fixed: step.size; leaf: doubled if the last ones lasted under 15 minutes, halved if 30
        /// or more.
        #[key("segment", default = "adaptive")]
        pub rule: Option<StepRule>,
        /// Numbers taken at once; with leaf, at first and at least; fixed with 1: nothing is
        /// prefetched, and each request takes its numbers from the store.
        #[key("segment with fixed or leaf", default = "1000", within = bounds::STEP)]
        pub size: Option<u64>,
        /// Fewest numbers taken at once.
        #[key("segment with adaptive", default = "100", within = bounds::STEP)]
        pub min: Option<u64>,
        /// Most numbers taken at once.
        #[key("segment with adaptive or leaf", default = "1000000", within = bounds::STEP)]
        pub max: Option<u64>,
        /// Time that the numbers taken at once should last at the present rate.
        #[key("segment with adaptive", default = "10s", within = bounds::STEP_LASTS_MS)]
        pub lasts: Option<Span>,
        /// Most numbers that are lost if a process is killed, in percent of all that it took from
        /// the store; step.min are taken in any case; 100: no bound.
        #[key("segment with adaptive", default = "50", within = bounds::STEP_WASTE)]
        pub waste_max: Option<u8>,
    }

    /// The keys `counter.*`.
    pub struct CounterSpec in "counter." {
        /// Lowest number of every key.
        #[key("counter", default = "1", within = bounds::COUNTER_START, fixed = true)]
        pub start: Option<u64>,
        /// Numbers taken from the store at once, for all keys of a section.
        #[key("counter", default = "10000", within = bounds::STEP)]
        pub step: Option<u64>,
        /// Check before each response: lease (the server's own), or store (a call to the store).
        #[key("counter", default = "lease")]
        pub confirm: Option<Confirm>,
        /// Text that decides a key's section: with-source (SOURCE:KEY) or alone (KEY), for
        /// resp.default_counter_source.
        #[key("counter", default = "with-source", fixed = true)]
        pub keys: Option<KeyNames>,
    }

    /// The keys `serial.*`.
    pub struct SerialSpec in "serial." {
        /// Start of each serial.
        #[key("segment with serials", fixed = true)]
        pub prefix: Option<String>,
        /// Date in each serial; its number begins at 1 again each day (yyyyMMdd, yyyy-MM-dd,
        /// yyMMdd), month (yyyyMM, yyyy-MM, yyMM) or year (yyyy, yy); left out: no date, and never.
        #[key("segment with serials", fixed = true)]
        pub date: Option<String>,
        /// Time zone that decides the day, by its IANA name.
        #[key("segment with serials", default = "UTC", fixed = true)]
        pub zone: Option<String>,
        /// Digits of the number, with leading zeros.
        #[key("segment with serials", default = "6", within = bounds::SERIAL_WIDTH, fixed = true)]
        pub width: Option<u8>,
        /// Period in which the number begins at 1 again: day, month, year or never; it must agree
        /// with serial.date.
        #[key("segment with serials", default = "as serial.date says", fixed = true)]
        pub reset: Option<SerialReset>,
    }

    /// The keys `uuid.*`.
    pub struct UuidSpec in "uuid." {
        /// 1, 3, 4, 5, 6, 7 or 8.
        #[key("uuid", default = "7", within = 1..=8, fixed = true)]
        pub version: Option<u8>,
        /// Dns, url, oid, x500 or a UUID; names come with each call as its key.
        #[key("uuid of version 3 or 5", fixed = true)]
        pub namespace: Option<String>,
    }
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
