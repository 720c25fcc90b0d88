//! Opening of the store or servers that a URL names.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use snowmint_coord::store::StoreConnector;
use snowmint_coord::{LazyStore, Opening, Store};

use snowmint_coord::Result;

/// Credentials shown to servers; empty without feature `client`.
#[cfg(feature = "client")]
pub(crate) type ClientCredentials = Option<snowmint_client::Credentials>;
#[cfg(not(feature = "client"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientCredentials {}

/// Opens the store or servers that a URL names.
pub(crate) async fn open(
    url: &str,
    namespace: &str,
    credentials: ClientCredentials,
) -> Result<Arc<dyn Store>> {
    if is_of_servers(url) {
        return servers(url, namespace, credentials).await;
    }
    snowmint_stores::open(url, namespace).await
}

fn is_of_servers(url: &str) -> bool {
    matches!(url.split(':').next(), Some("snowmint" | "snowmints"))
}

/// Like [`open`], but opens an unreachable store later.
pub(crate) async fn open_now_or_later(
    url: &str,
    namespace: &str,
    credentials: ClientCredentials,
) -> Result<Arc<dyn Store>> {
    let (url, own) = (url.to_owned(), namespace.to_owned());
    let open = move || -> Opening {
        let (url, namespace, credentials) = (url.clone(), own.clone(), credentials.clone());
        Box::pin(async move { open(&url, &namespace, credentials).await })
    };
    LazyStore::now_or_later(namespace, open).await
}

/// Connector of a secondary store.
pub(crate) struct UrlConnector {
    pub(crate) url: String,
    pub(crate) namespace: String,
    pub(crate) credentials: ClientCredentials,
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for UrlConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlConnector").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[async_trait]
impl StoreConnector for UrlConnector {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        open(&self.url, &self.namespace, self.credentials.clone()).await
    }
}

#[cfg(feature = "client")]
async fn servers(
    url: &str,
    namespace: &str,
    credentials: ClientCredentials,
) -> Result<Arc<dyn Store>> {
    use snowmint_client::{ClientDeps, Credentials, RemoteStore, Settings};
    let credentials = credentials
        .map_or_else(Credentials::from_env, Ok)
        .map_err(snowmint_coord::Error::invalid)?;
    let parts = ClientDeps { credentials, ..ClientDeps::default() };
    Ok(Arc::new(RemoteStore::open_with(url, namespace, Settings::default(), parts).await?))
}

#[cfg(not(feature = "client"))]
async fn servers(_: &str, _: &str, _: ClientCredentials) -> Result<Arc<dyn Store>> {
    let message = "snowmint:// needs feature `client`; build with it";
    Err(snowmint_coord::Error::unsupported(message))
}

#[cfg(all(test, not(feature = "client")))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn missing_feature_is_reported() {
        for url in ["snowmint://localhost", "snowmints://localhost"] {
            let refused = open(url, "default", ClientCredentials {}).await.unwrap_err();
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
        let credentials = || Some(snowmint_client::Credentials::new());
        let refused = open(url, "default", credentials()).await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unavailable), "{refused}");
        let store = open_now_or_later(url, "default", credentials()).await.unwrap();
        assert_eq!(store.namespace(), "default");
        let refused = store.identity().await.unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unavailable), "{refused}");
        let wrong = open_now_or_later("snowmint://", "default", credentials()).await.unwrap_err();
        assert!(matches!(wrong.kind(), ErrorKind::Invalid), "{wrong}");
    }
}
