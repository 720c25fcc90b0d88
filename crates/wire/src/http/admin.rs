//! Sources, workers, layouts, decoding and health.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of `POST /v1/sources`: a name, and the keys of the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SourceRequest {
    /// The name.
    pub name: String,
    /// The source's keys, as in a configuration file.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::HashMap<String, Value>))]
    pub keys: Map<String, Value>,
}

/// The body of `PATCH /v1/sources/{name}`: a JSON merge patch (RFC 7396) of the source's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlterRequest {
    /// Expected version of the source; nothing changes if the source has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 18_446_744_073_709_551_615_u64))]
    pub version: Option<u64>,
    /// The keys to change; a null removes the key.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::HashMap<String, Value>))]
    pub changes: Map<String, Value>,
}

/// A source in its catalog state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SourceBody {
    /// The name.
    pub name: String,
    /// Version of the definition; rises with each change.
    pub version: u64,
    /// The lowest number of a segment source that is not reserved yet; absent when none are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The stores of a source that has several, in the state that this server sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub store_status: Vec<StoreStatusBody>,
    /// The source's keys, including defaults.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::HashMap<String, Value>))]
    pub keys: Map<String, Value>,
}

/// One of the stores of a source that has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoreStatusBody {
    /// The store's name.
    pub store: String,
    /// Whether the store issues numbers; prefetched numbers count.
    pub serving: bool,
    /// The stripe of the numbers that the store issues, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Number of stripes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increment: Option<u64>,
    /// The worker number in the store's IDs, if the stores mint and it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// The store's error, for example when it is unreachable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The body of `POST /v1/sources/{name}/restripe`: the new stripe of a segment source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RestripeRequest {
    /// The stripe, 1 to `increment`.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64))]
    pub offset: u64,
    /// Number of stripes.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64))]
    pub increment: u64,
    /// Start of the new stripe; default: the current position of the old one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 18_446_744_073_709_551_615_u64))]
    pub first: Option<u64>,
    /// Expected version of the source; nothing changes if the source has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 18_446_744_073_709_551_615_u64))]
    pub version: Option<u64>,
}

/// The body of `GET /v1/sources`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SourcesBody {
    /// Every source of the namespace, by name.
    pub sources: Vec<SourceBody>,
    /// The sources with a definition that this server cannot read, for example from a newer
    /// version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableBody>,
}

/// A source with an unreadable definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreadableBody {
    /// The name.
    pub name: String,
    /// The reason that the definition cannot be read.
    pub why: String,
}

/// The query of `GET /v1/decode/{id}`: either a source or a layout; without both, the response has
/// the readings of all known layouts. A text form may be named with each of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct DecodeQuery {
    /// The source that minted the ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The layout to decode with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The text form in which the ID was minted, as in `GET /v1/ids/{source}`; `number` is decimal.
    /// Without it: the source's own form or decimal, decimal for a layout, any form without both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// The parts of an ID: the body of `GET /v1/decode/{id}`. Parts that the source or layout does not
/// have are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecodedBody {
    /// The ID as sent.
    pub id: String,
    /// The number in it, before any disguise or text form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// The day, month or year of a serial to which the number belongs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// Start of the ID's tick.
    // No format: the times of IDs and layouts may lie after the year 9999.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Ticks since the layout's epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<u64>,
    /// The worker number of the minter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// The parts of a worker that the layout splits, the high part first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_parts: Option<[u64; 2]>,
    /// The clock sequence, where the layout has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u64>,
    /// The counter within its tick, where the layout has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The layout used for decoding, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The version of a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid_version: Option<u8>,
    /// The form of an ID that is no number, such as UUID or KSUID, where the query names neither
    /// source nor layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Other parts of such an ID, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, String>,
    /// The readings of a number by all known layouts, the most plausible first, where the query
    /// names neither source nor layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ReadingBody>,
}

