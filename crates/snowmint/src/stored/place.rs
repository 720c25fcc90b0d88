//! What a URL names: a store, or servers that have one.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::Store;
use snowmint_coord::beside::Place;

use crate::Result;

/// Opens what a URL names.
pub(super) async fn open(url: &str, namespace: &str) -> Result<Arc<dyn Store>> {
    if url.starts_with("snowmint:") {
        return servers(url, namespace).await;
    }
    snowmint_stores::open(url, namespace).await
}

/// A store beside the one that is opened.
pub(super) struct Beside {
    pub(super) url: String,
    pub(super) namespace: String,
}

/// Its URL may show a password.
impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[async_trait]
impl Place for Beside {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        open(&self.url, &self.namespace).await
    }
}

#[cfg(feature = "client")]
async fn servers(url: &str, namespace: &str) -> Result<Arc<dyn Store>> {
    let settings = snowmint_client::Settings::default();
    Ok(Arc::new(snowmint_client::RemoteStore::open(url, namespace, settings).await?))
}

#[cfg(not(feature = "client"))]
async fn servers(_: &str, _: &str) -> Result<Arc<dyn Store>> {
    use crate::{Error, ErrorKind};
    let what = "this program was built without feature `client`, which snowmint:// needs".into();
    Err(Error::new("open store", ErrorKind::Unsupported { what }))
}

#[cfg(all(test, not(feature = "client")))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_built_in_says_so() {
        let refused = open("snowmint://localhost", "default").await.unwrap_err();
        assert!(refused.to_string().contains("feature `client`"), "{refused}");
    }
}
