//! Settings: plain data with a documented default each. Components are never configured here.

mod compat;
mod documented;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use snowmint_coord::BOUND_MAX;
use snowmint_coord::spec::Span;

pub use compat::{CompatSettings, CosIdSettings, KeySources, LeafSettings, TinyidSettings};
pub use documented::{Documented, SettingRow, SettingValues};

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
        #[within(1..)]
        pub batch_max: u32 = 100_000,
        /// Most IDs of one MintStream.
        pub stream_max: u64 = 1_000_000_000,
        /// Most numbers in one range of POST /v1/segments/{source}.
        pub segment_max: u64 = 1_000_000,
        /// Most numbers of one INCRBY.
        pub incrby_max: u64 = 1_000_000,
        /// Highest bound to which PUT /v1/counters/{source}/{key}, and so import redis, raises a
        /// counter. Other keys then continue above it, too, and nothing lowers it again.
        #[within(..=BOUND_MAX)]
        pub bound_max: u64 = BOUND_MAX,
        /// Longest wait of a request for the next tick or for the store.
        pub wait_max: Span = Span::from_ms(1_000),
        /// IDs that may be minted and not yet sent, over all connections. Each token, or address
        /// without one, has a share: at most the square of the part that is free afterwards. A
        /// client that is alone may hold 0.38 of the limit.
        ///
        /// Small responses do not count, and a `MintStream` counts as 16,384. The default is about
        /// 100 MB as JSON. How shares work: docs/reference/access.md#shares.
        pub unsent_max: u32 = 4_000_000,
        /// Forwarded requests that may wait for each peer that owns their keys. Each token, or
        /// address without one, has a share, as of unsent_max.
        #[within(3..)]
        pub passed_on_max: u32 = 1_024,
        /// Longest wait of a stop for requests in progress. Then the stop waits at most this long
        /// again for the store and the disk to take back what this server holds.
        pub stop_max: Span = Span::from_ms(10_000),
        /// Worker numbers that the programs of one token may hold at once (store.offered). Not for
        /// tokens with the right admin over all sources.
        ///
        /// The limit holds over all servers, and in each store by itself. Sixteen times as many
        /// programs may be members
        /// (docs/reference/access.md#programs-that-mint-in-their-own-process).
        #[within(1..)]
        pub workers_max: u32 = 16,
        /// Sources that calls may define, including deleted ones, since their names stay. A token
        /// without the right admin over all sources gets a quarter, counted over the sources that
        /// it has this right over.
        ///
        /// Beyond the limit, only the configuration defines sources. Its sources count, and are
        /// never rejected.
        pub sources_max: u64 = 10_000,
        /// IDs in the queues of all prefilled sources together (prefill.boost), of 16 bytes each.
        /// The sources of a token without the right admin over all sources get a quarter. If there
        /// is no room for a queue, its source mints without it.
        ///
        /// That can happen to a definition of the configuration, or of an earlier build; the log
        /// says it. The default takes 256 MiB.
        pub prefill_ids_max: u64 = 1 << 24,
    }

    /// HTTP connections.
    pub struct HttpSettings {
        /// Host names that the server accepts (HOST or HOST:PORT), besides IP addresses, localhost
        /// and the name in server.announce. Without tokens, the server rejects requests for any
        /// other host (421), so that no web page reaches it under a host name of its own. Pages of
        /// these hosts count as the server's own, as behind a proxy that sends another Host. In an
        /// environment variable, with commas.
        ///
        /// Without server.announce, the machine's name counts (docs/reference/access.md#browsers).
        #[serde(deserialize_with = "hosts")]
        pub hosts: Vec<String>,
        /// Most connections at once. For one more, the server closes an idle connection: first one
        /// without a token, of the client with most connections, with the longest idle time. If
        /// none may be closed, it closes one in use, of the client with most connections. If no
        /// client has more than the new one's would have, the server rejects the new connection
        /// with an error.
        ///
        /// The error is `overloaded` (docs/reference/access.md#shares).
        #[within(1..)]
        pub connections_max: usize = 10_000,
        /// Longest body of a request, or message of a call, in bytes.
        ///
        /// A longer one gets `limit_exceeded` (413). Calls of `snowmint.store.v1` may have 512 KiB
        /// if that is more.
        #[within(1..)]
        pub body_bytes_max: usize = 64 * 1024,
        /// Longest head of a request, in bytes.
        ///
        /// A longer one gets 431, over gRPC `RESOURCE_EXHAUSTED`. Over HTTP/2 the server reads up to
        /// twice as much, so that callers get this error.
        #[within(u64::from(HEAD_BYTES_MIN)..)]
        pub head_bytes_max: usize = 16 * 1024,
        /// Time limit of a new connection for the head of its first request; then it is closed.
        #[within(1..)]
        pub head_time_max: Span = Span::from_ms(10_000),
        /// Longest life of a connection that has shown no token, if tokens are required. Requests
        /// in progress are finished.
        #[within(1..)]
        pub auth_time_max: Span = Span::from_ms(60_000),
        /// Time limit of a request from its head until its body is complete, and of a call until
        /// its response begins. A request whose body is late gets 408. Over HTTP/1 the connection
        /// ends after it.
        ///
        /// A call that is late gets `DEADLINE_EXCEEDED`. Other traffic on its connection does not
        /// count.
        #[within(1..)]
        pub request_time_max: Span = Span::from_ms(30_000),
        /// Longest idle time of a connection between requests.
        ///
        /// The time begins after a response, and ends once the next request's head is complete. A
        /// reader may pause as long. Within it, the client must read the whole of a response that
        /// counts toward `limits.unsent_max`, and something of each `MintStream`, whatever else the
        /// connection sends. Otherwise the connection is closed.
        #[within(1..)]
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
        /// The error is `-ERR max number of clients reached` (docs/reference/access.md#shares). The
        /// default is that of Redis.
        #[within(1..)]
        pub connections_max: usize = 10_000,
        /// Longest life of a connection without AUTH (or a certificate that stands for a token), if
        /// tokens are required.
        #[within(1..)]
        pub auth_time_max: Span = Span::from_ms(60_000),
        /// Time limit of a request from its first byte to its last; then the connection is closed.
        #[within(1..)]
        pub frame_time_max: Span = Span::from_ms(10_000),
        /// Time limit of a client for reading the replies to what it sent; then the connection is
        /// closed.
        #[within(1..)]
        pub write_time_max: Span = Span::from_ms(30_000),
        /// Longest idle time of a connection between requests.
        ///
        /// Then the connection is closed. The default is long, since client pools keep connections
        /// open.
        #[within(1..)]
        pub idle_max: Span = Span::from_ms(3_600_000),
        /// Counter source of the keys in INCR, INCRBY and GET, so that an application of Redis
        /// moves by a change of address. Define it with counter.keys = "alone". INCR of the name of
        /// another source then counts a key of that name; MINT reaches that source. Empty: keys are
        /// named source:key.
        pub default_counter_source: String,
        /// Whether this server forwards a command for a counter of another server to that server,
        /// for clients that do not know clusters. Otherwise it replies MOVED.
        ///
        /// More: docs/explanation/counters.md#which-server-issues-the-numbers.
        pub forward_counters: bool,
        /// Whether IDs and numbers of every source are replied as strings, for clients that read
        /// integers into doubles. Otherwise only those of sources with a text form are, and those
        /// on connections with SELECT 1.
        ///
        /// Why, and for which clients: docs/reference/resp.md#ids-as-strings.
        pub strings: bool,
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
