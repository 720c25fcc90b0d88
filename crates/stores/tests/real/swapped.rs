//! A handle whose store is another one from one moment to the next, as when an address is given to another server.

use snowmint_testkit::contract::every_verb_is_refused_by_another_store;
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

servers_behind_an_address! {
    "redis" another_redis_is_refused_by_every_verb servers::Redis::start(&[]);
    "postgres" another_postgres_is_refused_by_every_verb servers::Postgres::start(&[]);
    "mysql" another_mariadb_is_refused_by_every_verb servers::Mysql::start(&[]);
    "etcd" another_etcd_is_refused_by_every_verb servers::Etcd::start();
    "zookeeper" another_zookeeper_is_refused_by_every_verb servers::Zookeeper::start();
}
