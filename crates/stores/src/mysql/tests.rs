use snowmint_coord::{BootTimer, Incarnation, Mark, NewDefinition, Retry, Term, Timer as _};
use snowmint_testkit::servers::Mysql as Server;

use super::failure::{ENDED_FOR_SILENCE, is_lost};
use super::*;
use crate::sql::{Value, making};

/// Statement for a session that the server is to end soon.
const SOON: &str = "SET SESSION wait_timeout = 1";

#[test]
fn the_docs_show_the_capabilities() {
    assert!(CAPABILITIES.shown_in(include_str!("mod.rs")));
}

#[tokio::test]
async fn a_bad_url_shows_no_password() {
    let refused = open("mysql://root:secret@[bad/ids", "default", Settings::default());
    let refused = refused.await.unwrap_err();
    assert_eq!(refused.kind().code(), "invalid");
    assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
}

/// The URL is rejected without a connection: a server without a database sends replies that read as
/// damage.
#[tokio::test]
async fn a_url_without_a_database_is_refused_for_that() {
    for url in
        ["mysql://root:secret@127.0.0.1:1", "mariadb://root:secret@127.0.0.1:1/?ssl-mode=DISABLED"]
    {
        let refused = open(url, "default", Settings::default()).await.unwrap_err();
        assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
        assert!(refused.to_string().contains("URL names no database"), "{refused}");
        assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
    }
}

/// A typo in the name of a parameter would leave the server unverified, without a warning.
#[tokio::test]
async fn a_parameter_that_would_be_passed_over_is_refused() {
    for (parameters, expected) in [
        ("ssl-moed=VERIFY_IDENTITY", "ssl-moed"),
        ("ssl-ca=/ca.pem&SSL-MODE=REQUIRED", "SSL-MODE"),
        ("ssl-mode=VERIFY", "ssl-mode"),
        ("ssl-mode", "ssl-mode"),
        ("statement-cache-capacity=many", "statement-cache-capacity"),
        ("charset=utf8mb4#ssl-mode=REQUIRED", "%23"),
    ] {
        let url = format!("mysql://root:secret@127.0.0.1:1/ids?{parameters}");
        let refused = open(&url, "default", Settings::default()).await.unwrap_err();
        assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
        assert!(refused.to_string().contains(expected), "{expected}: {refused}");
        assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
    }
}

async fn opened(server: &Server) -> MySql {
    let (namespace, label) = ("default".into(), Label::of("it", "mysql:"));
    let (pool, failover) = (pool(&server.url(), "it").unwrap(), Failover::Lossy);
    let message = schema::prepare(&pool, "it", true).await.unwrap();
    let own = own(&server.url(), "it", message).unwrap();
    MySql { pool, own, namespace, label, failover, message }
}

/// Like sessions of a machine that slept: the pool considers them healthy.
#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs MariaDB: --features real-servers")]
async fn idle_sessions_are_reopened() {
    let server = Server::start(&[]);
    let store = opened(&server).await;
    let mut idle = store.pool.acquire().await.unwrap();
    idle.execute(SOON).await.unwrap();
    let mut own = store.own.checkout().await.unwrap();
    own.execute(SOON).await.unwrap();
    let mut step = MySqlSession::begin(&store.pool, Access::Write).await.unwrap();
    step.run(SOON.into(), Vec::new()).await.unwrap();
    drop(idle);
    store.own.put(own);
    // Waits until only this test's own connection is left.
    let begun = BootTimer.elapsed();
    let others = pool(&server.url(), "it").unwrap();
    let alone = "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID()
        AND user = 'root'";
    let connected = async || {
        let mut session = MySqlSession::begin(&others, Access::Read).await.unwrap();
        making::number(&mut session, alone).await.unwrap()
    };
    while connected().await > 0 {
        assert!(BootTimer.elapsed().since(begun) < 60_000, "the server does not end them");
        BootTimer.sleep_ms(200).await;
    }

    let ended = step.fetch("SELECT 1".into(), Vec::new()).await.unwrap_err();
    assert!(is_lost(&ended), "{ended:?}");
    if server.name() == "MySQL" {
        assert_eq!(number(&ended), Some(ENDED_FOR_SILENCE), "{ended:?}");
    }
    let error = map_error("it", ended, Class::of_store);
    assert_eq!(error.kind().code(), "unavailable", "{error:?}");
    assert_ne!(error.retry(), Retry::Never, "{error:?}");

    let (pool, term, request) = ("workers".to_owned(), Term::new(1), 1);
    let (from, to) = (Mark::new(1), Mark::new(2));
    let item = Extend { pool, slot: 0, term, holder: None, from, to, request, ahead_max_ms: None };
    let seen = Seen { id: "it".into(), writes: 0, catalog_version: 0 };
    assert_eq!(store.extend_in_one(&item, &seen).await.unwrap(), None, "it was not done");
    assert_eq!(store.pool.num_idle(), 1, "the one that has ended");
    let store = BackendStore::over(store);
    let new =
        NewDefinition { name: "a".into(), spec: "{}".into(), identity: "{}".into(), enabled: None };
    store.define(&new).await.unwrap();
}

