//! Configuration keys and their defaults. Values come from three layers, each of which overrides
//! the one before: a TOML file, the environment, and the command line.
//!
//! The defaults are the schema: a key exists because [`Config::default`] has it, and has the type
//! of its default. Its text, its default and its bounds stand at its field. So documented, printed,
//! checked and used keys are the same.

mod change;
mod config_args;
mod given;
mod layers;
mod minting;
mod places;
mod schema;
mod secrets;
mod sections;
mod security;
mod server;
mod sources;
mod store;
mod template;
mod traces;

use std::collections::BTreeMap;
use std::path::Path;

use snowmint_coord::OwnSources;
use snowmint_coord::catalog::check_name;
use snowmint_coord::node::{BUILTIN_DEFAULT, BUILTIN_NUMBERS};
use snowmint_coord::private::read_trusted;
use snowmint_coord::spec::{Kind, SourceSpec};

pub(crate) use change::ChangedKey;
pub(crate) use config_args::{ConfigArgs, warn_of_secret};
pub(crate) use given::{Given, is_below};
pub(crate) use layers::defaults;
#[cfg(test)]
pub(crate) use layers::keys;
pub(crate) use minting::{CrashPolicy, NumberChoice, WorkerReuse, WorkerSection};
use places::Places;
pub(crate) use schema::schema;
pub(crate) use sections::{Config, Defined, TlsSection};
pub(crate) use store::default_url;
pub(crate) use template::template;

use crate::system::secret::Hidden;
use crate::terminal::exit::{Failure, Outcome};

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
            return default_url(&self.server.data_dir).into();
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
