//! Settings: plain data with a documented default each. Components are never configured here.

mod compat;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::BOUND_MAX;
use snowmint_coord::spec::Span;

pub use compat::{CompatSettings, CosIdSettings, KeySources, LeafSettings, TinyidSettings};

use crate::access::hosts::is_host;

/// All settings of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Limits of one request.
    pub limits: Limits,
    /// HTTP connections.
    pub http: HttpSettings,
    /// RESP connections.
    pub resp: RespSettings,
    /// HTTP interfaces of other systems.
    pub compat: CompatSettings,
    /// Whether each request gets a line in the log.
    pub access_log: bool,
}

/// Limits of one request, and of all together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Most IDs of one request. 100,000.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub batch_max: u32,
    /// Most IDs of one `MintStream`. 1,000,000,000.
    pub stream_max: u64,
    /// Longest range of `POST /v1/segments/{source}`. 1,000,000.
    pub segment_max: u64,
    /// Most numbers of one `INCRBY`. 1,000,000.
    pub incrby_max: u64,
    /// Highest bound that `PUT /v1/counters/{source}/{key}` raises a counter to, and with it,
    /// sooner or later, all keys of its section. 2^62, the highest possible bound.
    #[serde(deserialize_with = "bound")]
    pub bound_max: u64,
    /// Longest wait of a request for the next tick or for the store. 1 s.
    pub wait_max: Span,
    /// IDs that may be minted and not yet sent, over all connections. Small responses do not count,
    /// and a `MintStream` counts as 16,384. Each token, or address without one, has a share. It may
    /// hold the square of the part that is then free, so 0.38 of the limit alone. 4,000,000: about
    /// 100 MB as JSON.
    pub unsent_max: u32,
    /// Requests that may wait for each peer that owns their keys' sections. Shares as of
    /// `unsent_max`. 1,024.
    #[serde(deserialize_with = "at_least::<3, _, _>")]
    pub passed_on_max: u32,
    /// Longest wait of a stop for requests in progress. 10 s.
    pub stop_max: Span,
    /// Worker numbers that the programs of one token may hold at once (`store.offered`). 16.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub workers_max: u32,
    /// Names in the catalog, including those of deleted sources, which stay. Beyond the limit, only
    /// the configuration defines sources. A token without the admin right over all sources gets a
    /// quarter. 10,000.
    pub sources_max: u64,
    /// IDs in the queues of all prefilled sources, of 16 bytes each. A quarter of them for sources
    /// that a token without the admin right over all sources may define. 16,777,216: 256 MiB.
    pub prefill_ids_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_max: 100_000,
            stream_max: 1_000_000_000,
            segment_max: 1_000_000,
            incrby_max: 1_000_000,
            bound_max: BOUND_MAX,
            wait_max: Span::from_ms(1_000),
            unsent_max: 4_000_000,
            passed_on_max: 1_024,
            stop_max: Span::from_ms(10_000),
            workers_max: 16,
            sources_max: 10_000,
            prefill_ids_max: 1 << 24,
        }
    }
}

/// Reads a bound up to the highest possible one.
fn bound<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        bound if bound <= BOUND_MAX => Ok(bound),
        _ => Err(D::Error::custom(format_args!("the maximum is {BOUND_MAX} (2^62)"))),
    }
}

/// Reads a number of at least `MIN`.
fn at_least<'de, const MIN: u16, N, D>(deserializer: D) -> Result<N, D::Error>
where
    N: Deserialize<'de> + PartialOrd + From<u16>,
    D: Deserializer<'de>,
{
    match N::deserialize(deserializer)? {
        number if number >= N::from(MIN) => Ok(number),
        _ => Err(D::Error::custom(format_args!("the minimum is {MIN}"))),
    }
}

/// Reads host names, with a port or without.
fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let hosts = Vec::<String>::deserialize(deserializer)?;
    match hosts.iter().find(|host| !is_host(host)) {
        None => Ok(hosts),
        Some(host) => Err(D::Error::custom(format_args!(
            "{host:?} is not a host; write HOST or HOST:PORT, such as ids.example"
        ))),
    }
}

