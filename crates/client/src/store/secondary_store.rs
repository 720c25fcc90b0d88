//! Secondary stores, which serve multi-store sources: the servers lead to each of them.

use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::store::StoreConnector;
use snowmint_coord::{Result, Store};

use super::RemoteStore;
use super::open_params::OpenParams;

/// A secondary store that servers know by this name.
#[derive(Debug)]
struct RemoteConnector {
    name: String,
    open_params: OpenParams,
}

#[async_trait]
impl StoreConnector for RemoteConnector {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(RemoteStore::open_at(&self.open_params, &self.name).await?))
    }
}

impl RemoteStore {
    pub(super) fn secondary_connector(&self, name: &str) -> Option<Arc<dyn StoreConnector>> {
        let open_params = self.open_params.clone()?;
        Some(Arc::new(RemoteConnector { name: name.into(), open_params }))
    }
}