/// Checks both errors by their numbers, on either product.
#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs MariaDB: --features real-servers")]
async fn lock_timeout_and_deadlock_are_retryable() {
    let server = Server::start(&[]);
    let store = opened(&server).await;
    let begin = || MySqlSession::begin(&store.pool, Access::Write);
    let (mut one, mut two) = (begin().await.unwrap(), begin().await.unwrap());
    let brief = "SET SESSION innodb_lock_wait_timeout = 1".to_owned();
    two.run(brief, Vec::new()).await.unwrap();
    let lock = |table| format!("SELECT only_one FROM {table} FOR UPDATE");
    one.fetch(lock("snowmint_store"), Vec::new()).await.unwrap();
    let waited = two.fetch(lock("snowmint_store"), Vec::new()).await.unwrap_err();

    // A deadlock ends the wait, however long the wait may be.
    let long = "SET SESSION innodb_lock_wait_timeout = 60".to_owned();
    two.run(long, Vec::new()).await.unwrap();
    two.fetch(lock("snowmint_schema"), Vec::new()).await.unwrap();
    let (a, b) = tokio::join!(
        one.fetch(lock("snowmint_schema"), Vec::new()),
        two.fetch(lock("snowmint_store"), Vec::new()),
    );
    let circle = a.err().or(b.err()).unwrap();
    for (error, known) in [(waited, 1205), (circle, 1213)] {
        assert_eq!(number(&error), Some(known), "{error:?}");
        assert_eq!(map_error("it", error, Class::of_store).kind().code(), "unavailable");
    }
}

/// Change made by another process before an extension gets the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Changed {
    Nothing,
    Mark,
    Term,
    Catalog,
    Holder,
    Server,
    Store,
}

/// The holder of the store's row blocks nothing else, and an extension that waited for it sees the
/// changes.
#[tokio::test]
#[cfg_attr(not(feature = "real-servers"), ignore = "needs MariaDB: --features real-servers")]
async fn an_extend_waits_for_its_turn_and_then_sees_the_newest() {
    use Changed::{
        Catalog, Holder, Mark as Moved, Nothing, Server as OtherServer, Store, Term as Passed,
    };
    let server = Server::start(&[]);
    let store = opened(&server).await;
    let (holder, another) = (Incarnation::new(1), Incarnation::new(2));
    server.run(&format!(
        "INSERT INTO snowmint_namespace (namespace, catalog_version, changes) VALUES ('default', 3, 0);
         INSERT INTO snowmint_slot VALUES
             ('default', 'workers', 7, 2, 5, 10, '{holder}', 'a', 1, 1, 1, 1, 0)"
    ));
    // MariaDB supports both forms.
    let mut messages = vec![store.message, Message::Joined];
    messages.dedup();
    for message in messages {
        let (pool, own) = (store.pool.clone(), own(&server.url(), "it", message).unwrap());
        let store = MySql { pool, own, message, ..opened(&server).await };
        for changed in [Nothing, Moved, Passed, Catalog, Holder, OtherServer, Store] {
            server.run(&format!(
                "UPDATE snowmint_store SET id = 'it', writes = 20, row_changes = 0, server = {SERVER};
                 UPDATE snowmint_namespace SET catalog_version = 3;
                 UPDATE snowmint_slot SET term = 2, mark = 10, extend_request = 1, changes = 0,
                     holder = '{holder}'"
            ));
            let mut other = MySqlSession::begin(&store.pool, Access::Write).await.unwrap();
            let lock = "SELECT id FROM snowmint_store FOR UPDATE".to_owned();
            other.fetch(lock, Vec::new()).await.unwrap();
            let (pool, term, request) = ("workers".to_owned(), Term::new(2), u64::MAX);
            let (from, to) = (Mark::new(10), Mark::new(20));
            let holder = Some(holder);
            let item =
                Extend { pool, slot: 7, term, holder, from, to, request, ahead_max_ms: None };
            let seen = Seen { id: "it".into(), writes: 20, catalog_version: 3 };
            let extend = store.extend_in_one(&item, &seen);
            let interfere = async {
                for attempts in 0.. {
                    assert!(attempts < 400, "no session waits");
                    // A repeated query within 100 ms gets the old result.
                    BootTimer.sleep_ms(150).await;
                    if waiting(&store).await > 0 {
                        break;
                    }
                }
                let all = "UPDATE snowmint_slot SET owner = CONCAT(owner, 'b')";
                let more = "UPDATE snowmint_namespace SET changes = changes + 1";
                let passed = format!("UPDATE snowmint_slot SET holder = '{another}'");
                let change = match changed {
                    Nothing => "UPDATE snowmint_store SET writes = 21",
                    Moved => "UPDATE snowmint_slot SET mark = 11",
                    Passed => "UPDATE snowmint_slot SET term = 3",
                    Holder => &passed,
                    Catalog => "UPDATE snowmint_namespace SET catalog_version = 4",
                    OtherServer => "UPDATE snowmint_store SET server = 'mysql/another'",
                    Store => "UPDATE snowmint_store SET id = 'another'",
                };
                for statement in [all, more, change] {
                    other.run(statement.into(), Vec::new()).await.unwrap();
                }
                other.commit().await.unwrap();
            };
            let (done, ()) = tokio::join!(extend, interfere);
            let expected = (changed == Nothing).then_some(22);
            assert_eq!(done.unwrap(), expected, "{message:?} {changed:?}");
            let mut after = MySqlSession::begin(&store.pool, Access::Read).await.unwrap();
            let query = "SELECT mark, extend_request, snowmint_slot.changes, row_changes
                FROM snowmint_slot, snowmint_store";
            let row = after.fetch(query.into(), Vec::new()).await.unwrap().remove(0);
            let (mark, request, counted) = match changed {
                Nothing => (20, -1, 1),
                Moved => (11, 1, 0),
                _ => (10, 1, 0),
            };
            assert_eq!(row, [mark, request, counted, counted].map(Value::Integer), "{changed:?}");
        }
    }
}

/// Returns the count of transactions that wait for a row.
async fn waiting(store: &MySql) -> u64 {
    let mut session = MySqlSession::begin(&store.pool, Access::Read).await.unwrap();
    let query = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    making::number(&mut session, query).await.unwrap()
}
