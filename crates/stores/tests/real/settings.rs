//! A server that an operator sets to lose acknowledged writes while a member mints. The next
//! renewal gets an error with the setting's name, and the first renewal after the correction
//! succeeds.

use snowmint_coord::{BootTimer, Incarnation, Member, Presence, Timer as _};
use snowmint_core::UnixMillis;
use snowmint_testkit::servers::{Mysql, Postgres, Redis};

/// A past time: no server's clock is behind it.
const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);

/// Checks that the setting is read again; `set` gives it the right value or a wrong one.
async fn is_read_again(url: &str, setting: &str, set: impl AsyncFn(bool)) {
    let store = snowmint_stores::open(url, "default").await.unwrap();
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 600_000 };
    let (incarnation, name) = (Incarnation::new(7), String::new);
    let member = Member { incarnation, owner: name(), host: name(), process: 1, address: name() };
    store.join(&member, presence, NOW).await.unwrap();
    for is_right in [false, true] {
        set(is_right).await;
        let begun = BootTimer.elapsed();
        // A server may need a moment to apply the setting.
        let result = loop {
            let result = store.renew(incarnation, presence, NOW).await;
            let code = result.as_ref().map_or_else(|error| error.kind().code(), |()| "right");
            if code == if is_right { "right" } else { "unsafe_store" } {
                break result;
            }
            assert!(BootTimer.elapsed().since(begun) < 60_000, "{setting}: {result:?}");
        };
        if let Err(refused) = result {
            assert!(refused.to_string().contains(setting), "{setting}: {refused}");
            let joined = store.join(&member, presence, NOW).await.unwrap_err();
            assert_eq!(joined.kind().code(), "unsafe_store", "{joined}");
            let started = snowmint_stores::open(url, "default").await.unwrap_err();
            assert_eq!(started.kind().code(), "unsafe_store", "{started}");
        }
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn settings_of_redis_are_read_again() {
    let server = Redis::start(&[]);
    for (setting, right, wrong) in [
        ("appendfsync", "always", "everysec"),
        ("no-appendfsync-on-rewrite", "no", "yes"),
        ("maxmemory-policy", "noeviction", "allkeys-lru"),
    ] {
        let set = async |is_right| {
            let value = if is_right { right } else { wrong };
            crate::redis::send_command(&server, &format!("CONFIG SET {setting} {value}")).await;
        };
        is_read_again(&server.url(), setting, set).await;
    }
}

/// A server that begins a log reports it at once, but has a log only once the first is written.
#[tokio::test]
async fn a_log_that_redis_has_begun_counts_once_it_is_written() {
    let server = Redis::start(&[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 600_000 };
    let (incarnation, name) = (Incarnation::new(7), String::new);
    let member = Member { incarnation, owner: name(), host: name(), process: 1, address: name() };
    store.join(&member, presence, NOW).await.unwrap();
    let unsafe_for = async |wanted: &str| {
        let refused = store.renew(incarnation, presence, NOW).await.unwrap_err();
        assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
        assert!(refused.to_string().contains(wanted), "{refused}");
    };
    crate::redis::send_command(&server, "CONFIG SET appendonly no").await;
    unsafe_for("appendonly no").await;
    // Simulates a large store: a second for each key.
    crate::redis::send_command(&server, "CONFIG SET rdb-key-save-delay 1000000").await;
    crate::redis::send_command(&server, "CONFIG SET appendonly yes").await;
    unsafe_for("first append-only file").await;
    let begun = BootTimer.elapsed();
    while let Err(refused) = store.renew(incarnation, presence, NOW).await {
        assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
        assert!(BootTimer.elapsed().since(begun) < 120_000, "{refused}");
        BootTimer.sleep_ms(100).await;
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn settings_of_postgres_are_read_again() {
    let server = Postgres::start(&[]);
    for setting in ["fsync", "full_page_writes"] {
        let set = async |is_right| {
            let value = if is_right { "on" } else { "off" };
            server.run(&format!("ALTER SYSTEM SET {setting} = {value}"));
            server.run("SELECT pg_reload_conf()");
        };
        is_read_again(&server.url(), setting, set).await;
    }
}

/// The setting changes only with a restart.
#[tokio::test]
async fn postgres_that_continues_after_a_failed_sync_is_rejected() {
    let server = Postgres::start(&["data_sync_retry=on"]);
    let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsafe_store", "{refused}");
    assert!(refused.to_string().contains("data_sync_retry = on/on/on"), "{refused}");
}

/// PostgreSQL empties an unlogged table after a crash.
#[tokio::test]
async fn tables_of_postgres_are_checked_again() {
    let server = Postgres::start(&[]);
    for table in ["snowmint_slot", "snowmint_note"] {
        let set = async |is_right| {
            let kind = if is_right { "LOGGED" } else { "UNLOGGED" };
            server.run(&format!("ALTER TABLE {table} SET {kind}"));
        };
        is_read_again(&server.url(), table, set).await;
    }
}

/// Another engine acknowledges a write before it is on disk, and undoes nothing.
#[tokio::test]
async fn tables_of_mariadb_are_checked_again() {
    let server = Mysql::start(&[]);
    for table in ["snowmint_slot", "snowmint_note"] {
        let set = async |is_right| {
            let engine = if is_right { "InnoDB" } else { "MyISAM" };
            server.run(&format!("ALTER TABLE {table} ENGINE = {engine}"));
        };
        is_read_again(&server.url(), table, set).await;
    }
}

#[tokio::test]
async fn settings_of_mariadb_are_read_again() {
    let server = Mysql::start(&["log-bin=binlog", "sync-binlog=1"]);
    for (setting, right, wrong) in
        [("innodb_flush_log_at_trx_commit", 1, 2), ("sync_binlog", 1, 100)]
    {
        let set = async |is_right| {
            let value = if is_right { right } else { wrong };
            server.run(&format!("SET GLOBAL {setting} = {value}"));
        };
        is_read_again(&server.url(), setting, set).await;
    }
}
