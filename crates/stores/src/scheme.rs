//! Products that a URL names.

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Sqlite,
    Postgres,
    MySql,
    /// A server or a cluster.
    Redis,
    Etcd,
    ZooKeeper,
    Memory,
}

/// All schemes. Messages and documents use the first scheme of a product.
const SCHEMES: &[(&str, Scheme)] = &[
    ("sqlite", Scheme::Sqlite),
    ("postgres", Scheme::Postgres),
    ("postgresql", Scheme::Postgres),
    ("mysql", Scheme::MySql),
    ("mariadb", Scheme::MySql),
    ("redis", Scheme::Redis),
    ("rediss", Scheme::Redis),
    ("redis-cluster", Scheme::Redis),
    ("rediss-cluster", Scheme::Redis),
    ("etcd", Scheme::Etcd),
    ("etcds", Scheme::Etcd),
    ("zookeeper", Scheme::ZooKeeper),
    ("memory", Scheme::Memory),
];

/// Returns the schemes of all store URLs, including stores that are not built in.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    SCHEMES.iter().map(|(scheme, _)| *scheme)
}

/// Returns whether a text is the URL of a store rather than the address of a server.
#[must_use]
pub fn is_url(text: &str) -> bool {
    Scheme::of(text).is_some()
}

impl Scheme {
    /// Returns the product that a URL names by its scheme.
    pub(crate) fn of(url: &str) -> Option<Self> {
        let (scheme, _) = url.split_once(':')?;
        let (_, product) = SCHEMES.iter().find(|(known, _)| *known == scheme)?;
        Some(*product)
    }

    /// Returns the feature that builds the product in, if it needs one.
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

/// Returns all schemes, each with the feature that it needs, for messages.
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
        assert_eq!(Scheme::of("mariadb://db/ids"), Some(Scheme::MySql));
        for none in ["", "redis", "127.0.0.1:7700", "REDIS://db", "snowmint://a"] {
            assert!(!is_url(none), "{none}");
        }
    }
}
