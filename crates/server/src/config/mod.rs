//! Settings: plain data with a documented default each. Components are never configured here.

mod compat;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::BOUND_MAX;
use snowmint_coord::spec::Span;

pub use compat::{CompatSettings, CosIdSettings, Keys, LeafSettings, TinyidSettings};

use crate::hosts::is_host;

/// Everything that can be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What one request may ask for.
    pub limits: Limits,
    /// HTTP connections.
    pub http: HttpSettings,
    /// RESP connections.
    pub resp: RespSettings,
    /// The HTTP interfaces of other systems.
    pub compat: CompatSettings,
    /// Whether each request gets a line in the log.
    pub access_log: bool,
}

/// What one request may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most IDs of one request. 100,000.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub batch_max: u32,
    /// The most IDs of one `MintStream`. 1,000,000,000.
    pub stream_max: u64,
    /// The longest range of `POST /v1/segments/{source}`. 1,000,000.
    pub segment_max: u64,
    /// The most numbers of one `INCRBY`. 1,000,000.
    pub incrby_max: u64,
    /// The highest bound that `PUT /v1/counters/{source}/{key}` raises a counter to, and with it, sooner or
    /// later, all keys of its section. 2^62, beyond which there is none.
    #[serde(deserialize_with = "bound")]
    pub bound_max: u64,
    /// How long a request may wait for the next tick or for the store. 1 s.
    pub wait_max: Span,
    /// How many IDs may be minted and not yet sent, over all connections. Small answers are not
    /// counted, and a `MintStream` counts as 16,384. Each token, or address without one, has a share: of these, it may
    /// hold the square of the part that is free then, so 0.38 of them alone. 4,000,000: about 100 MB as JSON.
    pub unsent_max: u32,
    /// How many requests may wait for each of the other servers, which answers for their keys. Shares as of
    /// `unsent_max`. 1,024.
    #[serde(deserialize_with = "at_least::<3, _, _>")]
    pub passed_on_max: u32,
    /// How long a stop waits for requests in progress. 10 s.
    pub stop_max: Span,
    /// How many worker numbers the programs of one token may hold at once (`store.offered`). 16.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub workers_max: u32,
    /// How many names the catalog may have, those of deleted sources too, which stay; for more, nobody but the
    /// configuration defines. A token without the admin right over all sources gets a quarter of them. 10,000.
    pub sources_max: u64,
    /// How many IDs the queues of prefilled sources may hold together, of 16 bytes each; of those that a token without the
    /// admin right over all sources may define, a quarter. 16,777,216: 256 MiB.
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

/// A bound that there can be.
fn bound<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        bound if bound <= BOUND_MAX => Ok(bound),
        _ => Err(D::Error::custom(format_args!("it takes {BOUND_MAX} (2^62) at most"))),
    }
}

/// A number with which something works.
fn at_least<'de, const MIN: u16, N, D>(deserializer: D) -> Result<N, D::Error>
where
    N: Deserialize<'de> + PartialOrd + From<u16>,
    D: Deserializer<'de>,
{
    match N::deserialize(deserializer)? {
        number if number >= N::from(MIN) => Ok(number),
        _ => Err(D::Error::custom(format_args!("it takes {MIN} at least"))),
    }
}

/// Names of hosts, with a port or without.
fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let hosts = Vec::<String>::deserialize(deserializer)?;
    match hosts.iter().find(|host| !is_host(host)) {
        None => Ok(hosts),
        Some(host) => Err(D::Error::custom(format_args!(
            "{host:?} is not a host; write HOST or HOST:PORT, such as ids.example"
        ))),
    }
}

/// A time within which something can be done.
fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    match Span::deserialize(deserializer)? {
        span if span.ms() > 0 => Ok(span),
        _ => Err(D::Error::custom("it takes 1ms at least")),
    }
}

/// Below this hyper refuses to work.
pub(crate) const HEAD_BYTES_MIN: u16 = 8 * 1024;

/// HTTP connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    /// The names, with a port or without, by which the server is asked, besides IP addresses and `localhost`. Without
    /// tokens no other name is served. Pages of these hosts may change things, as those of the host that
    /// is asked. None.
    #[serde(deserialize_with = "hosts")]
    pub hosts: Vec<String>,
    /// The most connections at once. For one more, a connection at rest ends, else one in use of a client that has more;
    /// if there is none, the new one is told so and closed. 10,000.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub connections_max: usize,
    /// The longest body of a request, or message of a call, in bytes. 64 KiB.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub body_bytes_max: usize,
    /// The longest head of a request, in bytes; at least 8 KiB. 16 KiB.
    #[serde(deserialize_with = "at_least::<HEAD_BYTES_MIN, _, _>")]
    pub head_bytes_max: usize,
    /// How long a new connection may take for its first request's head. 10 s.
    #[serde(deserialize_with = "some_time")]
    pub head_time_max: Span,
    /// How long a connection may last that has shown no token, where tokens are asked for; then it ends after
    /// the requests in progress. 60 s.
    #[serde(deserialize_with = "some_time")]
    pub auth_time_max: Span,
    /// How long a request may take from its head until its body is there, and a call until its answer begins,
    /// whatever else its connection does. 30 s.
    #[serde(deserialize_with = "some_time")]
    pub request_time_max: Span,
    /// How long a connection may rest after an answer, until the next request's head is complete,
    /// or a reader may not read. An answer that counts against `limits.unsent_max` is read in this time as a
    /// whole, and something of each `MintStream`, whatever else is sent meanwhile. 75 s.
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

/// RESP connections. The longest request is given by the protocol: see
/// [`snowmint_wire::resp::FRAME_BYTES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RespSettings {
    /// The most connections at once. For one more, a connection at rest ends, else one in use of a client that has more;
    /// if there is none, the new one is told so and closed. 10,000, as in Redis.
    #[serde(deserialize_with = "at_least::<1, _, _>")]
    pub connections_max: usize,
    /// How long a connection may last without `AUTH`, where tokens are asked for. 60 s.
    #[serde(deserialize_with = "some_time")]
    pub auth_time_max: Span,
    /// How long a request may take from its first byte to its last. 10 s.
    #[serde(deserialize_with = "some_time")]
    pub frame_time_max: Span,
    /// How long a client may take to read the answers to what it sent. 30 s.
    #[serde(deserialize_with = "some_time")]
    pub write_time_max: Span,
    /// How long a connection may rest between requests. 1 h, since pools of clients keep
    /// connections open.
    #[serde(deserialize_with = "some_time")]
    pub idle_max: Span,
    /// The counter source whose keys stand alone in `INCR`, `INCRBY` and `GET`, so that an application
    /// of Redis moves by changing an address. None. Define it with `counter.keys = "alone"`.
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
