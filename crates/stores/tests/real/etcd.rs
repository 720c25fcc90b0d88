//! The etcd store keeps the contract, on a real server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use snowmint_coord::{
    ClaimRequest, Mark, Node, NodeSettings, Parts, Pool, Reuse, SourceSpec, Store, Wish,
};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_stores::Settings;
use snowmint_testkit::contract::{self, Factory};
use snowmint_testkit::servers::{Etcd, Stranger};

struct Server(Etcd);

#[async_trait]
impl Factory for Server {
    fn name(&self) -> String {
        "etcd".into()
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        snowmint_stores::open(&self.0.url(), namespace).await.unwrap()
    }

    async fn pass_ms(&self, _ms: u64) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn etcd_keeps_the_contract() {
    contract::run(Server(Etcd::start())).await;
}

#[tokio::test]
async fn a_store_that_is_only_looked_at_is_not_made() {
    let server = Etcd::start();
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
    let server = Etcd::start();
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
async fn a_worker_of_more_clock_values_than_a_transaction_takes_is_refused() {
    let server = Etcd::start();
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    let node = Node::open(store, NodeSettings::default(), Parts::system()).await.unwrap();
    let layout = |clock: u8| {
        let spec =
            format!(r#"{{"layout":"time=41,clock={clock},worker={},sequence=12"}}"#, 10 - clock);
        SourceSpec::from_json(&spec).unwrap()
    };
    let refused = node.define("seven", &layout(7)).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
    assert!(refused.to_string().contains("6 clock bits or fewer"), "{refused}");
    node.define("six", &layout(6)).await.unwrap();
    node.source("six").await.unwrap().try_mint().unwrap();

    // Somebody else may have defined it.
    let pool = Pool { name: "many".into(), slots: 256, group: 128, reuse: Reuse::Recycle };
    let claim = ClaimRequest {
        pool,
        member: node.incarnation().unwrap(),
        owner: String::new(),
        count: 1,
        wish: Wish::Any,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    };
    let refused = node.store().claim(&claim, SystemClock.unix_ms()).await.unwrap_err();
    assert_eq!(refused.kind().code(), "unsupported", "{refused:?}");
}

#[tokio::test]
async fn users_log_in_and_others_are_refused() {
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
    for (user, code) in [("", "invalid"), ("ids:wrong@", "invalid"), ("other:other@", "unwritable")]
    {
        let refused = snowmint_stores::open(&url(user), "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), code, "{user}: {refused:?}");
        assert!(!format!("{refused:?}").contains("wrong"), "{refused:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_in_time() {
    let url = { Etcd::start().url() };
    let opened =
        tokio::time::timeout(Duration::from_secs(60), snowmint_stores::open(&url, "default"));
    let refused = opened.await.unwrap().unwrap_err();
    assert_eq!(refused.kind().code(), "unavailable", "{refused:?}");
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
