//! Stores for marks: one module per store, one feature each; the feature `all` has every store.
//!
//! A store loads the rows that the rules of [`snowmint_coord`] need, calls the rules, and writes
//! their results, all in one atomic step of its own. It adds durability, and nothing to the rules;
//! the contract suite of the test kit checks every store against them.
//!
//! | URL | feature | |
//! |---|---|---|
//! | `sqlite:PATH` | `sqlite` (default) | one file, shared by the processes of one machine |
//! | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | `postgres` | a PostgreSQL server, from version 12 |
//! | `mysql://USER:PASSWORD@HOST:PORT/DATABASE` | `mysql` | a MySQL server from version 8, or MariaDB from 10.5 |
//! | `redis://USER:PASSWORD@HOST:PORT/DATABASE` | `redis` | a Redis server from version 6.2, or a cluster; `rediss://` with TLS |
//! | `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX` | `etcd` | an etcd cluster from version 3.4 |
//! | `zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH` | `zookeeper` | a ZooKeeper ensemble from version 3.6 |
//! | `memory:` | always | for tests, and for IDs that need not outlive the process |
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "all"),
    allow(dead_code, reason = "what stores have in common, some of them use in part")
)]

use std::sync::Arc;

use snowmint_coord::{BoxFuture, Error, Result, Store};

use failure::at;
use opening::check_namespace;
pub use opening::{Settings, shown};
use scheme::Product;
pub use scheme::{is_url, schemes, url_forms};

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod cluster_url;
#[cfg(feature = "etcd")]
pub mod etcd;
mod failure;
#[cfg(feature = "keyed")]
pub mod keyed;
#[cfg(feature = "legacy")]
pub mod legacy;
#[cfg(feature = "mysql")]
pub mod mysql;
mod opening;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
mod scheme;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "etcd", feature = "redis"))]
mod tls;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

/// Calls [`open_with`] with the default settings.
///
/// # Errors
/// Same as [`open_with`].
pub fn open<'a>(url: &'a str, namespace: &'a str) -> BoxFuture<'a, Result<Arc<dyn Store>>> {
    open_with(url, namespace, Settings::default())
}

/// Opens the store at `url` for one namespace, and makes it if there is none yet.
///
/// `sqlite:PATH` is a file, relative to the working directory or absolute; its directory must
/// exist. `memory:` is a new store each time.
///
/// # Errors
/// - `Invalid` for a bad URL, an unknown scheme (the message lists the known schemes) or a bad
///   namespace.
/// - `Unsupported` when the store is not built in.
/// - `NotFound` when it does not exist yet and must not be made.
/// - The store's error when it cannot be opened.
pub fn open_with<'a>(
    url: &'a str,
    namespace: &'a str,
    settings: Settings,
) -> BoxFuture<'a, Result<Arc<dyn Store>>> {
    Box::pin(async move {
        check_namespace(namespace)?;
        // Text with an unknown scheme may be a password.
        let product = Product::of(url).ok_or_else(|| unknown_scheme(url))?;
        let opened = match product.open {
            Some(open) => open(url, namespace, settings).await,
            None => Err(not_built_in(product.feature.unwrap_or_default())),
        };
        opened.map_err(|error| error.with_detail(at(&shown(url))))
    })
}

/// More bytes than any known scheme has.
const SCHEME_BYTES_MAX: usize = 20;

fn not_built_in(feature: &str) -> Error {
    Error::unsupported(format!("{feature}: needs feature `{feature}`; build with it"))
}

/// Returns the error for an unknown URL, with at most its scheme: a text without a scheme may be a
/// password.
fn unknown_scheme(url: &str) -> Error {
    let is_scheme = |text: &str| {
        text.len() <= SCHEME_BYTES_MAX
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(|text| is_scheme(text));
    let known = scheme::known();
    Error::invalid(match scheme {
        Some(scheme) => format!("unknown store URL {scheme}://; use one of {known}"),
        None => format!("store URL without a known scheme; use one of {known}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(url: &str, namespace: &str) -> Error {
        open(url, namespace).await.expect_err("an error")
    }

    #[tokio::test]
    async fn unknown_urls_list_the_known() {
        let secret =
            ["mysql2://root:pw@host/db", "mysql2:root:pw@host", "mysql2://host/db?password=pw"];
        for url in
            ["", "leaf", "file:x", "SQLITE:x", "/tmp/x.db", "pw", "pw:pw"].into_iter().chain(secret)
        {
            let error = refused(url, "default").await.to_string();
            assert!(error.contains("sqlite:") && error.contains("memory:"), "{error}");
            assert!(!error.contains("pw"), "a password is not shown: {error}");
        }
        assert_eq!(refused("memory:x", "default").await.kind().code(), "invalid");
        assert_eq!(refused("memory:", "a/b").await.kind().code(), "invalid");
    }

    /// The parameters would become part of the name of a new file.
    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_file_has_no_parameters() {
        let directory = std::env::temp_dir().join(format!("snowmint-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let url = format!("sqlite:{}/x.db?mode=ro", directory.display());
        let refused = open(&url, "default").await;
        let made = std::fs::read_dir(&directory).unwrap().count();
        std::fs::remove_dir_all(&directory).unwrap();
        let refused = refused.expect_err("an error");
        assert_eq!((refused.kind().code(), made), ("invalid", 0), "{refused}");
        assert!(refused.to_string().contains("no parameters"), "{refused}");
    }

    /// A caller reads the message; an operator reads the address, too.
    #[tokio::test]
    async fn errors_name_the_address_in_their_detail_alone() {
        let urls = [
            "memory:10.9.8.7",
            #[cfg(feature = "sqlite")]
            "sqlite:/10.9.8.7/x?y",
            #[cfg(feature = "sqlite")]
            "sqlite:/10.9.8.7/no-such-directory/ids.db",
            #[cfg(feature = "postgres")]
            "postgres://root:secret@10.9.8.7:5432/ids?no-such-parameter=1",
            #[cfg(feature = "mysql")]
            "mysql://root:secret@10.9.8.7:3306",
            #[cfg(feature = "redis")]
            "redis://root:secret@10.9.8.7:6379/0?no-such-parameter=1",
            #[cfg(feature = "redis")]
            "rediss://root:secret@10.9.8.7:6379/0?ca=/10.9.8.7/ca.pem",
            #[cfg(feature = "etcd")]
            "etcd://root:secret@10.9.8.7:2379,/ids",
            #[cfg(feature = "etcd")]
            "etcd://root:secret@10.9.8.7:2379/ids?ca=/10.9.8.7/ca.pem",
            #[cfg(feature = "zookeeper")]
            "zookeeper://root:secret@10.9.8.7:2181/ids?no-such-parameter=1",
        ];
        for url in urls {
            let error = refused(url, "default").await;
            assert!(!error.message().contains("10.9.8.7"), "{url}: {error}");
            assert!(error.to_string().contains("10.9.8.7"), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[tokio::test]
    async fn store_that_is_not_built_in_is_reported() {
        let error = refused("sqlite:ids.db", "default").await;
        assert_eq!(error.kind().code(), "unsupported");
        assert!(error.to_string().contains("sqlite: needs feature `sqlite`"), "{error}");
    }

    #[tokio::test]
    async fn each_memory_store_is_its_own() {
        let one = open("memory:", "default").await.unwrap();
        let two = open("memory:", "default").await.unwrap();
        assert_ne!(one.identity().await.unwrap().id, two.identity().await.unwrap().id);
        assert_eq!(one.namespace(), "default");
    }
}

/// The examples of the README, tested like those of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
