//! Settings: plain data with a documented default each. Components are never configured here.

mod compat;
mod documented;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::BOUND_MAX;
use snowmint_coord::spec::Span;

pub use compat::{CompatSettings, CosIdSettings, KeySources, LeafSettings, TinyidSettings};
pub use documented::{Documented, SettingText};

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

/// Minimum of hyper.
pub(crate) const HEAD_BYTES_MIN: u16 = 8 * 1024;

crate::settings! {
    /// Limits of one request, and of all together.
    pub struct Limits {
        /// Most IDs of one request.
        #[serde(deserialize_with = "at_least::<1, _, _>")]
        pub batch_max: u32 = 100_000,
        /// Most IDs of one MintStream.
        pub stream_max: u64 = 1_000_000_000,
        /// Most numbers in one range of POST /v1/segments/{source}.
        pub segment_max: u64 = 1_000_000,
        /// Most numbers of one INCRBY.
        pub incrby_max: u64 = 1_000_000,
        /// Highest bound to which PUT /v1/counters/{source}/{key}, and so import redis, raises a
        /// counter. Other keys then continue above it, too, and nothing lowers it again. At most
        /// 2^62.
        #[serde(deserialize_with = "bound")]
        pub bound_max: u64 = BOUND_MAX,
        /// Longest wait of a request for the next tick or for the store.
        pub wait_max: Span = Span::from_ms(1_000),
        /// IDs that may be minted and not yet sent, over all connections. Each token, or address
        /// without one, has a share: at most the square of the part that is free afterwards. A
        /// client that is alone may hold 0.38 of the limit.
        ///
        /// Small responses do not count, and a `MintStream` counts as 16,384. The default is about
        /// 100 MB as JSON.
        pub unsent_max: u32 = 4_000_000,
        /// Forwarded requests that may wait for each peer that owns their keys. Each token, or
        /// address without one, has a share, as of unsent_max.
        #[serde(deserialize_with = "at_least::<3, _, _>")]
        pub passed_on_max: u32 = 1_024,
        /// Longest wait of a stop for requests in progress. Then the stop waits at most this long
        /// again for the store and the disk to take back what this server holds.
        pub stop_max: Span = Span::from_ms(10_000),
        /// Worker numbers that the programs of one token may hold at once (store.offered). Not for
        /// tokens with the right admin over all sources.
        #[serde(deserialize_with = "at_least::<1, _, _>")]
        pub workers_max: u32 = 16,
        /// Sources that calls may define, including deleted ones, since their names stay. A token
        /// without the right admin over all sources gets a quarter, counted over the sources that
        /// it has this right over.
        ///
        /// Beyond the limit, only the configuration defines sources.
        pub sources_max: u64 = 10_000,
        /// IDs in the queues of all prefilled sources together (prefill.boost), of 16 bytes each.
        /// The sources of a token without the right admin over all sources get a quarter. If there
        /// is no room for a queue, its source mints without it.
        ///
        /// The default takes 256 MiB.
        pub prefill_ids_max: u64 = 1 << 24,
    }

    /// HTTP connections.
    pub struct HttpSettings {
        /// Host names that the server accepts (HOST or HOST:PORT), besides IP addresses, localhost
        /// and the name in server.announce. Without tokens, the server rejects requests for any
        /// other host (421), so that no web page reaches it under a host name of its own. Pages of
        /// these hosts count as the server's own, as behind a proxy that sends another Host. In an
        /// environment variable, with commas.
        #[serde(deserialize_with = "hosts")]
        pub hosts: Vec<String>,
        /// Most connections at once. For one more, the server closes an idle connection: first one
        /// without a token, of the client with most connections, with the longest idle time. If
        /// none may be closed, it closes one in use, of the client with most connections. If no
        /// client has more than the new one's would have, the server rejects the new connection
        /// with an error.
        #[serde(deserialize_with = "at_least::<1, _, _>")]
        pub connections_max: usize = 10_000,
        /// Longest body of a request, or message of a call, in bytes.
        #[serde(deserialize_with = "at_least::<1, _, _>")]
        pub body_bytes_max: usize = 64 * 1024,
        /// Longest head of a request, in bytes; at least 8192.
        #[serde(deserialize_with = "at_least::<HEAD_BYTES_MIN, _, _>")]
        pub head_bytes_max: usize = 16 * 1024,
        /// Time limit of a new connection for the head of its first request.
        #[serde(deserialize_with = "some_time")]
        pub head_time_max: Span = Span::from_ms(10_000),
        /// Longest life of a connection that has shown no token, if tokens are required. Requests
        /// in progress are finished.
        #[serde(deserialize_with = "some_time")]
        pub auth_time_max: Span = Span::from_ms(60_000),
        /// Time limit of a request from its head until its body is complete, and of a call until
        /// its response begins. A request whose body is late gets 408. Over HTTP/1 the connection
        /// ends after it.
        ///
        /// Other traffic on its connection does not count.
        #[serde(deserialize_with = "some_time")]
        pub request_time_max: Span = Span::from_ms(30_000),
        /// Longest idle time of a connection between requests.
        ///
        /// The time begins after a response, and ends once the next request's head is complete. A
        /// reader may pause as long. Within it, the client must read the whole of a response that
        /// counts toward `limits.unsent_max`, and something of each `MintStream`, whatever else the
        /// connection sends.
        #[serde(deserialize_with = "some_time")]
        pub idle_max: Span = Span::from_ms(75_000),
    }

    /// RESP connections. The protocol bounds the longest request: see
    /// [`snowmint_wire::resp::FRAME_BYTES_MAX`].
    pub struct RespSettings {
        /// Most connections at once. For one more, the server closes an idle connection: first one
        /// without a token, of the client with most connections, with the longest idle time. If
        /// none may be closed, it closes one in use, of the client with most connections. If no
        /// client has more than the new one's would have, the server rejects the new connection
        /// with an error.
        ///
        /// The default is that of Redis.
        #[serde(deserialize_with = "at_least::<1, _, _>")]
        pub connections_max: usize = 10_000,
        /// Longest life of a connection without AUTH (or a certificate that stands for a token), if
        /// tokens are required.
        #[serde(deserialize_with = "some_time")]
        pub auth_time_max: Span = Span::from_ms(60_000),
        /// Time limit of a request from its first byte to its last.
        #[serde(deserialize_with = "some_time")]
        pub frame_time_max: Span = Span::from_ms(10_000),
        /// Time limit of a client for reading the replies to what it sent.
        #[serde(deserialize_with = "some_time")]
        pub write_time_max: Span = Span::from_ms(30_000),
        /// Longest idle time of a connection between requests.
        ///
        /// The default is long, since client pools keep connections open.
        #[serde(deserialize_with = "some_time")]
        pub idle_max: Span = Span::from_ms(3_600_000),
        /// Counter source of the keys in INCR, INCRBY and GET, so that an application of Redis
        /// moves by a change of address. Define it with counter.keys = "alone". Empty: keys are
        /// named source:key.
        pub default_counter_source: String,
        /// Whether this server forwards a command for a counter of another server to that server,
        /// for clients that do not know clusters. Otherwise it replies MOVED.
        pub forward_counters: bool,
        /// Whether IDs and numbers of every source are replied as strings, for clients that read
        /// integers into doubles. Otherwise only those of sources with a text form are, and those
        /// on connections with SELECT 1.
        pub strings: bool,
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
