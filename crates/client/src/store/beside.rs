//! Secondary stores, which serve multi-store sources: the servers lead to each of them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::beside::StorePlace;
use snowmint_coord::{Result, Store};

use super::{Parts, RemoteStore};
use crate::settings::Settings;

/// Parameters with which the servers' store is opened.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) url: String,
    pub(super) namespace: String,
    pub(super) settings: Settings,
    pub(super) parts: Parts,
}

/// Leaves out the URL, which may contain a token.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// A secondary store that servers know by this name.
#[derive(Debug)]
struct Beside {
    name: String,
    way: Way,
}

#[async_trait]
impl StorePlace for Beside {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(RemoteStore::open_at(&self.way, &self.name).await?))
    }
}

impl RemoteStore {
    pub(super) fn place_beside(&self, name: &str) -> Option<Arc<dyn StorePlace>> {
        let way = self.way.clone()?;
        Some(Arc::new(Beside { name: name.into(), way }))
    }
}
