//! Reports of a server on itself, as plain data of no protocol.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A server's report on itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ServerReportBody))]
pub struct ServerReport {
    /// The version of the program.
    pub version: String,
    /// Whether it can mint from its own sources, with margin.
    pub ready: bool,
    /// Reasons that it is not ready, as codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[a-z_]{1,40}$"))]
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

/// The last hour of a server: the body of `GET /v1/history`. Each list has one value for each
/// sample. A server that slept or was frozen has no sample for that time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = HistoryBody))]
pub struct LastHour {
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
