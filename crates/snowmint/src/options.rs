//! Settings for opening a store.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use snowmint_coord::{BoxFuture, Node, NodeSettings, Platform};
use snowmint_core::{Observer, Pause};

use crate::clock::{ClockChoice, GivenClock, HandleClock};
use crate::mint::Mint;
use crate::observer::{GivenObserver, LoggingObserver};
use crate::stored::{StoreContext, place};
use snowmint_coord::Result;

/// Default for the longest wait of a call that needs the store, in milliseconds.
pub const STORE_WAIT_MS: u64 = 5_000;

/// Opens the store at `url` and joins its namespace `default`. The URL is `sqlite:PATH` for the
/// processes of one machine, `snowmint://HOST:PORT,HOST:PORT` for servers, or with TLS
/// `snowmints://` (feature `client`), or `memory:` for tests. [`Options`] has all other settings.
///
/// Needs a Tokio runtime with time enabled, on which one task keeps the worker's window ahead of
/// need. [`open_blocking`](crate::open_blocking) is for programs without a runtime.
///
/// # Errors
/// `Invalid` for a URL that names no store; the store's error when it cannot be opened.
pub fn open(url: &str) -> BoxFuture<'_, Result<Mint>> {
    Options::new().open(url)
}

/// Settings with which a store is opened.
pub struct Options {
    namespace: String,
    settings: NodeSettings,
    /// Names and URLs of the secondary stores.
    secondary_stores: Vec<(String, String)>,
    wait_max_ms: u64,
    clock: ClockChoice,
    given_clock: Option<GivenClock>,
    observer: Option<GivenObserver>,
    credentials: place::ClientCredentials,
}

impl Options {
    /// Returns the defaults: namespace `default`, no journal, and the defaults of [`NodeSettings`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            namespace: "default".into(),
            settings: NodeSettings { builtin: true, ..NodeSettings::default() },
            secondary_stores: Vec::new(),
            wait_max_ms: STORE_WAIT_MS,
            clock: ClockChoice::Precise,
            given_clock: None,
            observer: None,
            credentials: place::ClientCredentials::default(),
        }
    }

    /// Sets the namespace, which isolates deployments that share a store.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the owner name: a label for listings, and a preference for the worker number that this
    /// owner had last. It is never an identity: two processes of one name get two numbers.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.settings.owner = owner.into();
        self
    }

    /// Keeps a journal in this directory, which one process at a time may use. After a crash,
    /// minting continues with the same worker, at most half a second ahead of the clock.
    #[must_use]
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.settings.data_dir = Some(dir.into());
        self
    }

    /// Lets this process start while the store is unreachable. It then mints snowflakes in the rest
    /// of the window that its journal has for the previous process. Needs
    /// [`data_dir`](Self::data_dir); never applies after a clean end. Numbers and counters wait for
    /// the store.
    #[must_use]
    pub fn start_without_store(mut self) -> Self {
        self.settings.start_without_store = true;
        self
    }

    /// Replaces all node settings made so far.
    #[must_use]
    pub fn node_settings(mut self, settings: NodeSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds a secondary store for sources that use several stores (key `stores`), under the name in
    /// those sources' definitions. It is opened when a source needs it, and may be unreachable.
    #[must_use]
    pub fn secondary_store(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.secondary_stores.push((name.into(), url.into()));
        self
    }

    /// Sets the longest wait of a call that needs the store; by default [`STORE_WAIT_MS`].
    #[must_use]
    pub fn wait_max_ms(mut self, ms: u64) -> Self {
        self.wait_max_ms = ms;
        self
    }

    /// Sets how the time is read; by default [`ClockChoice::Precise`].
    #[must_use]
    pub fn clock(mut self, clock: ClockChoice) -> Self {
        self.clock = clock;
        self
    }

    /// Mints by the given clock in place of [`clock`](Self::clock): for tests and simulations.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Pause + Send + Sync>) -> Self {
        self.given_clock = Some(clock);
        self
    }

    /// Notifies `observer` of every clock step, on the thread that met it. Steps are logged too.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer + Send + Sync>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the trusted certificates and the credentials for servers; by default those of the
    /// environment ([`Credentials::from_env`](snowmint_client::Credentials::from_env)).
    #[cfg(feature = "client")]
    #[must_use]
    pub fn credentials(mut self, credentials: snowmint_client::Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Opens the store at `url`, within a Tokio runtime.
    ///
    /// # Errors
    /// Same as [`open`](crate::open); `Locked` and `JournalRefused` for the data directory.
    pub fn open(self, url: &str) -> BoxFuture<'_, Result<Mint>> {
        Box::pin(async move {
            let keeps = self.settings.start_without_store && self.settings.data_dir.is_some();
            let store = if keeps {
                place::open_now_or_later(url, &self.namespace, self.credentials.clone()).await?
            } else {
                place::open(url, &self.namespace, self.credentials.clone()).await?
            };
            let clock = Arc::new(HandleClock::new(self.clock, self.given_clock)?);
            let name = self.namespace;
            let parts = Platform {
                clock: Arc::clone(&clock) as _,
                observer: Arc::new(LoggingObserver { name: name.clone(), observer: self.observer }),
                ..Platform::system()
            };
            let mut settings = self.settings;
            for (store, url) in self.secondary_stores {
                let place = place::UrlConnector {
                    url,
                    namespace: name.clone(),
                    credentials: self.credentials.clone(),
                };
                settings.secondary_stores.insert(store, Arc::new(place));
            }
            let node = Node::open(store, settings, parts).await?;
            let ctx = StoreContext { clock, wait_max_ms: self.wait_max_ms, runtime: None };
            Ok(Mint::new(node, ctx))
        })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("namespace", &self.namespace)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
