//! The store in MySQL and MariaDB keeps the contract, on a real server: MariaDB, or MySQL by
//! `ci/mysql`.

use std::path::Path;
use std::sync::Arc;

use snowmint_coord::{FastForward, NewDefinition, Result, Store};
use snowmint_testkit::contract;
use snowmint_testkit::servers::{Mysql, Stranger};

use crate::connections;
use crate::opening::{self, Reached};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mysql_keeps_the_contract() {
    let server = Mysql::start(&[]);
    contract::run(Reached { name: "mysql", url: server.url(), own_clock: true }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_mysql_makes_a_store_once() {
    // Current MariaDB releases check snapshots by default, and older ones do not. MySQL passes over
    // the setting.
    for (setting, is_on) in
        [("loose-innodb-snapshot-isolation=ON", 1), ("loose-innodb-snapshot-isolation=OFF", 0)]
    {
        let server = Mysql::start(&[setting]);
        if server.name() == "MariaDB" {
            server.run(&format!(
                "CREATE TABLE setting (is_on INT CHECK (is_on = {is_on}));
                 INSERT INTO setting SELECT @@GLOBAL.innodb_snapshot_isolation"
            ));
        }
        opening::makes_a_store_once(server.url(), server).await;
    }
}

#[tokio::test]
async fn tables_that_were_dropped_are_another_store() {
    let server = Mysql::start(&[]);
    let drop = async || {
        server.run(
            "DROP TABLE snowmint_schema, snowmint_store, snowmint_namespace, snowmint_member, snowmint_pool, \
             snowmint_slot, snowmint_source",
        );
    };
    opening::is_another_when_emptied(&server.url(), drop).await;
}

#[tokio::test]
async fn tables_of_an_older_version_are_named() {
    let server = Mysql::start(&[]);
    let make_older = async || opening::TO_VERSION_2.iter().for_each(|change| server.run(change));
    opening::says_that_tables_are_older(&server.url(), make_older).await;
}

#[tokio::test]
async fn connections_ended_by_the_server_are_reopened() {
    connections::are_reopened(Mysql::start(&[]).into()).await;
}

#[tokio::test]
async fn connections_outlive_calls_that_are_given_up() {
    connections::outlive_calls_that_are_given_up(Mysql::start(&[]).into()).await;
}

#[tokio::test]
async fn server_that_can_lose_acknowledged_writes_is_rejected() {
    for settings in
        [&["innodb-flush-log-at-trx-commit=2"][..], &["log-bin=binlog", "sync-binlog=0"]]
    {
        let server = Mysql::start(settings);
        let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), "unsafe_store", "{refused:?}");
    }
}

async fn open(url: &str) -> Arc<dyn Store> {
    snowmint_stores::open(url, "default").await.unwrap()
}

/// Writes a definition.
async fn define(store: &Arc<dyn Store>, name: &str) -> Result<()> {
    let new = NewDefinition {
        name: name.into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    store.define(&new).await.map(|_| ())
}

#[tokio::test]
async fn server_with_copied_tables_needs_recovery_or_vouching() {
    let (server, other) = (Mysql::start(&["server-id=1"]), Mysql::start(&["server-id=2"]));
    define(&open(&server.url()).await, "before").await.unwrap();
    server.copy_to(&other);
    let store = open(&other.url()).await;
    let refused = define(&store, "after").await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
    let found = if server.name() == "MySQL" { "server mysql/" } else { "server mariadb/2" };
    assert!(refused.to_string().contains(found), "{refused}");
    assert!(store.get("before").await.is_ok(), "reading is not refused");
    store.fast_forward(&FastForward::default()).await.unwrap();
    define(&store, "after").await.unwrap();

    other.copy_to(&server);
    let store = open(&server.url()).await;
    assert!(define(&store, "back").await.is_err());
    define(&open(&format!("{}?failover=synchronous", server.url())).await, "back").await.unwrap();
    define(&store, "further").await.unwrap();
}

#[tokio::test]
async fn a_server_is_known_by_its_certificate() {
    let (server, stranger) = (Mysql::start_with_tls(), Stranger::new());
    let verified = async |server: &Mysql, authority: &Path| {
        snowmint_stores::open(&server.url_verified(authority), "default").await
    };
    let store = verified(&server, &server.authority()).await.unwrap();
    define(&store, "before").await.unwrap();

    let refused = verified(&server, &stranger.authority()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    assert!(format!("{refused:?}").contains("InvalidCertificate"), "{refused:?}");
    let without = Mysql::start_without_tls();
    let refused = verified(&without, &stranger.authority()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    assert!(format!("{refused:?}").contains("TLS"), "{refused:?}");
}

/// Covers a database with the longest possible name too.
#[tokio::test]
async fn a_user_needs_a_password_and_little_else_with_and_without_tls() {
    let server = Mysql::start_with_tls();
    let database = "d".repeat(64);
    server.run(&format!("CREATE DATABASE {database}"));
    let url = |user: &str, password: &str, mode: &str| {
        let url = server.url_as(user, password).replace("/ids", &format!("/{database}"));
        format!("{url}?ssl-mode={mode}")
    };
    let rights = "SELECT, INSERT, UPDATE, DELETE";
    for (user, rights, mode) in [
        ("maker", "CREATE, ALTER, SELECT, INSERT, UPDATE, DELETE", "DISABLED"),
        ("plain", rights, "DISABLED"),
        ("secret", rights, "REQUIRED"),
    ] {
        server.run(&format!(
            "CREATE USER {user} IDENTIFIED BY 'a word'; GRANT {rights} ON {database}.* TO {user}"
        ));
        // MySQL requires the whole password the first time, and recognizes it the second time.
        for time in ["first", "second"] {
            let store = open(&url(user, "a%20word", mode)).await;
            define(&store, &format!("{user}-{time}")).await.unwrap();
        }
        let other = url(user, "another", mode);
        let refused = snowmint_stores::open(&other, "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
        assert!(!format!("{refused:?}").contains("another"), "{refused:?}");
    }
    // MySQL revokes only existing permissions.
    let rest = "SELECT, INSERT, DELETE";
    for (lost, named) in [("UPDATE", "UPDATE command denied"), (rest, "Access denied")] {
        server.run(&format!("REVOKE {lost} ON {database}.* FROM plain"));
        let refused =
            match snowmint_stores::open(&url("plain", "a%20word", "DISABLED"), "default").await {
                Ok(store) => define(&store, "other").await.unwrap_err(),
                Err(refused) => refused,
            };
        assert_eq!(refused.kind().code(), "store_permission_denied", "{refused:?}");
        assert!(format!("{refused:?}").contains(named), "{refused:?}");
    }
    server.run("SET GLOBAL require_secure_transport = ON");
    let plain = url("plain", "a%20word", "DISABLED");
    let refused = snowmint_stores::open(&plain, "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
    // MariaDB does not report the reason.
    let names_tls = refused.to_string().contains("requires TLS");
    assert_eq!(names_tls, server.name() == "MySQL", "{refused}");
}