/// A number as one of the known layouts reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReadingBody {
    /// The layout's name, with the epoch if it is not that of the name.
    pub layout: String,
    /// The layout written out in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_full: Option<String>,
    /// The text form by which the number was read, if it is not decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The number that this form reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Start of the tick; absent for a number with more bits than the layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The clock sequence, where the layout has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u64>,
    /// The worker number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// The parts of a worker that the layout splits, the high part first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_parts: Option<[u64; 2]>,
    /// The counter within the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Whether an ID of this layout could have been minted by now.
    pub plausible: bool,
    /// Reasons against the reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The bits of each field of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BitsBody {
    /// All fields together.
    pub total: u8,
    /// Time.
    pub time: u8,
    /// Clock sequence; 0 when there is none.
    pub clock: u8,
    /// Worker.
    pub worker: u8,
    /// Sequence.
    pub sequence: u8,
}

/// The capacity of a layout: the body of `GET /v1/layouts/{layout}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutBody {
    /// The layout's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The layout written out in full, which parses to the same layout.
    pub layout: String,
    /// The layout's origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The bits of each field.
    pub bits: BitsBody,
    /// The length of a tick in whole milliseconds; 0 for a shorter one.
    pub unit_ms: u32,
    /// The length of a tick in nanoseconds.
    pub unit_ns: u64,
    /// Start of tick 0.
    pub epoch: String,
    /// End of the layout's years: the first time after the last tick.
    pub end: String,
    /// Number of workers that can mint at once.
    pub workers: u64,
    /// IDs that one worker can mint in a second, on average.
    pub ids_per_second: u64,
    /// Whether IDs can be minted; false for a layout that only decodes.
    pub can_mint: bool,
    /// Sentences on what to know before a source gets this layout: why it only decodes, when its
    /// years end soon, that JavaScript rounds its IDs, how they spread over shards. Absent in
    /// `GET /v1/layouts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The first ID of worker 1, or of the only worker, at the time of the request, in each text
    /// form. Absent in `GET /v1/layouts`, and while the layout has no tick for now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sample: BTreeMap<String, String>,
}

/// The body of `GET /v1/layouts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutsBody {
    /// Every layout with a name.
    pub layouts: Vec<LayoutBody>,
}

/// A worker slot: its number, its holder, and its mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerBody {
    /// The pool.
    pub pool: String,
    /// The number within the pool.
    pub number: u64,
    /// The holder's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The holder's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The holder's process ID on its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Time at which the holder joined the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<String>,
    /// The fencing number.
    pub term: u64,
    /// The mark as a time: every earlier time has been promised.
    pub mark: String,
    /// Start of the current holder's lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// Time of the holder's last renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_renewed: Option<String>,
    /// Whether the holder is live.
    pub live: bool,
    /// Whether the responding server is the holder.
    #[serde(default)]
    pub own: bool,
    /// Whether the number is excluded: never assigned, because another system may mint with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excluded: bool,
    /// Whether the number belongs to a pool for external leases.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
}

/// The body of `GET /v1/workers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkersBody {
    /// Every slot that was ever held, by pool and number.
    pub workers: Vec<WorkerBody>,
}

/// The body of `GET /readyz`, with 200 or 503.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReadyBody {
    /// Whether IDs of the server's own sources can be minted, with margin: of those that its
    /// configuration defines, and of the built-in ones.
    pub ready: bool,
    /// Reasons that the server is not ready, in sentences. If tokens are required, only a caller
    /// with a token that has some permission gets them.
    pub reasons: Vec<String>,
    /// The same reasons as codes, for every caller.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z_]{1,40}$"))]
    pub codes: Vec<String>,
    /// Other sources that cannot mint here, in sentences, at most 100. They were defined at run
    /// time, and do not make the server unready. If tokens are required, a caller gets those over
    /// which its token has some permission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_minting: Vec<String>,
    /// Latest time until which the server mints offline: it has not reached its store since its
    /// start, and uses the rest of the window of an earlier process. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_store_until: Option<String>,
}
