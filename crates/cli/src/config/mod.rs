//! Configuration keys and their defaults. Values come from three layers, each of which overrides
//! the one before: a TOML file, the environment, and the command line.
//!
//! The defaults are the schema: a key exists because [`Config::default`] has it, and has the type
//! of its default. So documented, printed, checked and used keys are the same.

mod change;
mod config_args;
mod docs;
mod layers;
mod minting;
mod places;
mod security;
mod server;
mod sources;
mod store;
mod template;
mod traces;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use snowmint_coord::OwnSources;
use snowmint_coord::catalog::check_name;
use snowmint_coord::node::{BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use snowmint_coord::private::read_trusted;
use snowmint_coord::spec::{Kind, SourceSpec};
use snowmint_server::{CompatSettings, HttpSettings, Limits, RespSettings};

pub(crate) use change::{ChangedKey, is_below};
pub(crate) use config_args::{ConfigArgs, warn_of_secret};
pub(crate) use layers::{Given, ValueOrigin};
pub(crate) use minting::{
    ClockSection, CountersSection, CrashPolicy, NumberChoice, WorkerReuse, WorkerSection,
};
use places::Places;
pub(crate) use security::{PeersSection, TlsSection, TokensSection};
pub(crate) use server::ServerSection;
pub(crate) use store::StoreSection;
#[cfg(test)]
pub(crate) use store::default_url;
pub(crate) use template::template;
pub(crate) use traces::TracesSection;

use crate::system::secret::Hidden;
use crate::terminal::exit::{Failure, Outcome};

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

impl Config {
    /// Loads the configuration from a file (if any), this process's environment, and the command
    /// line.
    pub(crate) fn load(file: Option<&Path>, flags: Vec<Given>) -> Outcome<Self> {
        let mut given = Vec::new();
        if let Some(file) = file {
            let name = format!("configuration file {file:?}");
            // The file names the files of tokens, certificates and keys, and the store.
            let bytes = read_trusted(&name, file).map_err(Failure::usage)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| Failure::usage(format!("{name} is not UTF-8; write it as text")))?;
            given.extend(layers::of_file(&text, &file.display().to_string())?);
        }
        given.extend(layers::of_environment(std::env::vars_os())?);
        given.extend(flags);
        let mut config = Self::from_layers(given)?;
        config.places.in_file(file);
        Ok(config)
    }

    /// Applies each given value in turn to the defaults.
    fn from_layers(given: Vec<Given>) -> Outcome<Self> {
        let mut config = Self::default();
        let mut defined = BTreeMap::new();
        let mut places = Places::default();
        for given in given {
            places.note(&given);
            if !sources::accept(&given, &mut defined)? {
                config = layers::apply(&config, &given)?;
            }
        }
        config.defined = defined;
        config.check().map_err(|failure| places.located(failure))?;
        config.places = places;
        Ok(config)
    }

    /// Returns the URL of the store.
    pub(crate) fn store_url(&self) -> Hidden {
        if self.store.url.is_empty() {
            return self::store::default_url(&self.server.data_dir).into();
        }
        self.store.url.clone()
    }

    /// Returns the defined sources, by name.
    pub(crate) fn specs(&self) -> BTreeMap<String, SourceSpec> {
        let defined = self.defined.iter();
        defined.map(|(name, defined)| (name.clone(), defined.spec.clone())).collect()
    }

    /// Returns the names of the sources that the configuration defines, or has built in.
    pub(crate) fn own_sources(&self) -> OwnSources {
        OwnSources::new(self.defined.keys().cloned(), self.sources.builtin)
    }

    /// Returns the kind of a source, if the configuration knows it. Other sources may be in the
    /// catalog.
    fn kind_of(&self, source: &str) -> Option<Kind> {
        let defined = self.defined.get(source).map(|defined| defined.spec.kind());
        defined.or(match source {
            _ if !self.sources.builtin => None,
            BUILTIN_DEFAULT => Some(Kind::Snowflake),
            BUILTIN_NUMBERS => Some(Kind::Segment),
            _ => None,
        })
    }

    /// Checks the counter source: with another kind, every command of Redis would fail.
    fn check_default_counter_source(&self) -> Outcome {
        let name = self.resp.default_counter_source.as_str();
        let refused = |reason: String| {
            let key = "resp.default_counter_source";
            Err(Failure::usage(format!("{key} {name:?}: {reason}")))
        };
        if name.is_empty() {
            return Ok(());
        }
        if let Err(kind) = check_name("source", name) {
            return refused(kind.to_string());
        }
        match self.kind_of(name) {
            None | Some(Kind::Counter) => Ok(()),
            Some(kind) => refused(format!("source has kind {kind}; use one of kind counter")),
        }
    }

    /// Checks conditions over several values.
    fn check(&self) -> Outcome {
        if let Err(kind) = check_name("namespace", &self.store.namespace) {
            return Err(Failure::usage(format!("store.namespace: {kind}")));
        }
        self.server.check()?;
        self.store.check()?;
        self.traces.check()?;
        self.worker.check()?;
        self.check_default_counter_source()?;
        security::check(self)?;
        self.compat.check().map_err(Failure::usage)?;
        for (name, source) in &self.defined {
            let origin = &source.origin;
            source
                .spec
                .check()
                .map_err(|error| Failure::usage(format!("{origin}: sources.{name}: {error}")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
