//! The PostgreSQL store keeps the contract, on a real server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmint_coord::recovery::accept_other_server;
use snowmint_coord::{
    Acquire, FastForward, Incarnation, Member, NewDefinition, Pool, Presence, Result, Reuse, Store,
};
use snowmint_core::UnixMillis;
use snowmint_testkit::contract;
use snowmint_testkit::servers::{Postgres, Stranger};
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::connections;
use crate::opening::{self, Reached};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_keeps_the_contract() {
    let server = Postgres::start(&[]);
    contract::run(Reached { name: "postgres", url: server.url(), own_clock: true }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_postgres_makes_a_store_once() {
    let server = Postgres::start(&[]);
    opening::makes_a_store_once(server.url(), server).await;
}

#[tokio::test]
async fn tables_that_were_dropped_are_another_store() {
    let server = Postgres::start(&[]);
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
    let server = Postgres::start(&[]);
    let make_older = async || opening::TO_VERSION_2.iter().for_each(|change| server.run(change));
    opening::says_that_tables_are_older(&server.url(), make_older).await;
}

#[tokio::test]
async fn connections_ended_by_the_server_are_reopened() {
    connections::are_reopened(Postgres::start(&[]).into()).await;
}

#[tokio::test]
async fn connections_outlive_calls_that_are_given_up() {
    connections::outlive_calls_that_are_given_up(Postgres::start(&[]).into()).await;
}

#[tokio::test]
async fn server_that_can_lose_acknowledged_writes_is_rejected() {
    let server = Postgres::start(&["fsync=off"]);
    let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsafe_store", "{refused:?}");
}

/// A past time: no server's clock is behind it.
const NOW: UnixMillis = UnixMillis::new(1_700_000_000_000);

async fn open(url: &str) -> Arc<dyn Store> {
    snowmint_stores::open(url, "default").await.unwrap()
}

/// Writes a definition.
pub(crate) async fn define(store: &Arc<dyn Store>, name: &str) -> Result<()> {
    let new = NewDefinition {
        name: name.into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    store.define(&new).await.map(|_| ())
}

#[tokio::test]
async fn promoted_replica_needs_recovery_or_vouching() {
    let mut server = Postgres::start(&[]);
    let (url, vouched) = (server.url(), format!("{}?failover=synchronous", server.url()));
    define(&open(&url).await, "before").await.unwrap();

    server.promote();
    let store = open(&url).await;
    let refused = define(&store, "after").await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
    assert!(refused.to_string().contains("/2") && refused.to_string().contains("fast-forward"));
    assert!(store.get("before").await.is_ok(), "reading is not refused");
    store.fast_forward(&FastForward::default()).await.unwrap();
    define(&store, "after").await.unwrap();

    server.promote();
    let store = open(&url).await;
    assert!(define(&store, "again").await.is_err());
    define(&open(&vouched).await, "vouched").await.unwrap();
    define(&store, "again").await.unwrap();
    assert_eq!(store.warnings(), Vec::<String>::new());
}

/// The doubt is that of each namespace: all have their tables on the promoted replica.
#[tokio::test]
async fn a_promoted_replica_is_in_doubt_once_an_operator_accepts_it() {
    let mut server = Postgres::start(&[]);
    let url = server.url();
    for namespace in ["default", "other"] {
        let store = snowmint_stores::open(&url, namespace).await.unwrap();
        define(&store, "before").await.unwrap();
        accept_other_server(&*store).await.unwrap();
        assert_eq!(store.standing().await.unwrap().doubt, None, "the server is the same");
    }
    server.promote();
    accept_other_server(&*open(&url).await).await.unwrap();
    for namespace in ["default", "other"] {
        let store = &snowmint_stores::open(&url, namespace).await.unwrap();
        assert!(store.standing().await.unwrap().doubt.is_some(), "{namespace}");
        let refused = define(store, "after").await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_rolled_back", "{namespace}: {refused:?}");
        store.fast_forward(&FastForward::default()).await.unwrap();
        define(store, "after").await.unwrap();
    }
}

/// The move has applied nothing that the other namespace's processes know, and the replica may lack
/// some of it.
#[tokio::test]
async fn move_of_one_namespace_to_a_replica_puts_the_others_in_doubt() {
    let mut server = Postgres::start(&[]);
    let url = server.url();
    let other = snowmint_stores::open(&url, "other").await.unwrap();
    for store in [&open(&url).await, &other] {
        define(store, "before").await.unwrap();
    }
    server.promote();
    let store = open(&url).await;
    store.fast_forward(&FastForward::default()).await.unwrap();
    define(&store, "after").await.unwrap();
    let other = snowmint_stores::open(&url, "other").await.unwrap();
    assert!(other.standing().await.unwrap().doubt.is_some());
    let refused = define(&other, "after").await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused:?}");
    other.fast_forward(&FastForward::default()).await.unwrap();
    for store in [&store, &other] {
        define(store, "again").await.unwrap();
    }
}

#[tokio::test]
async fn tables_that_were_carried_to_another_server_are_refused() {
    let (server, other) = (Postgres::start(&[]), Postgres::start(&[]));
    define(&open(&server.url()).await, "before").await.unwrap();
    server.copy_to(&other);
    for parameter in ["", "?failover=synchronous"] {
        let store = open(&format!("{}{parameter}", other.url())).await;
        let refused = define(&store, "after").await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
    }
    let store = open(&other.url()).await;
    store.fast_forward(&FastForward::default()).await.unwrap();
    define(&store, "after").await.unwrap();
    define(&open(&server.url()).await, "home").await.unwrap();
}

#[tokio::test]
async fn least_rights_suffice_and_missing_ones_are_reported() {
    let server = Postgres::start(&[]);
    define(&open(&server.url()).await, "first").await.unwrap();
    server.run("CREATE USER least; GRANT USAGE ON SCHEMA public TO least");
    // The permissions in the manual.
    let manual = include_str!("../../../../docs/reference/stores.md");
    let (_, rights) =
        manual.split_once("GRANT SELECT, INSERT, UPDATE, DELETE ON snowmint_").unwrap();
    let (tables, _) = rights.split_once(" TO snowmint;").unwrap();
    server.run(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON snowmint_{tables} TO least"));
    let store = open(&server.url_as("least")).await;
    define(&store, "second").await.unwrap();
    assert_eq!(store.warnings(), Vec::<String>::new());

    server.run("REVOKE UPDATE ON snowmint_store FROM least");
    let refused = define(&open(&server.url_as("least")).await, "third").await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_permission_denied", "{refused:?}");
    assert!(format!("{refused:?}").contains("permission denied for table snowmint_store"));
    server.run("GRANT UPDATE ON snowmint_store TO least");

    server.run("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
    let store = open(&server.url_as("least")).await;
    define(&store, "third").await.unwrap();
    let [warning] = &store.warnings()[..] else { panic!("{:?}", store.warnings()) };
    assert!(warning.contains("pg_control_system"), "{warning}");
}

/// A server's identity reveals a promoted replica: only a missing permission or function counts as
/// "unknown".
#[tokio::test]
async fn failed_identity_query_is_an_error() {
    let server = Postgres::start(&[]);
    define(&open(&server.url()).await, "first").await.unwrap();
    server.run(
        "SET allow_system_table_mods = on;
         ALTER FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RENAME TO the_true_walfile_name",
    );
    let missing = open(&server.url()).await;
    assert_eq!(missing.warnings().len(), 1, "{:?}", missing.warnings());
    for code in ["57014", "53200", "58030", "XX000"] {
        server.run(&format!(
            "SET allow_system_table_mods = on;
             CREATE OR REPLACE FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RETURNS text LANGUAGE plpgsql
                 AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{code}'; END $$"
        ));
        let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
        assert!(format!("{refused:?}").contains("not now"), "{code}: {refused:?}");
    }
}

#[tokio::test]
async fn a_server_is_known_by_its_certificate() {
    let (server, stranger) = (Postgres::start_with_tls(), Stranger::new());
    let verified = async |server: &Postgres, authority: &Path| {
        snowmint_stores::open(&server.url_verified(authority), "default").await
    };
    let store = verified(&server, &server.authority()).await.unwrap();
    define(&store, "before").await.unwrap();

    let refused = verified(&server, &stranger.authority()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    assert!(format!("{refused:?}").contains("InvalidCertificate"), "{refused:?}");
    let without = Postgres::start(&["ssl=off"]);
    let refused = verified(&without, &stranger.authority()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    assert!(format!("{refused:?}").contains("TLS"), "{refused:?}");
}

/// A value that the session has not set follows changes in the server's files, even during the
/// session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_stay_durable_when_the_server_reads_its_files_again() {
    for setting in ["off", "local"] {
        let server = Postgres::start(&[]);
        let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
        // `work_mem` shows when a session has read the files.
        server.run(
            "CREATE TABLE seen (durable text CHECK (durable = 'on'), work_mem text);
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen VALUES (current_setting('synchronous_commit'), current_setting('work_mem'));
                 RETURN NEW; END $$;
             CREATE TRIGGER sees AFTER UPDATE ON snowmint_store FOR EACH ROW EXECUTE FUNCTION see()",
        );
        let lease = connections::holder(&store).await;
        let (mut mark, mut requests) = (lease.mark, 1..);
        // Opens the sessions that are to last.
        for request in requests.by_ref().take(3) {
            mark = connections::extend(&store, &lease, mark, request).await;
        }
        for statement in [
            &format!("ALTER SYSTEM SET synchronous_commit = {setting}"),
            "ALTER SYSTEM SET work_mem = '7MB'",
            "SELECT pg_reload_conf()",
        ] {
            server.run(statement);
        }
        let done = Arc::new(AtomicBool::new(false));
        let extending = tokio::spawn({
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            async move {
                while !done.load(Ordering::Relaxed) {
                    let request = requests.next().unwrap();
                    mark = connections::extend(&store, &lease, mark, request).await;
                }
            }
        });
        let server = tokio::task::spawn_blocking(move || {
            server.run(
                "DO $$ BEGIN
                     FOR round IN 1..600 LOOP
                         IF EXISTS (SELECT FROM seen WHERE work_mem = '7MB') THEN RETURN; END IF;
                         PERFORM pg_sleep(0.1);
                     END LOOP;
                     RAISE 'no session that writes has read the files';
                 END $$",
            );
            server
        })
        .await
        .unwrap();
        done.store(true, Ordering::Relaxed);
        extending.await.unwrap();
        store.close().await.unwrap();
        drop(server);
    }
}

#[tokio::test]
async fn synchronous_failover_without_a_replica_gives_a_warning() {
    let server = Postgres::start(&[]);
    for (parameter, expected) in [("", 0), ("?failover=synchronous", 1)] {
        let url = format!("{}{parameter}", server.url());
        let store = snowmint_stores::open(&url, "default").await.unwrap();
        let warnings = store.warnings();
        let named = warnings.iter().filter(|line| line.contains("synchronous_standby_names"));
        assert_eq!(named.count(), expected, "{warnings:?}");
        store.close().await.unwrap();
    }
}

/// Returns how many rows of slots PostgreSQL has read, once all other connections have ended: a
/// connection reports what it has read at its end at the latest.
async fn slots_read(observer: &mut PgConnection) -> i64 {
    let others = "SELECT COUNT(*) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    while sqlx::query(others).fetch_one(&mut *observer).await.unwrap().get::<i64, _>(0) > 0 {}
    let counted = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables
         WHERE relname = 'snowmint_slot'";
    sqlx::query(counted).fetch_one(observer).await.unwrap().get(0)
}

/// A prepared statement is planned for any values after five executions, here without statistics
/// about the table. Reading the whole pool for a few slots would keep the store's row locked.
#[tokio::test]
async fn acquiring_slots_reads_no_other_slots() {
    const SLOTS: u64 = 4_000;
    const ACQUIRED: u64 = 500;
    const ACQUIRES: u64 = 20;
    let server = Postgres::start(&["autovacuum=off"]);
    let store = open(&server.url()).await;
    let presence = Presence { sample: NOW, renewals: 0, ttl_ms: 600_000 };
    let (incarnation, name) = (Incarnation::new(7), String::new);
    let member = Member { incarnation, owner: name(), host: name(), process: 1, address: name() };
    store.join(&member, presence, NOW).await.unwrap();
    let acquire = async |slots: Vec<u64>, request| {
        let pool = Pool { name: "sections".into(), slots: SLOTS, group: 1, reuse: Reuse::Ordered };
        let acquire = Acquire {
            pool,
            member: incarnation,
            owner: name(),
            slots,
            stalled: Vec::new(),
            supersedes: None,
            length: 0,
            request,
        };
        let acquired = store.acquire(&acquire, NOW).await.unwrap();
        assert_eq!(acquired.leases.len(), acquire.slots.len());
    };
    acquire((0..SLOTS).collect(), 1).await;
    for request in 0..ACQUIRES {
        acquire((0..ACQUIRED).map(|slot| slot * 7).collect(), request + 2).await;
    }
    store.close().await.unwrap();
    let mut observer = PgConnection::connect(&server.url()).await.unwrap();
    let read = u64::try_from(slots_read(&mut observer).await).unwrap();
    // An acquire reads its slots once for the rules and once to replace them.
    assert!(read >= ACQUIRED * ACQUIRES, "{read} rows were read");
    assert!(read < 4 * ACQUIRED * ACQUIRES, "{read} rows were read");
}
