//! A handle with a store that is replaced by another at some moment, as when an address moves to
//! another server.

use std::sync::Arc;

use snowmint_coord::{BootTimer, NewDefinition, Result, Store, Timer as _};
use snowmint_testkit::contract::{
    LostWrites, every_verb_is_refused_by_an_older_state, every_verb_is_refused_by_another_store,
    recovery_checks_the_server,
};
use snowmint_testkit::proxy::Proxy;
use snowmint_testkit::servers::{self, Server};
use tokio::runtime::Builder;

/// Runs two servers behind one address, one after the other; the second has more writes or fewer.
fn servers_behind_an_address(start: impl Fn() -> Server) {
    let (one, two) = (start(), start());
    for (namespace, other_writes_more) in [("more", true), ("fewer", false)] {
        let proxy = Proxy::start(one.port());
        // The proxy has its own runtime, and so must start and end outside any other.
        Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let store = snowmint_stores::open(&one.url_by(proxy.port()), namespace).await.unwrap();
            let other = snowmint_stores::open(&two.url(), namespace).await.unwrap();
            let swap = async || proxy.lead_to(two.port());
            every_verb_is_refused_by_another_store(store, other, swap, other_writes_more).await;
        });
    }
}

/// Restores an older state of a server's data while it is down, under a handle that stays.
fn data_rolled_back(mut server: Server) {
    for lost in LostWrites::ALL {
        let namespace = format!("{lost:?}").to_lowercase();
        let url = server.url();
        let held = std::cell::RefCell::new(&mut server);
        let while_down = |what: fn(&Server)| {
            let mut server = held.borrow_mut();
            server.stop();
            what(&server);
            server.start();
        };
        Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let open = async || snowmint_stores::open(&url, &namespace).await.unwrap();
            every_verb_is_refused_by_an_older_state(
                open().await,
                open,
                async || while_down(Server::back_up),
                async || {
                    while_down(Server::restore);
                    others_write(&url, &format!("{namespace}-of-others")).await;
                },
                lost,
            )
            .await;
        });
    }
}

/// Writes as often as another user of the server might have since: a server that counts the writes
/// of all then counts more than before.
async fn others_write(url: &str, namespace: &str) {
    let store = snowmint_stores::open(url, namespace).await.unwrap();
    for index in 0..50 {
        let (name, text) = (format!("source-{index}"), "{}".to_owned());
        let (spec, identity) = (text.clone(), text);
        store.define(&NewDefinition { name, spec, identity, enabled: None }).await.unwrap();
    }
    store.close().await.unwrap();
}

/// Checks a server that took over and lacks the last writes; then the first one returns. Reading
/// from the replica is not a sign of a store rollback. `copy` returns a replica of the present
/// state, which rejects writes as `unwritten`.
fn a_replica_that_lags(first: &str, copy: impl FnOnce() -> Server, unwritten: &str) {
    let first_port = port_of(first);
    let proxy = Proxy::start(first_port);
    let url = first.replace(&format!(":{first_port}"), &format!(":{}", proxy.port()));
    // The proxy has its own runtime, and so must start and end outside any other.
    Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let store = snowmint_stores::open(&url, "default").await.unwrap();
        let define = async |name: &str| {
            let (spec, identity) = ("{}".to_owned(), "{}".to_owned());
            store.define(&NewDefinition { name: name.into(), spec, identity, enabled: None }).await
        };
        define("before").await.unwrap();
        let replica = copy();
        define("after").await.unwrap();
        let seen = store.identity().await.unwrap();
        proxy.lead_to(replica.port());
        for _ in 0..2 {
            let refused = soon(async || store.list().await.map(drop)).await.unwrap_err();
            assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
            let refused = soon(async || store.recall("it", &seen).await.map(drop)).await;
            assert_eq!(refused.unwrap_err().kind().code(), "store_mismatch");
            let refused = define("there").await.unwrap_err();
            assert_eq!(refused.kind().code(), unwritten, "{refused}");
        }
        proxy.lead_to(first_port);
        soon(async || store.list().await.map(drop)).await.unwrap();
        soon(async || store.recall("it", &seen).await.map(drop)).await.unwrap();
        define("further").await.unwrap();
    });
}

async fn open(url: &str) -> Arc<dyn Store> {
    snowmint_stores::open(url, "default").await.unwrap()
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn recovery_of_a_promoted_postgres_needs_its_acceptance() {
    let mut server = servers::Postgres::start(&[]);
    let url = server.url();
    recovery_checks_the_server(async || open(&url).await, async || server.promote(), true).await;
}

/// Each server takes the other's place with a copy of its tables.
#[cfg(feature = "mysql")]
#[test]
fn recovery_of_a_copied_mariadb_needs_its_acceptance() {
    let servers = ["server-id=1", "server-id=2"].map(|id| servers::Mysql::start(&[id]));
    let ports = servers.each_ref().map(|server| port_of(&server.url()));
    let proxy = Proxy::start(ports[0]);
    let url = servers[0].url().replace(&format!(":{}", ports[0]), &format!(":{}", proxy.port()));
    // The proxy has its own runtime, and so must start and end outside any other.
    Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let mut present = 0;
        let take_over = async || {
            let next = 1 - present;
            servers[present].copy_to(&servers[next]);
            proxy.lead_to(ports[next]);
            present = next;
        };
        recovery_checks_the_server(async || open(&url).await, take_over, true).await;
    });
}

