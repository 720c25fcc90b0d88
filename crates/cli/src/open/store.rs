//! Stores that a command opens itself, without a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_client::{ClientDeps, RemoteStore};
use snowmint_coord::catalog::check_name;
use snowmint_coord::error::chain;
use snowmint_coord::store::{StoreConnector, StoreConnectors};
use snowmint_coord::{Error, ErrorKind, LazyStore, Opening, Store};
use snowmint_stores::Settings;
use snowmint_wire::error::Code;
use tokio::runtime::{Builder, Runtime};

use crate::config::Config;
use crate::system::secret::{self, Hidden};
use crate::terminal::exit::{Failure, Outcome};

/// Returns a runtime for a command that makes a few calls and ends.
pub(crate) fn runtime() -> Outcome<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unavailable(format!("runtime cannot start: {error}")))
}

/// Opens the store of a configuration, and creates it if it is missing.
pub(crate) async fn configured(config: &Config) -> Outcome<Arc<dyn Store>> {
    Ok(open(config, true).await?)
}

/// Opens the same store, or one that opens later if it does not respond now.
pub(crate) async fn now_or_later(config: &Config) -> Outcome<Arc<dyn Store>> {
    let config = config.clone();
    let namespace = config.store.namespace.clone();
    let open = move || -> Opening {
        let config = config.clone();
        Box::pin(async move { open(&config, true).await })
    };
    Ok(LazyStore::now_or_later(&namespace, open).await?)
}

