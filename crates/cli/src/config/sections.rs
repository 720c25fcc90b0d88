//! The sections, each with its keys and their defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use snowmint_coord::spec::SourceSpec;
use snowmint_server::{CompatSettings, HttpSettings, Limits, RespSettings};

use super::given::ValueOrigin;
use super::minting::{ClockSection, CountersSection, WorkerSection};
use super::places::Places;
use super::server::ServerSection;
use super::store::StoreSection;
use super::traces::TracesSection;
use crate::system::secret::Hidden;

/// Complete configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) server: ServerSection,
    pub(crate) store: StoreSection,
    /// Secondary stores, for sources with numbers from several stores: a URL, or the place of one.
    pub(crate) stores: BTreeMap<String, Hidden>,
    pub(crate) worker: WorkerSection,
    pub(crate) clock: ClockSection,
    pub(crate) limits: Limits,
    pub(crate) http: HttpSettings,
    pub(crate) resp: RespSettings,
    pub(crate) compat: CompatSettings,
    pub(crate) tokens: TokensSection,
    pub(crate) tls: TlsSection,
    pub(crate) peers: PeersSection,
    pub(crate) counters: CountersSection,
    pub(crate) log: LogSection,
    pub(crate) traces: TracesSection,
    pub(crate) disguise: DisguiseSection,
    /// Upstreams, the tables that sources allocate from: `SYSTEM+URL`, or the place of one.
    pub(crate) upstreams: BTreeMap<String, Hidden>,
    pub(crate) sources: SourcesSection,
    /// `[sources.NAME]`, by name, with the place where each was first given.
    #[serde(skip)]
    pub(crate) defined: BTreeMap<String, Defined>,
    #[serde(skip)]
    pub(crate) places: Places,
}

/// `[tokens]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TokensSection {
    pub(crate) file: String,
    pub(crate) open_metrics: bool,
}

/// `[tls]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSection {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) client_ca: String,
}

impl TlsSection {
    /// Returns whether TLS is used.
    pub(crate) fn is_on(&self) -> bool {
        !self.cert.is_empty()
    }
}

/// `[peers]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PeersSection {
    /// Place of the token, never the token itself.
    pub(crate) token: Hidden,
    pub(crate) ca: String,
}

/// `[log]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogSection {
    pub(crate) filter: String,
    pub(crate) access: bool,
}

impl Default for LogSection {
    fn default() -> Self {
        Self { filter: "info".into(), access: false }
    }
}

/// `[disguise]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DisguiseSection {
    /// Place of the key of each number: `file:PATH` or `env:NAME`.
    pub(crate) keys: BTreeMap<String, Hidden>,
}

/// `[sources]`, without the sources themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SourcesSection {
    pub(crate) builtin: bool,
}

impl Default for SourcesSection {
    fn default() -> Self {
        Self { builtin: true }
    }
}

/// A source of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) origin: ValueOrigin,
}
