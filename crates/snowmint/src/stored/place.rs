//! Opening of the store or servers that a URL names.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::beside::StorePlace;
use snowmint_coord::{LateStore, Opening, Store};

use crate::Result;

/// Credentials shown to servers; empty without feature `client`.
#[cfg(feature = "client")]
pub(super) type Shown = Option<snowmint_client::Credentials>;
#[cfg(not(feature = "client"))]
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {}

/// Opens the store or servers that a URL names.
pub(super) async fn open(url: &str, namespace: &str, shown: Shown) -> Result<Arc<dyn Store>> {
    if is_of_servers(url) {
        return servers(url, namespace, shown).await;
    }
    snowmint_stores::open(url, namespace).await
}

fn is_of_servers(url: &str) -> bool {
    matches!(url.split(':').next(), Some("snowmint" | "snowmints"))
}

/// Like [`open`], but opens an unreachable store later.
pub(super) async fn open_now_or_later(
    url: &str,
    namespace: &str,
    shown: Shown,
) -> Result<Arc<dyn Store>> {
    let (url, own) = (url.to_owned(), namespace.to_owned());
    let open = move || -> Opening {
        let (url, namespace, shown) = (url.clone(), own.clone(), shown.clone());
        Box::pin(async move { open(&url, &namespace, shown).await })
    };
    LateStore::now_or_later(namespace, open).await
}

/// Connector of a secondary store.
pub(super) struct Beside {
    pub(super) url: String,
    pub(super) namespace: String,
    pub(super) shown: Shown,
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[async_trait]
impl StorePlace for Beside {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        open(&self.url, &self.namespace, self.shown.clone()).await
    }
}

#[cfg(feature = "client")]
async fn servers(url: &str, namespace: &str, shown: Shown) -> Result<Arc<dyn Store>> {
    use snowmint_client::{Credentials, Parts, RemoteStore, Settings};
    let credentials =
        shown.map_or_else(Credentials::from_env, Ok).map_err(crate::Error::invalid)?;
    let parts = Parts { credentials, ..Parts::default() };
    Ok(Arc::new(RemoteStore::open_with(url, namespace, Settings::default(), parts).await?))
}

#[cfg(not(feature = "client"))]
async fn servers(_: &str, _: &str, _: Shown) -> Result<Arc<dyn Store>> {
    let message = "snowmint:// needs feature `client`; build with it";
    Err(crate::Error::unsupported(message))
}

#[cfg(all(test, not(feature = "client")))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn missing_feature_is_reported() {
        for url in ["snowmint://localhost", "snowmints://localhost"] {
            let refused = open(url, "default", Shown {}).await.unwrap_err();
            assert!(refused.to_string().contains("feature `client`"), "{refused}");
        }
    }
}

#[cfg(all(test, feature = "client"))]
mod away {
    use snowmint_coord::ErrorKind;

    use super::*;

    /// With a journal the process may mint offline, with any kind of store.
    #[tokio::test]
    async fn unreachable_servers_are_opened_later() {
        // Nothing listens on this port.
        let url = "snowmint://127.0.0.1:1";
        let shown = || Some(snowmint_client::Credentials::new());
        let refused = open(url, "default", shown()).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unavailable), "{refused}");
        let store = open_now_or_later(url, "default", shown()).await.unwrap();
        assert_eq!(store.namespace(), "default");
        let refused = store.identity().await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unavailable), "{refused}");
        let wrong = open_now_or_later("snowmint://", "default", shown()).await.unwrap_err();
        assert!(matches!(wrong.kind(), ErrorKind::Invalid), "{wrong}");
    }
}
