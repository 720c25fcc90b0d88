//! The Redis store keeps the contract, on a real server and on a real cluster.

use snowmint_coord::{BootTimer, FastForward, Timer};
use snowmint_testkit::contract;
use snowmint_testkit::servers::{Redis, RedisCluster};

use crate::opening::{self, Reached};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_keeps_the_contract() {
    let server = Redis::start(&[]);
    contract::run(Reached { name: "redis", url: server.url(), own_clock: true }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_redis_makes_a_store_once() {
    let server = Redis::start(&[]);
    opening::makes_a_store_once(server.url(), server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redis_cluster_keeps_the_contract() {
    let cluster = RedisCluster::start();
    let (name, url) = ("redis cluster", cluster.url());
    contract::run(Reached { name, url, own_clock: true }).await;
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
