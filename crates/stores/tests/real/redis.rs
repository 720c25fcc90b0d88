//! The Redis store keeps the contract, on a real server and on a real cluster.

use std::path::Path;
use std::sync::Arc;

use snowmint_coord::{FastForward, NewDefinition, Store};
use snowmint_testkit::contract;
use snowmint_testkit::servers::{Redis, RedisCluster, Stranger};

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

#[tokio::test]
async fn an_emptied_server_is_another_store() {
    let server = Redis::start(&[]);
    opening::is_another_when_emptied(&server.url(), async || flush(&server).await).await;
}

#[tokio::test]
async fn process_over_an_emptied_server_stops_at_its_next_renewal() {
    let server = Redis::start(&[]);
    opening::ends_minting_when_emptied(&server.url(), async || flush(&server).await).await;
}

async fn flush(server: &Redis) {
    send_command(server, "FLUSHALL").await;
}

/// Sends the server a command, as its administrator.
pub(crate) async fn send_command(server: &Redis, words: &str) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut hand = client.get_multiplexed_async_connection().await.unwrap();
    let (first, others) = words.split_once(' ').unwrap_or((words, ""));
    let mut command = redis::cmd(first);
    for word in others.split_whitespace() {
        command.arg(word);
    }
    let () = command.query_async(&mut hand).await.unwrap();
}

/// The permissions of docs/reference/stores.md.
const RIGHTS: &str = "resetchannels ~snowmint:* -@all +evalsha +eval +script|load +hget +hmget +hgetall +hset \
                      +hdel +hincrby +time +info +config|get";

/// Opens the store for a user with the documented permissions except `lacks`.
async fn open_without(server: &Redis, lacks: &str) -> snowmint_coord::Result<Arc<dyn Store>> {
    send_command(server, &format!("ACL SETUSER ids reset on >word {RIGHTS} {lacks}")).await;
    let url = server.url().replacen("redis://", "redis://ids:word@", 1);
    snowmint_stores::open(&url, "default").await
}

