//! Which product a URL names.

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Sqlite,
    Postgres,
    MySql,
    /// A server, or a cluster of them.
    Redis,
    Etcd,
    ZooKeeper,
    Memory,
}

/// All schemes. The first of a product is the one that messages and documents name.
const SCHEMES: &[(&str, Product)] = &[
    ("sqlite", Product::Sqlite),
    ("postgres", Product::Postgres),
    ("postgresql", Product::Postgres),
    ("mysql", Product::MySql),
    ("mariadb", Product::MySql),
    ("redis", Product::Redis),
    ("rediss", Product::Redis),
    ("redis-cluster", Product::Redis),
    ("rediss-cluster", Product::Redis),
    ("etcd", Product::Etcd),
    ("etcds", Product::Etcd),
    ("zookeeper", Product::ZooKeeper),
    ("memory", Product::Memory),
];

/// What the URLs of stores begin with, also of those that are not built in.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    SCHEMES.iter().map(|(scheme, _)| *scheme)
}

/// Whether a text is the URL of a store, and not the address of a server.
#[must_use]
pub fn is_url(text: &str) -> bool {
    Product::of(text).is_some()
}

impl Product {
    /// The product that a URL names by its scheme.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let (scheme, _) = url.split_once(':')?;
        let (_, product) = SCHEMES.iter().find(|(known, _)| *known == scheme)?;
        Some(*product)
    }

    /// The feature that builds it in, if it takes one.
    pub(crate) const fn feature(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => Some("sqlite"),
            Self::Postgres => Some("postgres"),
            Self::MySql => Some("mysql"),
            Self::Redis => Some("redis"),
            Self::Etcd => Some("etcd"),
            Self::ZooKeeper => Some("zookeeper"),
            Self::Memory => None,
        }
    }
}

/// All schemes with the feature that each takes, for messages.
pub(crate) fn known() -> String {
    let known = SCHEMES.iter().map(|(scheme, product)| match product.feature() {
        Some(feature) => format!("{scheme}: (feature `{feature}`)"),
        None => format!("{scheme}:"),
    });
    known.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_names_a_product() {
        for scheme in schemes() {
            assert!(is_url(&format!("{scheme}:")), "{scheme}");
        }
        assert_eq!(Product::of("mariadb://db/ids"), Some(Product::MySql));
        for none in ["", "redis", "127.0.0.1:7700", "REDIS://db", "snowmint://a"] {
            assert!(!is_url(none), "{none}");
        }
    }
}
