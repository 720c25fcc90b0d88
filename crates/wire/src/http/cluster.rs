//! All servers of a namespace, and the last hour of one of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The body of `GET /v1/servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServersBody {
    /// Every member of the store, the responding server first.
    pub servers: Vec<MemberBody>,
    /// The sections of counters, in order, with their owners. Absent while no server has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionRangeBody>,
    /// Reason that the members are those that the responding server knows: the store did not list
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_error: Option<String>,
}

/// A member of the store: a server, or a program that mints itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberBody {
    /// The member ID, 32 hexadecimal digits; absent while the responding server has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The member's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The member's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The member's process ID on its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The address at which other servers call it; absent for a program that serves no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The address of RESP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resp: Option<String>,
    /// Whether it is the responding server.
    #[serde(default)]
    pub own: bool,
    /// Whether its presence is live, by the store.
    pub live: bool,
    /// Time of its join, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<String>,
    /// Time of its last renewal, by the store's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_renewed: Option<String>,
    /// The server's own report; absent if it did not respond, and for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ServerReportBody>,
    /// Reason that a server has no report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A server's report on itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServerReportBody {
    /// The version of the program.
    pub version: String,
    /// Whether it can mint from its own sources, with margin.
    pub ready: bool,
    /// Reasons that it is not ready, as codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// Milliseconds by which its clock was ahead of its time reference; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    /// Milliseconds for which other members must still see it as live.
    pub presence_ms: u64,
    /// Number of counter sections that it owns.
    pub sections: u64,
    /// IDs that it has issued since its start.
    pub issued: u64,
}

/// Neighbouring sections of counters with one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SectionRangeBody {
    /// The first section.
    pub first: u16,
    /// The last section.
    pub last: u16,
    /// The member ID of the owner.
    pub member: String,
}

/// The query of `GET /v1/history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct HistoryQuery {
    /// The member ID of the server; default: the responding one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

/// The last hour of a server: the body of `GET /v1/history`. Each list has one value for each
/// sample. A server that slept or was frozen has no sample for that time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryBody {
    /// Milliseconds between samples.
    pub every_ms: u64,
    /// Time of each sample in Unix milliseconds, by the server's clock.
    pub times_ms: Vec<u64>,
    /// Milliseconds that the counts of each sample cover, by elapsed time.
    pub spans_ms: Vec<u64>,
    /// Whether the server was ready.
    pub ready: Vec<bool>,
    /// IDs issued, by protocol.
    pub ids: BTreeMap<String, Vec<u64>>,
    /// IDs issued, by source: at most 16, those with the most.
    pub sources: BTreeMap<String, Vec<u64>>,
    /// Requests that ended in an error, by protocol.
    pub errors: BTreeMap<String, Vec<u64>>,
    /// Bound in microseconds that half of the requests stayed within; null without requests. A
    /// bound above 5,000,000 stands for any longer time.
    pub request_p50_us: Vec<Option<u64>>,
    /// The same bound for 99 of 100 requests.
    pub request_p99_us: Vec<Option<u64>>,
    /// The shortest window runway of a source, in milliseconds.
    pub window_runway_ms: Vec<Option<u64>>,
    /// The shortest time until the prefetched numbers of a source run out, in milliseconds; null
    /// while all are idle.
    pub prefetch_runway_ms: Vec<Option<u64>>,
    /// Milliseconds by which the clock was ahead of its time reference.
    pub clock_ahead_ms: Vec<Option<i64>>,
}
