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
    /// Form of its URLs, with the first scheme.
    form: &'static str,
    /// Feature that builds it in, if it needs one.
    pub(crate) feature: Option<&'static str>,
    /// Function that opens it, if it is built in.
    pub(crate) open: Option<Open>,
}

/// Makes the row of a product that a feature builds in.
macro_rules! product {
    ($feature:literal, [$($scheme:literal),+], $form:literal, $open:path) => {
        Product {
            schemes: &[$($scheme),+],
            form: $form,
            feature: Some($feature),
            #[cfg(feature = $feature)]
            open: Some(|url, namespace, settings| Box::pin($open(url, namespace, settings))),
            #[cfg(not(feature = $feature))]
            open: None,
        }
    };
}

/// All products.
static PRODUCTS: &[Product] = &[
    product!("sqlite", ["sqlite"], "sqlite:PATH", crate::sqlite::open_url),
    product!(
        "postgres",
        ["postgres", "postgresql"],
        "postgres://USER:PASSWORD@HOST:PORT/DATABASE",
        crate::postgres::open
    ),
    product!(
        "mysql",
        ["mysql", "mariadb"],
        "mysql://USER:PASSWORD@HOST:PORT/DATABASE",
        crate::mysql::open
    ),
    product!(
        "redis",
        ["redis", "rediss", "redis-cluster", "rediss-cluster"],
        "redis://USER:PASSWORD@HOST:PORT/DATABASE",
        crate::redis::open
    ),
    product!(
        "etcd",
        ["etcd", "etcds"],
        "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX",
        crate::etcd::open
    ),
    product!(
        "zookeeper",
        ["zookeeper"],
        "zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH",
        crate::zookeeper::open
    ),
    Product { schemes: &["memory"], form: "memory:", feature: None, open: Some(open_memory) },
];

/// Returns the schemes of all store URLs, including stores that are not built in.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    PRODUCTS.iter().flat_map(|product| product.schemes).copied()
}

/// Returns the forms of all store URLs for texts, each with its other schemes, including stores that
/// are not built in.
#[must_use]
pub fn url_forms() -> String {
    let with_others = |product: &Product| match product.schemes {
        [_, others @ ..] if !others.is_empty() => {
            format!("{} (also {}:)", product.form, others.join(":, "))
        }
        _ => product.form.to_owned(),
    };
    PRODUCTS.iter().map(with_others).collect::<Vec<_>>().join(", ")
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
    fn forms_begin_with_the_scheme_and_are_in_the_crates_table() {
        let documentation = include_str!("lib.rs");
        for Product { schemes, form, feature, .. } in PRODUCTS {
            assert!(form.starts_with(&format!("{}:", schemes[0])), "{form}");
            let row = match feature {
                Some(feature) => format!("//! | `{form}` | `{feature}`"),
                None => format!("//! | `{form}` | always"),
            };
            assert!(documentation.contains(&row), "{row}");
        }
    }

    #[test]
    fn forms_name_every_scheme() {
        let forms = url_forms();
        assert!(forms.contains("etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX (also etcds:), "));
        assert!(forms.starts_with("sqlite:PATH, ") && forms.ends_with(", memory:"), "{forms}");
        for scheme in schemes() {
            assert!(forms.contains(&format!("{scheme}:")), "{scheme}");
        }
    }

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