/// Only a Redis that may lose acknowledged writes is another server after each restart.
#[cfg(feature = "redis")]
#[tokio::test]
async fn recovery_of_a_restarted_redis_may_need_its_acceptance() {
    for (persistence, is_distinguished) in [("", false), ("?persistence=any", true)] {
        let mut server = servers::Redis::start(&[]);
        let url = format!("{}{persistence}", server.url());
        let restart = async || server.restart();
        recovery_checks_the_server(async || open(&url).await, restart, is_distinguished).await;
    }
}

#[cfg(feature = "etcd")]
#[tokio::test]
async fn recovery_of_a_restored_etcd_needs_its_acceptance() {
    let mut server = servers::Etcd::start();
    let url = server.url();
    let restore = async || server.restore_into_another_cluster();
    recovery_checks_the_server(async || open(&url).await, restore, true).await;
}

/// ZooKeeper has no ID of its own: a restart is no other server, and neither is a copy.
#[cfg(feature = "zookeeper")]
#[tokio::test]
async fn recovery_of_a_restarted_zookeeper_needs_no_acceptance() {
    let mut server = Server::from(servers::Zookeeper::start());
    let url = server.url();
    let restart = async || {
        server.stop();
        server.start();
    };
    recovery_checks_the_server(async || open(&url).await, restart, false).await;
}

fn port_of(url: &str) -> u16 {
    let (_, place) = url.rsplit_once(':').unwrap();
    let digits = place.find(|found: char| !found.is_ascii_digit()).unwrap_or(place.len());
    place[..digits].parse().unwrap()
}

/// Repeats a call until the lost connection to the previous server is detected.
async fn soon(ask: impl AsyncFn() -> Result<()>) -> Result<()> {
    let begun = BootTimer.elapsed();
    loop {
        match ask().await {
            Err(error) if error.kind().code() == "unavailable" => {
                assert!(BootTimer.elapsed().since(begun) < 60_000, "{error}");
            }
            result => return result,
        }
    }
}

#[cfg(feature = "postgres")]
fn postgres_with_its_tables(first: &servers::Postgres) -> servers::Postgres {
    let replica = servers::Postgres::start(&[]);
    first.copy_to(&replica);
    replica
}

#[cfg(feature = "mysql")]
fn mariadb_with_its_tables(first: &servers::Mysql) -> servers::Mysql {
    let replica = servers::Mysql::start(&["server-id=2"]);
    first.copy_to(&replica);
    replica
}

macro_rules! a_replica_that_lags {
    ($($feature:literal $name:ident $first:expr, $copy:expr, $unwritten:literal;)*) => {
        $(
            #[cfg(feature = $feature)]
            #[test]
            fn $name() {
                let first = $first;
                a_replica_that_lags(&first.url(), || $copy(&first).into(), $unwritten);
            }
        )*
    };
}

macro_rules! servers_behind_an_address {
    ($($feature:literal $name:ident $start:expr;)*) => {
        $(
            #[cfg(feature = $feature)]
            #[test]
            fn $name() {
                servers_behind_an_address(|| $start.into());
            }
        )*
    };
}

macro_rules! data_rolled_back {
    ($($feature:literal $name:ident $start:expr;)*) => {
        $(
            #[cfg(feature = $feature)]
            #[test]
            fn $name() {
                data_rolled_back($start.into());
            }
        )*
    };
}

a_replica_that_lags! {
    "postgres" a_postgres_that_lags_is_another_store_to_its_readers
        servers::Postgres::start(&[]), postgres_with_its_tables, "store_mismatch";
    "postgres" a_postgres_standby_is_another_store_to_its_readers
        servers::Postgres::start(&[]), servers::Postgres::standby, "store_read_only";
    "mysql" a_mariadb_that_lags_is_another_store_to_its_readers
        servers::Mysql::start(&["server-id=1"]), mariadb_with_its_tables, "store_mismatch";
}

data_rolled_back! {
    "redis" restored_redis_is_rejected_by_every_verb servers::Redis::start(&[]);
    "postgres" restored_postgres_is_rejected_by_every_verb servers::Postgres::start(&[]);
    "mysql" restored_mariadb_is_rejected_by_every_verb servers::Mysql::start(&[]);
    "etcd" restored_etcd_is_rejected_by_every_verb servers::Etcd::start();
    "zookeeper" restored_zookeeper_is_rejected_by_every_verb servers::Zookeeper::start();
}

servers_behind_an_address! {
    "redis" other_redis_is_rejected_by_every_verb servers::Redis::start(&[]);
    "postgres" other_postgres_is_rejected_by_every_verb servers::Postgres::start(&[]);
    "mysql" other_mariadb_is_rejected_by_every_verb servers::Mysql::start(&[]);
    "etcd" other_etcd_is_rejected_by_every_verb servers::Etcd::start();
    "zookeeper" other_zookeeper_is_rejected_by_every_verb servers::Zookeeper::start();
}
