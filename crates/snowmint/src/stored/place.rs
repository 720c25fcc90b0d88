//! What a URL names: a store, or servers that have one.

use std::sync::Arc;

use snowmint_coord::{LateStore, Opening, Store};

use crate::Result;

/// Opens what a URL names.
pub(super) async fn open(url: &str, namespace: &str) -> Result<Arc<dyn Store>> {
    if url.starts_with("snowmint:") {
        return servers(url, namespace).await;
    }
    snowmint_stores::open(url, namespace).await
}

/// The same; a store that does not answer now is opened later. Servers are asked when they are needed
/// anyway.
pub(super) async fn open_now_or_later(url: &str, namespace: &str) -> Result<Arc<dyn Store>> {
    if url.starts_with("snowmint:") {
        return servers(url, namespace).await;
    }
    let (url, own) = (url.to_owned(), namespace.to_owned());
    let open = move || -> Opening {
        let (url, namespace) = (url.clone(), own.clone());
        Box::pin(async move { snowmint_stores::open(&url, &namespace).await })
    };
    LateStore::now_or_later(namespace, open).await
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
