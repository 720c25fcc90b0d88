//! Secondary stores of a node: one more node on each, for the sources that several stores serve.
//!
//! Their names come from the configuration. If the node's primary store leads to others, as a store
//! of servers does, the servers' names count too.

mod agree;
mod comparison;
mod leaving;
mod store_supervisor;
mod workers;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_core::ElapsedMillis;

use super::settings::{NodeSettings, Platform};
use super::state::Node;
use crate::error::{Error, Result};
use crate::model::name::check_name;
use crate::spec::Plan;
use crate::store::{Store, StoreConnector, StoreConnectors};

/// All secondary stores of a node.
#[derive(Debug)]
pub(super) struct SecondaryStores {
    /// Node's primary store, which may lead to others.
    own: Arc<dyn Store>,
    settings: NodeSettings,
    platform: Platform,
    all: Mutex<BTreeMap<String, Arc<SecondaryStore>>>,
}

/// One secondary store.
#[derive(Debug)]
struct SecondaryStore {
    name: String,
    /// Whether it is one of this process's settings: otherwise servers may know it.
    is_configured: bool,
    connector: Arc<dyn StoreConnector>,
    namespace: String,
    settings: NodeSettings,
    platform: Platform,
    state: Mutex<SecondaryState>,
    /// Held while the store is opened: one caller at a time opens it.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct SecondaryState {
    node: Option<Node>,
    /// Time and error of the last failed attempt to open it.
    failed: Option<(ElapsedMillis, Error)>,
    closed: bool,
}

