//! A handle whose store is another one from one moment to the next, as when an address is given to another server.

use snowmint_testkit::contract::{
    every_verb_is_refused_by_an_older_state, every_verb_is_refused_by_another_store,
};
use snowmint_testkit::proxy::Proxy;
use snowmint_testkit::servers::{self, Server};
use tokio::runtime::Builder;

/// Behind one address, one after the other, and the other with more writes or with fewer.
fn servers_behind_an_address(start: impl Fn() -> Server) {
    let (one, two) = (start(), start());
    for (namespace, other_writes_more) in [("more", true), ("fewer", false)] {
        let proxy = Proxy::start(one.port());
        // The proxy has a runtime of its own, and so starts and ends in none.
        Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let store = snowmint_stores::open(&one.url_by(proxy.port()), namespace).await.unwrap();
            let other = snowmint_stores::open(&two.url(), namespace).await.unwrap();
            let swap = async || proxy.lead_to(two.port());
            every_verb_is_refused_by_another_store(store, other, swap, other_writes_more).await;
        });
    }
}

/// A server whose data are put back while it is down, under a handle that stays.
fn data_put_back(mut server: Server) {
    for (namespace, goes_on) in [("stands", false), ("goes-on", true)] {
        let url = server.url();
        let held = std::cell::RefCell::new(&mut server);
        let while_down = |what: fn(&Server)| {
            let mut server = held.borrow_mut();
            server.stop();
            what(&server);
            server.start();
        };
        Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            every_verb_is_refused_by_an_older_state(
                async || snowmint_stores::open(&url, namespace).await.unwrap(),
                async || while_down(Server::back_up),
                async || while_down(Server::restore),
                goes_on,
            )
            .await;
        });
    }
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

macro_rules! data_put_back {
    ($($feature:literal $name:ident $start:expr;)*) => {
        $(
            #[cfg(feature = $feature)]
            #[test]
            fn $name() {
                data_put_back($start.into());
            }
        )*
    };
}

data_put_back! {
    "redis" a_redis_that_is_put_back_is_refused_by_every_verb servers::Redis::start(&[]);
    "postgres" a_postgres_that_is_put_back_is_refused_by_every_verb servers::Postgres::start(&[]);
    "mysql" a_mariadb_that_is_put_back_is_refused_by_every_verb servers::Mysql::start(&[]);
    "etcd" an_etcd_that_is_put_back_is_refused_by_every_verb servers::Etcd::start();
    "zookeeper" a_zookeeper_that_is_put_back_is_refused_by_every_verb servers::Zookeeper::start();
}

servers_behind_an_address! {
    "redis" another_redis_is_refused_by_every_verb servers::Redis::start(&[]);
    "postgres" another_postgres_is_refused_by_every_verb servers::Postgres::start(&[]);
    "mysql" another_mariadb_is_refused_by_every_verb servers::Mysql::start(&[]);
    "etcd" another_etcd_is_refused_by_every_verb servers::Etcd::start();
    "zookeeper" another_zookeeper_is_refused_by_every_verb servers::Zookeeper::start();
}
