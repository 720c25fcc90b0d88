//! The etcd store keeps the contract, on a real server.

use std::path::Path;

use snowmint_coord::{
    ClaimRequest, Mark, Node, NodeSettings, Platform, Pool, Preference, Reuse, SourceSpec,
};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_testkit::contract;
use snowmint_testkit::servers::{Etcd, Stranger};

use crate::opening::{self, Reached};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn etcd_keeps_the_contract() {
    let server = Etcd::start();
    contract::run(Reached { name: "etcd", url: server.url(), own_clock: false }).await;
}

/// A transaction may name no more keys than `--max-txn-ops`.
#[tokio::test]
async fn largest_steps_fit_into_one_transaction() {
    let server = Etcd::start();
    let open = async || snowmint_stores::open(&server.url(), "default").await.unwrap();
    contract::largest_steps_are_carried_out(open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_etcd_makes_a_store_once() {
    let server = Etcd::start();
    opening::makes_a_store_once(server.url(), server).await;
}

#[tokio::test]
async fn an_emptied_server_is_another_store() {
    let server = Etcd::start();
    let empty = async || {
        let deleted = server.client().args(["del", "", "--prefix"]).output().unwrap();
        assert!(deleted.status.success(), "{deleted:?}");
    };
    opening::is_another_when_emptied(&server.url(), empty).await;
}

#[tokio::test]
async fn a_prefix_separates_stores_of_one_cluster() {
    let server = Etcd::start();
    let open = async |path: &str| {
        let url = format!("{}{path}", server.url());
        snowmint_stores::open(&url, "default").await.unwrap().identity().await.unwrap().id
    };
    let (plain, team, other) = (open("").await, open("/team").await, open("/team/other/").await);
    assert!(plain != team && team != other && other != plain);
    assert_eq!((open("/").await, open("/team/").await), (plain, team));
    let keys = server.client().args(["get", "", "--prefix", "--keys-only"]).output().unwrap();
    let keys = String::from_utf8(keys.stdout).unwrap();
    for key in ["/snowmint/default/", "/team/snowmint/default/", "/team/other/snowmint/default/"] {
        assert!(keys.lines().any(|line| line == format!("{key}store")), "{key}: {keys}");
    }
}

#[tokio::test]
async fn worker_with_too_many_clock_values_is_rejected() {
    let server = Etcd::start();
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let node = Node::open(store, NodeSettings::default(), Platform::system()).await.unwrap();
    let layout = |clock: u8| {
        let spec =
            format!(r#"{{"layout":"time=41,clock={clock},worker={},sequence=12"}}"#, 10 - clock);
        SourceSpec::from_json(&spec).unwrap()
    };
    let refused = node.define("seven", &layout(7)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
    assert!(refused.to_string().contains("at most 6 clock bits"), "{refused}");
    node.define("six", &layout(6)).await.unwrap();
    node.source("six").await.unwrap().try_mint().unwrap();

    // Another program may have defined such a source.
    let pool = Pool { name: "many".into(), slots: 256, group: 128, reuse: Reuse::Recycle };
    let claim = ClaimRequest {
        pool,
        member: node.incarnation().unwrap(),
        owner: String::new(),
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    };
    let refused = node.store().claim(&claim, SystemClock.unix_ms()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
}

#[tokio::test]
async fn users_log_in_and_invalid_logins_are_rejected() {
    let server = Etcd::start();
    for command in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "ids:p@ss"],
        &["role", "add", "ids"],
        &["role", "grant-permission", "ids", "readwrite", "--prefix=true", "/snowmint/"],
        &["user", "grant-role", "ids", "ids"],
        &["user", "add", "other:other"],
        &["auth", "enable"],
    ] {
        let output = server.client().args(command).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
    let url = |user: &str| server.url().replace("://", &format!("://{user}"));
    let store = snowmint_stores::open(&url("ids:p@ss@"), "default").await.unwrap();
    assert!(store.identity().await.is_ok());
    for (user, code) in
        [("", "invalid"), ("ids:wrong@", "invalid"), ("other:other@", "store_permission_denied")]
    {
        let refused = snowmint_stores::open(&url(user), "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), code, "{user}: {refused:?}");
        assert!(!format!("{refused:?}").contains("wrong"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_server_is_known_by_its_certificate() {
    let (server, stranger) = (Etcd::start_with_tls(), Stranger::new());
    let verified = async |authority: &Path| {
        let url = format!("{}?ca={}", server.url(), authority.display());
        snowmint_stores::open(&url, "default").await
    };
    let store = verified(&server.authority()).await.unwrap();
    assert!(store.identity().await.is_ok());

    let refused = verified(&stranger.authority()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
    let refused = verified(Path::new("/nonexistent.pem")).await.unwrap_err();
    assert_eq!(refused.kind().code(), "invalid", "{refused:?}");
    let plain = server.url().replace("etcds:", "etcd:");
    let refused = snowmint_stores::open(&plain, "default").await.unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
}