impl SecondaryStores {
    /// Creates the stores without opening them: each is opened when a source needs it. Their
    /// journals are in folders of the data directory.
    pub(super) fn new(own: &Arc<dyn Store>, settings: &NodeSettings, platform: &Platform) -> Self {
        let of_all = NodeSettings {
            builtin: false,
            upstreams: BTreeMap::new(),
            secondary_stores: StoreConnectors::new(),
            worker: None,
            address: String::new(),
            ..settings.clone()
        };
        let secondary_stores = Self {
            own: Arc::clone(own),
            settings: of_all,
            platform: platform.clone(),
            all: Mutex::default(),
        };
        for (name, connector) in &settings.secondary_stores {
            let secondary = secondary_stores.secondary_at(name, connector, true);
            secondary_stores.all().insert(name.clone(), secondary);
        }
        secondary_stores
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SecondaryStore>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn secondary_at(
        &self,
        name: &str,
        connector: &Arc<dyn StoreConnector>,
        is_configured: bool,
    ) -> Arc<SecondaryStore> {
        let data_dir = self.settings.data_dir.as_ref().map(|dir| folder(dir, name));
        Arc::new(SecondaryStore {
            name: name.into(),
            is_configured,
            connector: Arc::clone(connector),
            namespace: self.own.namespace().into(),
            settings: NodeSettings { data_dir, ..self.settings.clone() },
            platform: self.platform.clone(),
            state: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the store of this name, if it is configured here or known to the primary store's
    /// servers.
    fn secondary(&self, name: &str) -> Option<Arc<SecondaryStore>> {
        let mut all = self.all();
        if let Some(known) = all.get(name) {
            return Some(Arc::clone(known));
        }
        check_name("store", name).ok()?;
        let found = self.secondary_at(name, &self.own.secondary_store(name)?, false);
        // Only the servers know which names exist, and a program may send any.
        all.retain(|_, known| known.is_needed());
        all.insert(name.into(), Arc::clone(&found));
        Some(found)
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// Rejects a source that this process would serve from fewer stores than the source has.
    ///
    /// # Errors
    /// `Unsupported` when a store is unknown.
    pub(super) fn check_known(&self, source: &str, plan: &Plan) -> Result<()> {
        let Some(name) = plan.stores().into_iter().find(|name| self.secondary(name).is_none())
        else {
            return Ok(());
        };
        Err(Error::unsupported(format!(
            "source {source:?} uses store {name:?}, unknown here; add it under [stores]"
        )))
    }

    /// Adds a store under the name that sources use.
    ///
    /// # Errors
    /// `Invalid` for a malformed name, `Conflict` for one that is known already.
    fn add(&self, name: &str, connector: &Arc<dyn StoreConnector>) -> Result<()> {
        check_name("store", name)?;
        let added = self.secondary_at(name, connector, true);
        let mut all = self.all();
        if all.contains_key(name) {
            return Err(Error::conflict(format!(
                "store {name:?} is in use at another URL; restart to change it"
            )));
        }
        all.insert(name.into(), added);
        Ok(())
    }

    /// Gives everything back to the stores that were opened, and closes them. All are closed at the
    /// same time, since some may be unavailable.
    ///
    /// # Errors
    /// The first error. All stores are closed in any case.
    pub(super) async fn close(&self) -> Result<()> {
        let mut closing = tokio::task::JoinSet::new();
        let all: Vec<_> = self.all().values().cloned().collect();
        for secondary in all {
            if let Some(node) = secondary.take() {
                closing.spawn(close(node));
            }
        }
        let mut outcome = Ok(());
        while let Some(closed) = closing.join_next().await {
            let failed = |error: tokio::task::JoinError| {
                Error::internal(format!(
                    "internal error: task that closes a store ended: {error}; please report it"
                ))
            };
            outcome = outcome.and(closed.map_err(failed).and_then(|closed| closed));
        }
        outcome
    }
}

impl Node {
    /// Returns a secondary store, by the name that sources use. Opens it if necessary.
    ///
    /// # Errors
    /// `NotFound` for an unknown name; `Unavailable` when the store does not respond in time; any
    /// other error of the store.
    pub async fn secondary_store(&self, name: &str) -> Result<Arc<dyn Store>> {
        Ok(Arc::clone(self.secondary(name).await?.store()))
    }

    /// Returns the node on a secondary store. Opens it if necessary.
    ///
    /// # Errors
    /// Those of [`secondary_store`](Self::secondary_store).
    pub async fn secondary(&self, name: &str) -> Result<Self> {
        let secondary = self.core().secondary_stores.secondary(name).ok_or_else(|| {
            Error::not_found(format!("store {name:?} is not configured; add it under [stores]"))
        })?;
        secondary.node().await
    }

    /// Adds a secondary store that sources may be served by, while the node runs.
    ///
    /// # Errors
    /// `Invalid` for a malformed name; `Conflict` for one that is known already.
    pub fn add_store(&self, name: &str, connector: &Arc<dyn StoreConnector>) -> Result<()> {
        self.core().secondary_stores.add(name, connector)
    }
}

fn folder(dir: &std::path::Path, name: &str) -> PathBuf {
    dir.join("stores").join(name)
}

/// Closes a node. Boxed, since closing a node closes its secondary nodes, which have none
/// themselves.
fn close(node: Node) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> {
    Box::pin(async move {
        let closed = node.close().await;
        closed.and(node.store().close().await)
    })
}

/// Opens the node of a secondary store. Boxed for the same reason as [`close`].
fn open(secondary: Arc<SecondaryStore>) -> Pin<Box<dyn Future<Output = Result<Node>> + Send>> {
    Box::pin(async move {
        let store = secondary.connector.open().await?;
        if store.namespace() != secondary.namespace {
            return Err(Error::internal(format!(
                "internal error: store {:?} opened in namespace {:?}, expected {:?}; please report \
                 it",
                secondary.name,
                store.namespace(),
                secondary.namespace
            )));
        }
        Node::open(store, secondary.settings.clone(), secondary.platform.clone()).await
    })
}

impl SecondaryStore {
    /// Returns whether it is configured, in use or open.
    fn is_needed(self: &Arc<Self>) -> bool {
        self.is_configured || Arc::strong_count(self) > 1 || self.state().node.is_some()
    }

    /// Returns the node on this store. Opens it if necessary.
    ///
    /// # Errors
    /// `Unavailable` when the store does not respond in time; otherwise the store's own error.
    async fn node(self: &Arc<Self>) -> Result<Node> {
        let requested_at = self.platform.timer.elapsed();
        let _one_at_a_time = self.opening.lock().await;
        if let Some(node) = self.known()? {
            return Ok(node);
        }
        // A caller that waited for an earlier attempt need not repeat it.
        if let Some((failed_at, error)) = self.state().failed.clone()
            && failed_at >= requested_at
        {
            return Err(error);
        }
        let opened = self.opened().await;
        if let Err(error) = &opened {
            self.state().failed = Some((self.platform.timer.elapsed(), error.clone()));
        }
        opened
    }

    async fn opened(self: &Arc<Self>) -> Result<Node> {
        // The task runs to its end even if the caller is gone: a half-opened store holds its locks.
        let mut opening = tokio::spawn(open(Arc::clone(self)));
        let node = tokio::select! {
            biased;
            opened = &mut opening => opened.map_err(|error| {
                Error::internal(format!(
                    "internal error: task that opens store {:?} ended: {error}; please report it",
                    self.name
                ))
            })??,
            () = self.platform.timer.sleep_ms(self.settings.store_call_ms) => {
                opening.abort();
                return Err(Error::unavailable(format!(
                    "store {:?} did not open within {} ms; check that it runs and is reachable",
                    self.name, self.settings.store_call_ms
                )));
            }
        };
        let mut state = self.state();
        if state.closed {
            return Err(self.gone());
        }
        state.node = Some(node.clone());
        Ok(node)
    }

    fn known(&self) -> Result<Option<Node>> {
        let state = self.state();
        if state.closed { Err(self.gone()) } else { Ok(state.node.clone()) }
    }

    fn take(&self) -> Option<Node> {
        let mut state = self.state();
        state.closed = true;
        state.node.take()
    }

    fn gone(&self) -> Error {
        Error::closed(format!("store {:?} is closed; open the node again", self.name))
    }

    fn state(&self) -> MutexGuard<'_, SecondaryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