/// Reads a time of at least 1 ms.
fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    match Span::deserialize(deserializer)? {
        span if span.ms() > 0 => Ok(span),
        _ => Err(D::Error::custom("the minimum is 1ms")),
    }
}

/// Minimum of hyper.
pub(crate) const HEAD_BYTES_MIN: u16 = 8 * 1024;

/// HTTP connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    /// Names, with a port or without, under which the server may be called, besides IP addresses
    /// and `localhost`. Without tokens it serves no other name. Pages of these hosts may make
    /// changes, like pages of the called host. Default: none.
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    /// Most connections at once. For a new connection beyond the limit, an idle one ends, else one
    /// in use of a client that has more. If there is none, the new one gets an error and is closed.
    /// 10,000.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub connections_max: usize,
    /// Longest body of a request, or message of a call, in bytes. 64 KiB.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub body_bytes_max: usize,
    /// Longest head of a request, in bytes; at least 8 KiB. 16 KiB.
    #[serde(deserialize_with = "at_least::<HEAD_BYTES_MIN, _, _>")]
    pub head_bytes_max: usize,
    /// Time in which a new connection must send its first request's head. 10 s.
    #[serde(deserialize_with = "some_time")]
    pub head_time_max: Span,
    /// Longest life of a connection that has shown no token, where tokens are required; then it
    /// ends after the requests in progress. 60 s.
    #[serde(deserialize_with = "some_time")]
    pub auth_time_max: Span,
    /// Longest time from a request's head until its body is complete, and from a call until its
    /// response begins, regardless of other traffic on its connection. 30 s.
    #[serde(deserialize_with = "some_time")]
    pub request_time_max: Span,
    /// Longest time that a connection may be idle after a response, until the next request's head
    /// is complete, or that a reader may pause. Within it, the client must read the whole of a
    /// response that counts toward `limits.unsent_max`, and something of each `MintStream`,
    /// whatever else the connection sends. 75 s.
    #[serde(deserialize_with = "some_time")]
    pub idle_max: Span,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            connections_max: 10_000,
            body_bytes_max: 64 * 1024,
            head_bytes_max: 16 * 1024,
            head_time_max: Span::from_ms(10_000),
            auth_time_max: Span::from_ms(60_000),
            request_time_max: Span::from_ms(30_000),
            idle_max: Span::from_ms(75_000),
        }
    }
}

/// RESP connections. The protocol bounds the longest request: see
/// [`snowmint_wire::resp::FRAME_BYTES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RespSettings {
    /// Most connections at once. For a new connection beyond the limit, an idle one ends, else one
    /// in use of a client that has more. If there is none, the new one gets an error and is closed.
    /// 10,000, as in Redis.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub connections_max: usize,
    /// Longest life of a connection without `AUTH`, where tokens are required. 60 s.
    #[serde(deserialize_with = "some_time")]
    pub auth_time_max: Span,
    /// Longest time of a request from its first byte to its last. 10 s.
    #[serde(deserialize_with = "some_time")]
    pub frame_time_max: Span,
    /// Time in which a client must read the replies to its requests. 30 s.
    #[serde(deserialize_with = "some_time")]
    pub write_time_max: Span,
    /// Longest time that a connection may be idle between requests. 1 h, since client pools keep
    /// connections open.
    #[serde(deserialize_with = "some_time")]
    pub idle_max: Span,
    /// Counter source whose keys stand alone in `INCR`, `INCRBY` and `GET`, so that an application
    /// of Redis moves by a change of address. Default: none. Define it with `counter.keys =
    /// "alone"`.
    pub default_counter_source: String,
}

impl Default for RespSettings {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            auth_time_max: Span::from_ms(60_000),
            frame_time_max: Span::from_ms(10_000),
            write_time_max: Span::from_ms(30_000),
            idle_max: Span::from_ms(3_600_000),
            default_counter_source: String::new(),
        }
    }
}