/// Opens the store of a configuration without any write; `None` if it does not exist yet.
pub(crate) async fn existing(config: &Config) -> Outcome<Option<Arc<dyn Store>>> {
    match open(config, false).await {
        Ok(store) => Ok(Some(store)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn open(config: &Config, create_if_missing: bool) -> snowmint_coord::Result<Arc<dyn Store>> {
    let (url, namespace) = (config.store_url(), &config.store.namespace);
    let url = url.text();
    if snowmint_client::is_url(url) {
        let parts =
            ClientDeps { credentials: config.store.credentials()?, ..ClientDeps::default() };
        let settings = snowmint_client::Settings::default();
        let store = RemoteStore::open_with(url, namespace, settings, parts).await?;
        return Ok(Arc::new(store));
    }
    let settings = Settings { attempts_max: config.store.attempts_max, create_if_missing };
    snowmint_stores::open_with(url, namespace, settings).await
}

/// Connector of a secondary store.
pub(crate) struct ConfiguredConnector {
    url: String,
    namespace: String,
    settings: Settings,
}

/// The URL may show a password, so it is left out.
impl fmt::Debug for ConfiguredConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredConnector")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl StoreConnector for ConfiguredConnector {
    async fn open(&self) -> snowmint_coord::Result<Arc<dyn Store>> {
        snowmint_stores::open_with(&self.url, &self.namespace, self.settings).await
    }
}

impl ConfiguredConnector {
    /// Returns the connector of a secondary store at this URL; `name` names the URL in errors.
    ///
    /// # Errors
    /// A URL that is not one of a secondary store.
    pub(crate) fn at(name: &str, url: &str, config: &Config) -> Outcome<Self> {
        if !snowmint_stores::is_url(url) || url.starts_with("memory:") {
            let lasting: Vec<_> =
                snowmint_stores::schemes().filter(|known| *known != "memory").collect();
            return Err(Failure::usage(format!(
                "{name} is not the URL of a lasting store; begin it with one of {}:",
                lasting.join(":, ")
            )));
        }
        let settings =
            Settings { attempts_max: config.store.attempts_max, create_if_missing: true };
        Ok(Self { url: url.into(), namespace: config.store.namespace.clone(), settings })
    }

    /// Returns the connectors of `[stores]`.
    pub(crate) fn all(config: &Config) -> Outcome<StoreConnectors> {
        let mut places = StoreConnectors::new();
        for (name, place) in &config.stores {
            let key = format!("stores.{name}");
            check_name("store", name).map_err(|error| Failure::usage(format!("{key}: {error}")))?;
            let connector = Self::named(&key, place, config)?;
            places.insert(name.clone(), Arc::new(connector) as _);
        }
        Ok(places)
    }

    /// Returns the connector of the store at this URL, or at the URL in this place.
    ///
    /// # Errors
    /// The errors of [`ConfiguredConnector::at`], or a place without a URL.
    pub(crate) fn named(name: &str, place: &Hidden, config: &Config) -> Outcome<Self> {
        if place.is_place() {
            let url = secret::at(name, place).map_err(Failure::usage)?;
            return Self::at(name, url.trim(), config);
        }
        Self::at(name, place.text(), config)
    }
}

/// Returns whether the store of a configuration is one of its secondary stores: it has the URL of
/// one of `[stores]`, or the data directory of one. Places that cannot be read have no URL.
pub(crate) fn is_secondary(config: &Config) -> bool {
    let url = config.store_url();
    let dir = &config.server.data_dir;
    let is_below = dir.parent().is_some_and(|parent| parent.ends_with("stores"));
    let name = dir.file_name().and_then(|name| name.to_str()).filter(|_| is_below);
    if name.is_some_and(|name| config.stores.contains_key(name)) {
        return true;
    }
    config.stores.iter().any(|(name, place)| match place.is_place() {
        true => secret::at(name, place).is_ok_and(|found| found.trim() == url.text()),
        false => place.text() == url.text(),
    })
}

/// Returns the store's URL in a form that may be shown: a text that is not a URL may be a password.
pub(crate) fn shown(config: &Config) -> String {
    let url = config.store_url();
    match snowmint_stores::is_url(url.text()) || snowmint_client::is_url(url.text()) {
        true => snowmint_stores::shown(url.text()),
        false => "store.url".to_owned(),
    }
}

/// Rejects unusable credentials and trusted certificates for a store of servers, without calling
/// the servers.
pub(crate) fn check_shown(config: &Config) -> Outcome {
    let url = config.store_url();
    let url = url.text();
    if !snowmint_client::is_url(url) {
        return Ok(());
    }
    let shown = config.store.credentials()?;
    // A token in the URL replaces them, and certificates count only with TLS.
    if !url.contains('@') {
        shown.read_token().map_err(Failure::usage)?;
    }
    if url.starts_with("snowmints:") {
        shown.read_ca().map_err(Failure::usage)?;
        shown.read_cert().map_err(Failure::usage)?;
    }
    Ok(())
}

/// Rejects a text that is not the URL of a store, without calling a store.
pub(crate) fn check_url(config: &Config) -> Outcome {
    let url = config.store_url();
    let url = url.text();
    if file(url).is_some_and(|file| file.as_os_str().is_empty()) {
        return Err(Failure::usage("store.url has no path; write sqlite:PATH"));
    }
    if snowmint_stores::is_url(url) || snowmint_client::is_url(url) {
        return Ok(());
    }
    let known: Vec<_> = snowmint_stores::schemes().chain(["snowmint", "snowmints"]).collect();
    let known = known.join(":, ");
    Err(Failure::usage(format!(
        "store.url is not the URL of a store; begin it with one of {known}:"
    )))
}

/// Rejects a store with a missing file: an operator who moves a store forward must have meant
/// another.
pub(crate) fn check_file(config: &Config) -> Outcome {
    match file(config.store_url().text()) {
        Some(file) if !file.is_file() => {
            Err(Failure::usage(format!("store file {file:?} does not exist; correct store.url")))
        }
        _ => Ok(()),
    }
}

/// Returns the file of a store that has one.
pub(crate) fn file(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    Some(path.strip_prefix("//").unwrap_or(path).into())
}

/// Returns the row of the table for an error of a store or a node.
pub(crate) fn code_of(error: &Error) -> Code {
    match error.kind() {
        ErrorKind::Invalid => Code::BadRequest,
        // All other codes have the same names in the table.
        kind => Code::from_name(kind.code()).unwrap_or(Code::Internal),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let cause = std::error::Error::source(&error);
        let cause = cause.map_or_else(String::new, |cause| format!(": {}", chain(cause)));
        Self::coded(code_of(&error), format!("{}{cause}", error.full_message()))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::default_url;

    #[test]
    fn errors_exit_with_the_code_of_the_table() {
        let exit = |error: Error| match Failure::from(error) {
            Failure::Explained { exit, .. } => exit as u8,
            other => panic!("{other:?}"),
        };
        assert_eq!(exit(Error::not_found("")), 1);
        assert_eq!(exit(Error::invalid("")), 2);
        assert_eq!(exit(Error::locked("")), 3);
        assert_eq!(exit(Error::unavailable("")), 4);
        assert_eq!(exit(Error::store_rolled_back("writes", 2, 1)), 3);
    }

    #[test]
    fn sqlite_urls_name_their_file() {
        assert_eq!(file("sqlite:a/b.db"), Some("a/b.db".into()));
        assert_eq!(file("sqlite:///a/b.db"), Some("/a/b.db".into()));
        assert_eq!(file("memory:"), None);
        assert_eq!(default_url(Path::new("./d")), "sqlite:./d/snowmint.db");
    }
}
