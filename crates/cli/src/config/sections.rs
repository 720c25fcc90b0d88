//! The sections, each with its keys and their defaults.

use std::collections::BTreeMap;

use snowmint_coord::spec::SourceSpec;
use snowmint_server::{
    CompatSettings, Documented, HttpSettings, Limits, RespSettings, SettingValues, settings,
};

use super::given::ValueOrigin;
use super::minting::{ClockSection, CountersSection, WorkerSection};
use super::places::Places;
use super::server::ServerSection;
use super::store::StoreSection;
use super::traces::TracesSection;
use crate::system::secret::Hidden;

settings! {
    /// Complete configuration.
    pub(crate) struct Config {
        /// This process.
        pub(crate) server: ServerSection,
        /// Primary store: marks and definitions.
        pub(crate) store: StoreSection,
        /// Secondary stores, in the same namespace, for sources with several stores (stores =
        /// "A,B"). Each store has its own stripe of the numbers or, if the stores mint, its own
        /// worker number, so one store may be unreachable. A =
        /// "postgres://USER:PASSWORD@HOST/DATABASE", "file:PATH" or "env:NAME".
        pub(crate) stores: BTreeMap<String, Hidden>,
        /// Worker numbers: which ones this server claims, and how it holds them.
        pub(crate) worker: WorkerSection,
        /// Checks of this machine's clock.
        pub(crate) clock: ClockSection,
        /// Limits of one request, and of all together.
        pub(crate) limits: Limits,
        /// HTTP connections.
        pub(crate) http: HttpSettings,
        /// RESP connections.
        pub(crate) resp: RespSettings,
        pub(crate) compat: CompatSettings,
        /// Callers and their rights: docs/reference/access.md.
        pub(crate) tokens: TokensSection,
        /// TLS, on both ports. The server follows changes of the files.
        pub(crate) tls: TlsSection,
        /// Other servers of the namespace.
        pub(crate) peers: PeersSection,
        /// Counters, which servers on one store share.
        pub(crate) counters: CountersSection,
        /// Logs go to standard error.
        pub(crate) log: LogSection,
        /// Spans of requests and of store calls, for a collector (OTLP over gRPC).
        pub(crate) traces: TracesSection,
        pub(crate) disguise: DisguiseSection,
        /// Upstreams: tables of other systems from which sources allocate their numbers (upstream =
        /// "NAME:KEY") while both serve. NAME = "leaf+mysql://USER:PASSWORD@HOST/DATABASE" (or
        /// tinyid, cosid), "file:PATH" or "env:NAME".
        pub(crate) upstreams: BTreeMap<String, Hidden>,
        /// Sources. At its start, the server defines those below in the store, if they do not exist
        /// yet.
        pub(crate) sources: SourcesSection,
        /// `[sources.NAME]`, by name, with the place where each was first given.
        #[serde(skip)]
        pub(crate) defined: BTreeMap<String, Defined>,
        #[serde(skip)]
        pub(crate) places: Places,
    }

    /// `[tokens]`
    pub(crate) struct TokensSection {
        /// File of tokens; the server follows its changes. Empty: every caller that reaches the
        /// server may request anything, within the limits.
        ///
        /// The server rejects a file that every user of the machine can write
        /// (docs/reference/access.md#files).
        pub(crate) file: String,
        /// Whether /metrics is open to all callers even if tokens are required.
        pub(crate) open_metrics: bool,
    }

    /// `[tls]`
    pub(crate) struct TlsSection {
        /// File (PEM) of this server's certificate, and of those between it and the root. Empty: no
        /// TLS.
        pub(crate) cert: String,
        /// File (PEM) of its private key.
        pub(crate) key: String,
        /// File (PEM) of the authorities that sign client certificates. Every client must then have
        /// a certificate, which may stand for a token. Empty: clients need none.
        ///
        /// More: docs/reference/access.md#certificates-that-stand-for-a-token.
        pub(crate) client_ca: String,
    }

    /// `[peers]`
    pub(crate) struct PeersSection {
        /// Location of the token that the servers of a namespace send each other, the same for all:
        /// file:PATH or env:NAME. Of a file, the server sends the first line and accepts every
        /// line. Needed if tokens are required and several servers share counters or a source of
        /// global order.
        pub(crate) token: Hidden,
        /// File (PEM) of the authorities that sign the certificates of peers. Empty: those that the
        /// system trusts.
        pub(crate) ca: String,
    }

    /// `[log]`
    pub(crate) struct LogSection {
        /// Log level: off, error, warn, info, debug or trace; also for parts:
        /// info,snowmint_coord=debug.
        pub(crate) filter: String = "info".into(),
        /// Whether each request gets a log line: protocol, request, source, count, outcome and
        /// duration. Needs filter = "info" or more.
        ///
        /// The target is `snowmint::access`, the level info. The fields are `protocol`, `request`
        /// (method and path without the query, or command; 200 characters at most), `source` and
        /// `count` where they are known, `outcome` (`ok`, or the error's code) and `micros`.
        pub(crate) access: bool,
    }

    /// `[disguise]`
    pub(crate) struct DisguiseSection {
        /// Keys of sources with a disguise, by number: 1 = "file:PATH" or 1 = "env:NAME", with 32
        /// or 64 hexadecimal digits in it. Add a new number to rotate; keep an old one as long as
        /// its IDs are decoded.
        pub(crate) keys: BTreeMap<String, Hidden>,
    }

    /// `[sources]`, without the sources themselves.
    pub(crate) struct SourcesSection {
        /// Whether the sources default (snowflake), numbers (segment) and counters (counter) exist
        /// without a definition.
        pub(crate) builtin: bool = true,
    }
}

impl Documented for Hidden {
    fn takes() -> SettingValues {
        SettingValues::Text
    }
}

impl Documented for Places {
    fn takes() -> SettingValues {
        SettingValues::Named
    }
}

impl TlsSection {
    /// Returns whether TLS is used.
    pub(crate) fn is_on(&self) -> bool {
        !self.cert.is_empty()
    }
}

/// A source of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) origin: ValueOrigin,
}
