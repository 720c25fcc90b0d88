//! What a URL names: a store, or servers that have one.

use std::sync::Arc;

use snowmint_coord::Store;

use crate::Result;

/// Opens what a URL names.
pub(super) async fn open(url: &str, namespace: &str) -> Result<Arc<dyn Store>> {
    if url.starts_with("snowmint:") {
        return servers(url, namespace).await;
    }
    snowmint_stores::open(url, namespace).await
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
