//! Secondary stores of a node: one more node on each, for the sources that several stores serve.
//!
//! Their names come from the configuration. If the node's primary store leads to others, as a store
//! of servers does, the servers' names count too.

mod agree;
mod comparison;
mod leaving;
mod store;
mod store_supervisor;
mod workers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::settings::{NodeSettings, Platform};
use super::state::Node;
use crate::error::{Error, Result};
use crate::model::name::check_name;
use crate::platform::lock::lock;
use crate::spec::Plan;
use crate::store::{Store, StoreConnector, StoreConnectors};
use store::{OpenNode, SecondaryStore, close};

/// All secondary stores of a node.
#[derive(Debug)]
pub(super) struct SecondaryStores {
    /// Node's primary store, which may lead to others.
    own: Arc<dyn Store>,
    settings: NodeSettings,
    platform: Platform,
    open: OpenNode,
    all: Mutex<BTreeMap<String, Arc<SecondaryStore>>>,
}

impl SecondaryStores {
    /// Creates the stores without opening them: each is opened when a source needs it, and `open`
    /// opens its node. Their journals are in folders of the data directory.
    pub(super) fn new(
        own: &Arc<dyn Store>,
        settings: &NodeSettings,
        platform: &Platform,
        open: OpenNode,
    ) -> Self {
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
            open,
            all: Mutex::default(),
        };
        for (name, connector) in &settings.secondary_stores {
            let secondary = secondary_stores.secondary_at(name, connector, true);
            lock(&secondary_stores.all).insert(name.clone(), secondary);
        }
        secondary_stores
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
            settings: NodeSettings {
                data_dir,
                secondary: Some(name.into()),
                ..self.settings.clone()
            },
            platform: self.platform.clone(),
            open: self.open,
            state: Mutex::default(),
            opening: Arc::default(),
        })
    }

    /// Returns the store of this name, if it is configured here or known to the primary store's
    /// servers.
    fn secondary(&self, name: &str) -> Option<Arc<SecondaryStore>> {
        let mut all = lock(&self.all);
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
        lock(&self.all).keys().cloned().collect()
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
        let mut all = lock(&self.all);
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
        let all: Vec<_> = lock(&self.all).values().cloned().collect();
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