/// Missing permission neither requires moving a store forward, nor lets the settings count as
/// right.
#[tokio::test]
async fn user_without_the_right_to_read_settings_is_rejected() {
    let server = Redis::start(&[]);
    open_without(&server, "").await.unwrap();
    let refused = open_without(&server, "-config|get").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsafe_store", "{refused:?}");
    for part in ["does not report appendonly", "CONFIG GET", "persistence=any"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
}

#[tokio::test]
async fn missing_right_of_a_user_is_named() {
    let server = Redis::start(&[]);
    // Versions before 7.2 do not name a command within a script.
    let rights =
        [("evalsha", true), ("info", true), ("hset", false), ("hincrby", false), ("time", false)];
    for (right, is_named) in rights {
        let store = open_without(&server, &format!("-{right}")).await;
        let new = NewDefinition {
            name: right.into(),
            spec: "{}".into(),
            identity: "{}".into(),
            enabled: None,
        };
        let refused = match store {
            Ok(store) => store.define(&new).await.map(|_| ()),
            Err(refused) => Err(refused),
        };
        let refused = refused.expect_err(right);
        assert_eq!(refused.kind().code(), "store_permission_denied", "{right}: {refused:?}");
        assert!(refused.to_string().contains("docs/reference/stores.md"), "{refused}");
        let text = format!("{refused:?}");
        let names_command = text.contains(&format!("the '{right}' command"));
        let names_script = text.contains("The user executing the script can't run this command");
        assert!(names_command || (!is_named && names_script), "{right}: {text}");
    }
    send_command(&server, "ACL SETUSER ids -select").await;
    let url = server.url().replacen("redis://", "redis://ids:word@", 1).replace("/0", "/1");
    let refused = snowmint_stores::open(&url, "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_permission_denied", "{refused:?}");
    assert!(format!("{refused:?}").contains("select"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redis_cluster_keeps_the_contract() {
    let cluster = RedisCluster::start();
    let (name, url) = ("redis cluster", cluster.url());
    contract::run(Reached { name, url, own_clock: true }).await;
}

#[tokio::test]
async fn server_that_can_lose_acknowledged_writes_is_rejected() {
    for setting in [
        ["--appendonly", "no"],
        ["--appendfsync", "everysec"],
        ["--no-appendfsync-on-rewrite", "yes"],
        ["--maxmemory-policy", "allkeys-lru"],
    ] {
        let server = Redis::start(&setting);
        let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), "unsafe_store", "{refused:?}");
        assert!(refused.to_string().contains(&setting[0][2..]), "{refused}");
    }
}

#[tokio::test]
async fn restart_that_may_have_lost_writes_is_another_store() {
    let mut server = Redis::start(&["--appendfsync", "everysec"]);
    let url = format!("{}?persistence=any", server.url());
    let store = snowmint_stores::open(&url, "default").await.unwrap();
    let new = |name: &str| NewDefinition {
        name: name.into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    store.define(&new("orders")).await.unwrap();
    server.restart();

    let store = snowmint_stores::open(&url, "default").await.unwrap();
    let refused = store.define(&new("bills")).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused:?}");
    assert!(store.get("orders").await.is_ok(), "reading is not refused");

    store.fast_forward(&FastForward::default()).await.unwrap();
    assert_eq!(store.standing().await.unwrap().doubt, None, "it has no other namespace");
    store.define(&new("bills")).await.unwrap();
}

/// Two versions at once: once a newer one has written rows in its own form, a process that does not
/// know the form stops, whether it was running or is starting.
#[tokio::test]
async fn rows_of_a_newer_form_stop_older_processes() {
    let server = Redis::start(&[]);
    let new = |name: &str| NewDefinition {
        name: name.into(),
        spec: "{}".into(),
        identity: "{}".into(),
        enabled: None,
    };
    let running = snowmint_stores::open(&server.url(), "default").await.unwrap();
    running.define(&new("orders")).await.unwrap();
    let mut hand = redis::Client::open(server.url())
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    let mut hash = async |words: &[&str]| -> redis::Value {
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut hand).await.unwrap()
    };
    let key = "snowmint:{default}";
    let redis::Value::BulkString(bytes) = hash(&["HGET", key, "store"]).await else {
        panic!("the store has no record")
    };
    let record = String::from_utf8(bytes).unwrap();
    assert!(record.contains("\"form\":3"), "{record}");

    // A store without a stored form has the first form.
    hash(&["HSET", key, "store", &record.replace("\"form\":3,", "")]).await;
    running.define(&new("bills")).await.unwrap();
    snowmint_stores::open(&server.url(), "default").await.unwrap();

    hash(&["HSET", key, "store", &record.replace("\"form\":3", "\"form\":4")]).await;
    let started = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
    for refused in [
        started,
        running.define(&new("others")).await.unwrap_err(),
        running.list().await.unwrap_err(),
        running.fast_forward(&FastForward::default()).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
        for part in ["form 4", "maximum 3", "update this program"] {
            assert!(refused.to_string().contains(part), "{part}: {refused}");
        }
    }
    // Back again, if the newer version is abandoned and its rows are removed.
    hash(&["HSET", key, "store", &record]).await;
    running.define(&new("others")).await.unwrap();
}

#[tokio::test]
async fn restart_of_a_durable_server_changes_no_identity() {
    let mut server = Redis::start(&[]);
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let before = store.identity().await.unwrap();
    server.restart();
    assert_eq!(opening::at_last(|| store.identity()).await, before);
}

/// Sets the cryptography provider of the whole process, which the driver uses, as a program would.
fn choose_cryptography() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[tokio::test]
async fn a_server_is_known_by_its_certificate() {
    choose_cryptography();
    let (server, stranger) = (Redis::start_with_tls(), Stranger::new());
    let verified = async |authority: &Path, more: &str| {
        let url = format!("{}?ca={}{more}", server.url(), authority.display());
        snowmint_stores::open(&url, "default").await
    };
    let store = verified(&server.authority(), "").await.unwrap();
    assert!(store.identity().await.is_ok());

    let refused = verified(&stranger.authority(), "").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    assert!(format!("{refused:?}").to_lowercase().contains("certificate"), "{refused:?}");
    let refused = verified(Path::new("/nonexistent.pem"), "").await.unwrap_err();
    assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
    // This machine does not trust its signer.
    let refused = snowmint_stores::open(&server.url(), "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    let plain = server.url().replace("rediss:", "redis:");
    let refused = snowmint_stores::open(&plain, "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");

    server.demand_certificates();
    assert!(verified(&server.authority(), "").await.is_err(), "who shows none is refused");
    let (certificate, key) = server.certificate();
    let shown = format!("&cert={}&key={}", certificate.display(), key.display());
    let store = verified(&server.authority(), &shown).await.unwrap();
    assert!(store.identity().await.is_ok());
    let senseless = format!("&cert={}&key={}", key.display(), certificate.display());
    let refused = verified(&server.authority(), &senseless).await.unwrap_err();
    assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
}

#[tokio::test]
async fn servers_of_a_cluster_are_known_by_their_certificate() {
    choose_cryptography();
    let (cluster, stranger) = (RedisCluster::start_with_tls(), Stranger::new());
    let verified = async |authority: &Path| {
        let url = format!("{}?ca={}&persistence=any", cluster.url(), authority.display());
        snowmint_stores::open(&url, "default").await
    };
    let store = verified(&cluster.authority()).await.unwrap();
    assert!(store.identity().await.is_ok());
    let refused = verified(&stranger.authority()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
}
