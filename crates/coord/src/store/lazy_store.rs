//! Lazy store: opened on first use, with retries until it is available.

use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::error::{Error, ErrorKind, Result, chain};
use crate::model::history::StoreIdentity;
use crate::platform::lock::lock;
use crate::platform::timer::{BootTimer, Timer as _};
use crate::store::capability::{Capabilities, ClockOf, PresenceBy};
use crate::store::owner_client::OwnerClient;
use crate::store::time_reference::TimeReference;
use crate::store::{Store, StoreCall, StoreConnector, StoreReply};

/// Maximum time in milliseconds that a start waits for a store before it continues without it.
const OPEN_MS_MAX: u64 = 5_000;

/// The future of a store that is being opened.
pub type Opening = BoxFuture<'static, Result<Arc<dyn Store>>>;

/// A store that is opened on first use. Until it is open, every verb tries to open it and returns
/// the error.
pub struct LazyStore {
    namespace: String,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
    store: OnceCell<Arc<dyn Store>>,
    /// Identity to pass to the store once it is open.
    remembered: Mutex<Option<StoreIdentity>>,
}

impl LazyStore {
    /// Creates a store in this namespace that `open` opens later.
    pub fn new(
        namespace: impl Into<String>,
        open: impl Fn() -> Opening + Send + Sync + 'static,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            open: Box::new(open),
            store: OnceCell::new(),
            remembered: Mutex::default(),
        }
    }

    /// Returns the store that `open` opens, or a lazy store if it is unavailable now.
    ///
    /// # Errors
    /// The errors of `open`, except `Unavailable`.
    pub async fn now_or_later(
        namespace: &str,
        open: impl Fn() -> Opening + Send + Sync + 'static,
    ) -> Result<Arc<dyn Store>> {
        let opened = tokio::select! {
            biased;
            opened = open() => opened,
            () = BootTimer.sleep_ms(OPEN_MS_MAX) => {
                Err(Error::unavailable(format!(
                    "store did not open within {OPEN_MS_MAX} ms; \
                     check that it runs and is reachable"
                )))
            }
        };
        match opened {
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable) => {
                tracing::warn!(error = %chain(&error), "the store does not respond; calls continue until it does");
                Ok(Arc::new(Self::new(namespace, open)))
            }
            opened => opened,
        }
    }

    async fn store(&self) -> Result<&Arc<dyn Store>> {
        let opened = async {
            let store = (self.open)().await?;
            for warning in store.warnings() {
                tracing::warn!("{warning}");
            }
            if let Some(seen) = &*lock(&self.remembered) {
                store.remember(seen);
            }
            Ok(store)
        };
        self.store.get_or_try_init(|| opened).await
    }
}

impl fmt::Debug for LazyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyStore").field("store", &self.store.get()).finish_non_exhaustive()
    }
}

impl Store for LazyStore {
    /// Returns no capability that a caller could rely on until the store is open.
    fn capabilities(&self) -> Capabilities {
        let none = Capabilities {
            clock: ClockOf::Caller,
            durable_on_reply: false,
            safe_over_failover: false,
            presence: PresenceBy::Record,
        };
        self.store.get().map_or(none, |store| store.capabilities())
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn warnings(&self) -> Vec<String> {
        self.store.get().map_or_else(Vec::new, |store| store.warnings())
    }

    fn group_max(&self) -> u32 {
        self.store.get().map_or(u32::MAX, |store| store.group_max())
    }

    fn owner_client(&self) -> Option<Arc<dyn OwnerClient>> {
        self.store.get().and_then(|store| store.owner_client())
    }

    fn secondary_store(&self, name: &str) -> Option<Arc<dyn StoreConnector>> {
        self.store.get().and_then(|store| store.secondary_store(name))
    }

    fn time_reference(&self) -> Option<Arc<dyn TimeReference>> {
        self.store.get().and_then(|store| store.time_reference())
    }

    fn seen(&self) -> Option<StoreIdentity> {
        self.store.get().and_then(|store| store.seen())
    }

    fn remember(&self, seen: &StoreIdentity) {
        // The order matters: whether this call or the opening comes first, the open store gets the
        // identity.
        *lock(&self.remembered) = Some(seen.clone());
        if let Some(store) = self.store.get() {
            store.remember(seen);
        }
    }

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move { self.store().await?.call(call).await })
    }

    /// Closes the store if it was ever opened.
    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            match self.store.get() {
                Some(store) => store.close().await,
                None => Ok(()),
            }
        })
    }
}
