//! The PostgreSQL store behind a pooler that gives each transaction another of the server's
//! sessions.

use std::sync::Arc;

use snowmint_coord::Store;
use snowmint_testkit::contract;
use snowmint_testkit::servers::{PgBouncer, Postgres};

use crate::connections;
use crate::opening::Reached;
use crate::postgres::define;

const ALLOWED: &str = "ignore_startup_parameters = options";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_behind_a_pooler_of_transactions_keeps_the_contract() {
    let pooler = PgBouncer::start(Postgres::start(&[]), &[]);
    let url = format!("{}?pooler=transaction", pooler.url());
    contract::run(Reached { name: "postgres behind pgbouncer", url, own_clock: true }).await;
}

/// Opens a store behind a pooler with unsuitable session settings, and adds a trigger that fails
/// writes without our settings.
async fn seen_through_a_pooler() -> (PgBouncer, Arc<dyn Store>) {
    let server = Postgres::start(&[]);
    // The setting of other users that share the sessions.
    server.run("ALTER DATABASE postgres SET synchronous_commit = off");
    let pooler = PgBouncer::start(server, &[]);
    let url = format!("{}?pooler=transaction", pooler.url());
    let store = snowmint_stores::open(&url, "default").await.unwrap();
    let settings = ["synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout"];
    let set = settings.map(|name| format!("current_setting('{name}')")).join(" || '/' || ");
    pooler.server.run(&format!(
        "CREATE TABLE seen (settings text CHECK (settings = 'on/10s/5s'));
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO seen VALUES ({set}); RETURN NEW; END $$;
         CREATE TRIGGER sees AFTER UPDATE ON snowmint_store FOR EACH ROW EXECUTE FUNCTION see()"
    ));
    (pooler, store)
}

#[tokio::test]
async fn each_transaction_overrides_the_session_settings() {
    let (pooler, store) = seen_through_a_pooler().await;
    for name in ["one", "two", "three"] {
        define(&store, name).await.unwrap();
    }
    pooler.server.run("DO $$ BEGIN ASSERT (SELECT count(*) FROM seen) >= 3; END $$");
    store.close().await.unwrap();
}

/// An extension must be durable because IDs depend on it; without a pooler it is a statement
/// outside any transaction.
#[tokio::test]
async fn extend_overrides_the_session_settings() {
    let (pooler, store) = seen_through_a_pooler().await;
    let lease = connections::holder(&store).await;
    let mut mark = lease.mark;
    // The first call reads the rows, and the later ones could use the remembered ones.
    for request in 1..=4 {
        pooler.server.run("TRUNCATE seen");
        mark = connections::extend(&store, &lease, mark, request).await;
        pooler.server.run("DO $$ BEGIN ASSERT EXISTS (SELECT FROM seen); END $$");
    }
    store.close().await.unwrap();
}

/// If the URL does not name the pooler, the error does, instead of reporting an unreachable server
/// or a defect.
#[tokio::test]
async fn pooler_missing_in_the_url_is_named_in_the_error() {
    for lines in [&[][..], &[ALLOWED]] {
        let pooler = PgBouncer::start(Postgres::start(&[]), lines);
        let mut refused = None;
        for _ in 0..20 {
            match snowmint_stores::open(&pooler.url(), "default").await {
                Err(error) => refused = Some(error),
                // A single caller may get the same session again and again.
                Ok(store) => {
                    let mut all = tokio::task::JoinSet::new();
                    for _ in 0..8 {
                        let store = Arc::clone(&store);
                        all.spawn(async move { store.list().await });
                    }
                    refused = all.join_all().await.into_iter().find_map(Result::err);
                }
            }
            if refused.is_some() {
                break;
            }
        }
        let refused = refused.unwrap();
        assert_eq!(refused.kind().code(), "unsupported", "{lines:?}: {refused:?}");
        assert!(refused.to_string().contains("?pooler=transaction"), "{refused}");
    }
}
