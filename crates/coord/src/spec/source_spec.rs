//! A source's keys as they are written, with their tables.

use serde::{Deserialize, Serialize};

use super::bounds;
use super::duration::Span;
use super::error::SpecError;
use super::key::{Key, Takes, key};
use super::kind::{
    Confirm, DisguiseMode, KeyNames, Kind, MintBy, OnEmpty, OnRollback, Order, SerialReset,
    StepRule, Unique,
};
use super::words::words;
use crate::error::json;

/// Declares a source's keys as they are written. Keys that are not set are left out of the text.
macro_rules! spec_keys {
    ($($(#[$about:meta])* $public:vis struct $name:ident {
        $($(#[$meaning:meta])* pub $key:ident: $value:ty,)*
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        $public struct $name {
            $(
                $(#[$meaning])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: $value,
            )*
        }
    )*};
}

spec_keys! {
    /// A source's keys as written; none is required. See [`all`](super::keys::all) for the
    /// meaning of each.
    pub struct SourceSpec {
        /// Kind of IDs.
        pub kind: Option<Kind>,
        /// Whether the source mints.
        pub enabled: Option<bool>,
        /// Layout of an ID's bits.
        pub layout: Option<String>,
        /// Time at which tick 0 begins.
        pub epoch: Option<String>,
        /// Whether a layout that ends within a year is accepted.
        pub short_life: Option<bool>,
        /// Minter: process or store.
        pub mint: Option<MintBy>,
        /// Worker number of the store that mints.
        pub worker: Option<u64>,
        /// Scope in which an ID never comes twice.
        pub unique: Option<Unique>,
        /// Scope of the order.
        pub order: Option<Order>,
        /// Policy for a clock that is set back.
        pub on_rollback: Option<OnRollback>,
        /// Longest lead of IDs over the clock.
        pub lead_max: Option<Span>,
        /// Largest step back that is waited out.
        pub wait_max: Option<Span>,
        /// `twice` or a duration.
        pub wait_for: Option<String>,
        /// Longest lag of IDs behind the clock.
        pub burst: Option<Span>,
        /// `zero`, `random`, `random:N` or `carried`.
        pub sequence_start: Option<String>,
        /// Number of shards over which `id % shards` spreads the IDs.
        pub shards: Option<u64>,
        /// Queue into which IDs are minted ahead of need.
        pub prefill: Option<PrefillSpec>,
        /// Disguise of the IDs.
        pub disguise: Option<DisguiseSpec>,
        /// Text format of IDs.
        pub text: Option<String>,
        /// Rule for how many numbers a segment source takes from the store at a time.
        pub step: Option<StepSpec>,
        /// Stripe of a segment source, from 1 to `increment`.
        pub offset: Option<u64>,
        /// Distance between the numbers of a segment source: the number of stripes.
        pub increment: Option<u64>,
        /// Lowest number of a segment source.
        pub first: Option<u64>,
        /// Position of the stripe's first number among the store's numbers: written by a restripe.
        pub first_at: Option<u64>,
        /// Number below which a segment source stays, and has stayed: written while stripes are
        /// changed.
        pub until: Option<u64>,
        /// Upstream of a segment source's numbers, while another system hands them out too.
        pub upstream: Option<String>,
        /// Stores that serve the source: each has a stripe of a segment source's numbers, or mints
        /// under its own worker number.
        pub stores: Option<String>,
        /// Keys of a counter source.
        pub counter: Option<CounterSpec>,
        /// Serial form of a segment source's numbers.
        pub serial: Option<SerialSpec>,
        /// UUID version and namespace.
        pub uuid: Option<UuidSpec>,
    }

    /// The keys `prefill.*`.
    pub struct PrefillSpec {
        /// Whether there is a queue.
        pub enabled: Option<bool>,
        /// Exponent of the queue's capacity: (highest sequence + 1) * 2^boost IDs.
        pub boost: Option<u32>,
        /// Percentage of the queue below which it is refilled.
        pub threshold: Option<u32>,
        /// Interval of further refills.
        pub schedule: Option<Span>,
        /// Policy of an empty queue.
        pub on_empty: Option<OnEmpty>,
        /// Longest wait for an empty queue.
        pub wait_max: Option<Span>,
    }

    /// The keys `disguise.*`.
    pub struct DisguiseSpec {
        /// Extent of what is hidden.
        pub mode: Option<DisguiseMode>,
        /// Number of the key ring in each server's configuration.
        pub key: Option<u32>,
        /// Derivation of the source's key from the configured one: 1 or 2. Stored texts without it
        /// are from before there were versions, and mean 1; a new definition without it gets the
        /// newest.
        pub version: Option<u8>,
        /// Most bits of a disguised number.
        pub bits: Option<u8>,
        /// Check value of the key, written when the source is defined. A server with another key of
        /// this number is rejected, since two keys would make the same ID twice.
        pub check: Option<String>,
    }

    /// The keys `step.*`.
    pub struct StepSpec {
        /// Rule for how many numbers are taken at a time.
        pub rule: Option<StepRule>,
        /// Numbers taken at a time, or at first, where the rule begins with a number.
        pub size: Option<u64>,
        /// Fewest numbers taken at a time.
        pub min: Option<u64>,
        /// Most numbers taken at a time.
        pub max: Option<u64>,
        /// Time that the numbers taken at a time should last.
        pub lasts: Option<Span>,
        /// Percentage of all numbers taken that may be lost.
        pub waste_max: Option<u8>,
    }

    /// The keys `counter.*`.
    pub struct CounterSpec {
        /// Lowest number of any key.
        pub start: Option<u64>,
        /// Numbers taken from the store at a time, for all keys of a section.
        pub step: Option<u64>,
        /// Basis of a result.
        pub confirm: Option<Confirm>,
        /// Name by which a key's section is found.
        pub keys: Option<KeyNames>,
    }

    /// The keys `serial.*`.
    pub struct SerialSpec {
        /// Prefix of each serial.
        pub prefix: Option<String>,
        /// Form of the date that follows.
        pub date: Option<String>,
        /// Time zone that decides the day.
        pub zone: Option<String>,
        /// Digits of the number.
        pub width: Option<u8>,
        /// Time at which the number restarts.
        pub reset: Option<SerialReset>,
    }

    /// The keys `uuid.*`.
    pub struct UuidSpec {
        /// 1, 3, 4, 5, 6, 7 or 8.
        pub version: Option<u8>,
        /// `dns`, `url`, `oid`, `x500` or a UUID.
        pub namespace: Option<String>,
    }
}

/// The keys of counters, serials and UUIDs, in the order of the pages.
pub(super) const TABLES: &[&[Key]] = &[CounterSpec::KEYS, SerialSpec::KEYS, UuidSpec::KEYS];

impl CounterSpec {
    const KEYS: &[Key] = &[
        key("counter.start", Takes::Number, "1", "counter", "lowest number of every key")
            .within(&bounds::COUNTER_START)
            .fixed(),
        key(
            "counter.step",
            Takes::Number,
            "10000",
            "counter",
            "numbers taken from the store at once, for all keys of a section",
        )
        .within(&bounds::STEP),
        key(
            "counter.confirm",
            Takes::Word(words::<Confirm>),
            "lease",
            "counter",
            "check before each response: lease (the server's own), or store (a call to the store)",
        ),
        key(
            "counter.keys",
            Takes::Word(words::<KeyNames>),
            "with-source",
            "counter",
            "text that decides a key's section: with-source (SOURCE:KEY) or alone (KEY), for \
             resp.default_counter_source",
        )
        .fixed(),
    ];
}

impl SerialSpec {
    const KEYS: &[Key] = &[
        key("serial.prefix", Takes::Text, "", "segment with serials", "start of each serial")
            .fixed(),
        key(
            "serial.date",
            Takes::Text,
            "",
            "segment with serials",
            "date in each serial; its number begins at 1 again each day (yyyyMMdd, yyyy-MM-dd, yyMMdd), \
             month (yyyyMM, yyyy-MM, yyMM) or year (yyyy, yy); left out: no date, and never",
        )
        .fixed(),
        key(
            "serial.zone",
            Takes::Text,
            "UTC",
            "segment with serials",
            "time zone that decides the day, by its IANA name",
        )
        .fixed(),
        key(
            "serial.width",
            Takes::Number,
            "6",
            "segment with serials",
            "digits of the number, with leading zeros",
        )
        .within(&bounds::SERIAL_WIDTH)
        .fixed(),
        key(
            "serial.reset",
            Takes::Word(words::<SerialReset>),
            "as serial.date says",
            "segment with serials",
            "period in which the number begins at 1 again: day, month, year or never; it must agree with serial.date",
        )
        .fixed(),
    ];
}

impl UuidSpec {
    const KEYS: &[Key] = &[
        key("uuid.version", Takes::Number, "7", "uuid", "1, 3, 4, 5, 6, 7 or 8")
            .within(&(1..=8))
            .fixed(),
        key(
            "uuid.namespace",
            Takes::Text,
            "",
            "uuid of version 3 or 5",
            "dns, url, oid, x500 or a UUID; names come with each call as its key",
        )
        .fixed(),
    ];
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
