//! Products that a URL names: one row for each, with how it is opened.

use std::sync::Arc;

use snowmint_coord::{BoxFuture, Error, MemoryStore, Result, Store};

use crate::opening::Settings;

/// Opens the store at a URL for one namespace.
type Open = for<'a> fn(&'a str, &'a str, Settings) -> BoxFuture<'a, Result<Arc<dyn Store>>>;

/// A kind of store: a server and a cluster of it are one.
pub(crate) struct Product {
    /// Schemes of its URLs. Messages and documents use the first.
    schemes: &'static [&'static str],
    /// Feature that builds it in, if it needs one.
    pub(crate) feature: Option<&'static str>,
    /// Function that opens it, if it is built in.
    pub(crate) open: Option<Open>,
}

/// Makes the row of a product that a feature builds in.
macro_rules! product {
    ($feature:literal, [$($scheme:literal),+], $open:path) => {
        Product {
            schemes: &[$($scheme),+],
            feature: Some($feature),
            #[cfg(feature = $feature)]
            open: Some(|url, namespace, settings| Box::pin($open(url, namespace, settings))),
            #[cfg(not(feature = $feature))]
            open: None,
        }
    };
}

/// All products.
static PRODUCTS: [Product; 7] = [
    product!("sqlite", ["sqlite"], crate::sqlite::open_url),
    product!("postgres", ["postgres", "postgresql"], crate::postgres::open),
    product!("mysql", ["mysql", "mariadb"], crate::mysql::open),
    product!("redis", ["redis", "rediss", "redis-cluster", "rediss-cluster"], crate::redis::open),
    product!("etcd", ["etcd", "etcds"], crate::etcd::open),
    product!("zookeeper", ["zookeeper"], crate::zookeeper::open),
    Product { schemes: &["memory"], feature: None, open: Some(open_memory) },
];

/// Returns the schemes of all store URLs, including stores that are not built in.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    PRODUCTS.iter().flat_map(|product| product.schemes).copied()
}

/// Returns whether a text is the URL of a store rather than the address of a server.
#[must_use]
pub fn is_url(text: &str) -> bool {
    Product::of(text).is_some()
}

impl Product {
    /// Returns the product that a URL names by its scheme.
    pub(crate) fn of(url: &str) -> Option<&'static Self> {
        let (scheme, _) = url.split_once(':')?;
        PRODUCTS.iter().find(|product| product.schemes.contains(&scheme))
    }
}

/// Returns the feature of the product that a URL names.
#[cfg(feature = "legacy")]
pub(crate) fn feature_of(url: &str) -> Option<&'static str> {
    Product::of(url)?.feature
}

/// Returns all schemes, each with the feature that it needs, for messages.
pub(crate) fn known() -> String {
    let rows = PRODUCTS.iter().flat_map(|product| {
        product.schemes.iter().map(|scheme| match product.feature {
            Some(feature) => format!("{scheme}: (feature `{feature}`)"),
            None => format!("{scheme}:"),
        })
    });
    rows.collect::<Vec<_>>().join(", ")
}

fn open_memory<'a>(
    url: &'a str,
    namespace: &'a str,
    _: Settings,
) -> BoxFuture<'a, Result<Arc<dyn Store>>> {
    Box::pin(async move {
        if url != "memory:" {
            return Err(Error::invalid("memory store URL has a name or path; write memory:"));
        }
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(namespace)?);
        Ok(store)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_names_a_product() {
        for scheme in schemes() {
            assert!(is_url(&format!("{scheme}:")), "{scheme}");
        }
        let feature = |url| Product::of(url).and_then(|product| product.feature);
        assert_eq!(feature("mariadb://db/ids"), Some("mysql"));
        for none in ["", "redis", "127.0.0.1:7700", "REDIS://db", "snowmint://a"] {
            assert!(!is_url(none), "{none}");
        }
    }
}
