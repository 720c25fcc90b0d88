//! Sources, workers, layouts, decoding and health.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of `POST /v1/sources`: a name, and beside it the keys of the source.
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
    /// Only if the source still has this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 18_446_744_073_709_551_615_u64))]
    pub version: Option<u64>,
    /// The keys that change; one that is null is taken away.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::HashMap<String, Value>))]
    pub changes: Map<String, Value>,
}

/// A source as the catalog has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SourceBody {
    /// The name.
    pub name: String,
    /// Rises with each change of the definition.
    pub version: u64,
    /// The lowest number of a segment source that nobody was given; none when they are spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Each of its stores, of a source that has several, as this server finds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareBody>,
    /// The source's keys, defaults written out.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::HashMap<String, Value>))]
    pub keys: Map<String, Value>,
}

/// One of the stores of a source that has several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShareBody {
    /// Its name.
    pub store: String,
    /// Whether it hands out numbers; what is in stock counts.
    pub serves: bool,
    /// Which stripe of the numbers it has, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// How many stripes there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub increment: Option<u64>,
    /// The worker number in its IDs, where the stores mint and if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// What is wrong with it, as when it is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The body of `POST /v1/sources/{name}/restripe`: which stripe a segment source gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RestripeRequest {
    /// Which, 1 to `increment`.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64))]
    pub offset: u64,
    /// How many there are.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64))]
    pub increment: u64,
    /// Where it begins; without it, where the old one is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 18_446_744_073_709_551_615_u64))]
    pub first: Option<u64>,
    /// Only if the source still has this version.
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
    /// Those whose definition this server cannot read, such as what a newer version has defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableBody>,
}

/// A source whose definition cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreadableBody {
    /// The name.
    pub name: String,
    /// What cannot be read.
    pub why: String,
}

/// The query of `GET /v1/decode/{id}`: one of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct DecodeQuery {
    /// The source that minted the ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The layout to read it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
}

/// What an ID says: the body of `GET /v1/decode/{id}`. What the source or layout does not have is
/// left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecodedBody {
    /// The ID as it was sent.
    pub id: String,
    /// The number in it, before any disguise or text form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// The day, month or year of a serial, in whose row the number is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// When its tick began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Ticks since the layout's epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<u64>,
    /// Who minted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u64>,
    /// The parts of a worker that the layout splits, the high part first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_parts: Option<[u64; 2]>,
    /// The clock sequence, where the layout has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u64>,
    /// The counter within its tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The layout that it was read with, in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The version of a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid_version: Option<u8>,
}

/// How many bits each field of a layout has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BitsBody {
    /// All together.
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

/// What a layout can do: the body of `GET /v1/layouts/{layout}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutBody {
    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Written out in full: reads back as the same layout.
    pub layout: String,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The bits of each field.
    pub bits: BitsBody,
    /// The length of a tick in milliseconds.
    pub unit_ms: u32,
    /// When tick 0 begins.
    pub epoch: String,
    /// When its years have run out: the first time after the last tick.
    pub end: String,
    /// How many workers can mint at once.
    pub workers: u64,
    /// How many IDs a worker can mint in a second, on average.
    pub ids_per_second: u64,
    /// False for a layout that only reads old IDs.
    pub can_mint: bool,
}

/// The body of `GET /v1/layouts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutsBody {
    /// Every layout that has a name.
    pub layouts: Vec<LayoutBody>,
}

/// A slot: who holds which number, until when.
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
    /// The holder's process number on its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// When the holder was launched: when it joined the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launched: Option<String>,
    /// The fencing number.
    pub term: u64,
    /// The mark as time: everything before it has been promised.
    pub mark: String,
    /// Since when it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// When the holder was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_renewed: Option<String>,
    /// Whether the holder is there.
    pub live: bool,
    /// Whether the server that answers is the holder.
    #[serde(default)]
    pub own: bool,
    /// Whether nobody shall ever have it: another system's processes may mint from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub avoided: bool,
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
    /// Whether IDs can be minted, with margin.
    pub ready: bool,
    /// Why not, in sentences. Where tokens are required, only for a caller whose token has some right.
    pub reasons: Vec<String>,
    /// The same as codes, for everybody.
    #[serde(default)]
    pub codes: Vec<String>,
    /// It has not met its store since it was started, and mints in what is left of the window that an
    /// earlier process was granted: until then at most. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_store_until: Option<String>,
}
