//! The Redis store keeps the contract, on a real server and on a real cluster.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use snowmint_coord::{BootTimer, FastForward, Store, Timer};
use snowmint_stores::Settings;
use snowmint_testkit::contract::{self, Factory};
use snowmint_testkit::servers::{Redis, RedisCluster};

struct Server {
    name: &'static str,
    url: String,
}

#[async_trait]
impl Factory for Server {
    fn name(&self) -> String {
        self.name.into()
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        snowmint_stores::open(&self.url, namespace).await.unwrap()
    }

    async fn pass_ms(&self, ms: u64) {
        BootTimer.sleep_ms(ms).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_keeps_the_contract() {
    let server = Redis::start(&[]);
    contract::run(Server { name: "redis", url: server.url() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redis_cluster_keeps_the_contract() {
    let cluster = RedisCluster::start();
    contract::run(Server { name: "redis cluster", url: cluster.url() }).await;
}

#[tokio::test]
async fn a_store_that_is_only_looked_at_is_not_made() {
    let server = Redis::start(&[]);
    let look = Settings { make: false, ..Settings::default() };
    for _ in 0..2 {
        let looked = snowmint_stores::open_with(&server.url(), "default", look).await;
        assert_eq!(looked.unwrap_err().kind().code(), "not_found");
    }
    let made = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let looked = snowmint_stores::open_with(&server.url(), "default", look).await.unwrap();
    assert_eq!(looked.identity().await.unwrap(), made.identity().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixteen_first_openers_agree_on_one_store() {
    let server = Redis::start(&[]);
    let openers: Vec<_> = (0..16)
        .map(|_| {
            let url = server.url();
            tokio::spawn(async move {
                let store = snowmint_stores::open(&url, "default").await.unwrap();
                store.identity().await.unwrap().id
            })
        })
        .collect();
    let mut ids = Vec::new();
    for opener in openers {
        ids.push(opener.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
}

#[tokio::test]
async fn a_server_that_can_lose_what_it_acknowledged_is_refused() {
    for setting in [
        ["--appendonly", "no"],
        ["--appendfsync", "everysec"],
        ["--maxmemory-policy", "allkeys-lru"],
    ] {
        let server = Redis::start(&setting);
        let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
        assert!(refused.to_string().contains(&setting[0][2..]), "{refused}");
    }
}

#[tokio::test]
async fn a_restart_of_a_server_that_may_have_lost_something_is_another_store() {
    let mut server = Redis::start(&["--appendfsync", "everysec"]);
    let url = format!("{}?persistence=any", server.url());
    let store = snowmint_stores::open(&url, "default").await.unwrap();
    let new = |name: &str| snowmint_coord::NewDefinition {
        name: name.into(),
        spec: "{}".into(),
        identity: "{}".into(),
    };
    store.define(&new("orders")).await.unwrap();
    server.restart();

    let store = snowmint_stores::open(&url, "default").await.unwrap();
    let refused = store.define(&new("bills")).await.unwrap_err();
    assert_eq!(refused.kind().code(), "other_store", "{refused:?}");
    assert!(store.get("orders").await.is_ok(), "reading is not refused");

    store.fast_forward(&FastForward::default()).await.unwrap();
    store.define(&new("bills")).await.unwrap();
}

#[tokio::test]
async fn a_restart_of_a_server_that_keeps_everything_is_not_noticed() {
    let mut server = Redis::start(&[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let before = store.identity().await.unwrap();
    server.restart();
    let mut after = store.identity().await;
    for _ in 0..50 {
        if after.is_ok() {
            break;
        }
        BootTimer.sleep_ms(200).await;
        after = store.identity().await;
    }
    assert_eq!(after.unwrap(), before);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_in_time() {
    let url = { Redis::start(&[]).url() };
    let opened =
        tokio::time::timeout(Duration::from_secs(60), snowmint_stores::open(&url, "default"));
    let refused = opened.await.unwrap().unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
}
