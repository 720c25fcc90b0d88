//! The ZooKeeper store keeps the contract, on a real server.

use std::sync::Arc;
use std::time::Duration;

use snowmint_coord::{
    ClaimRequest, Error, Lease, Mark, Member, Pool, Preference, Presence, Reuse, Store, random,
};
use snowmint_core::UnixMillis;
use snowmint_testkit::contract;
use snowmint_testkit::servers::Zookeeper;

use crate::opening::{self, Reached};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn zookeeper_keeps_the_contract() {
    let server = Zookeeper::start();
    contract::run(Reached { name: "zookeeper", url: server.url(), own_clock: false }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn opening_zookeeper_makes_a_store_once() {
    let server = Zookeeper::start();
    opening::makes_a_store_once(server.url(), server).await;
}

#[tokio::test]
async fn emptied_zookeeper_tree_is_another_store() {
    let server = Zookeeper::start();
    let empty = async || {
        let url = server.url();
        let hosts = url.strip_prefix("zookeeper://").unwrap();
        let client = zookeeper_client::Client::connect(hosts).await.unwrap();
        // Parents come before their children, so nodes are deleted from last to first.
        let mut nodes = vec!["/snowmint".to_owned()];
        let mut seen = 0;
        while let Some(node) = nodes.get(seen).cloned() {
            let children = client.list_children(&node).await.unwrap();
            nodes.extend(children.iter().map(|child| format!("{node}/{child}")));
            seen += 1;
        }
        for node in nodes.iter().rev() {
            client.delete(node, None).await.unwrap();
        }
    };
    opening::is_another_when_emptied(&server.url(), empty).await;
}

#[tokio::test]
async fn zookeeper_users_have_nodes_of_their_own() {
    let server = Zookeeper::start();
    let url = |user: &str| server.url().replace("://", &format!("://{user}")) + "/deep/down";
    let store = snowmint_stores::open(&url("ids:p@ss@"), "default").await.unwrap();
    assert!(store.identity().await.is_ok());
    for user in ["", "ids:wrong@"] {
        let refused = snowmint_stores::open(&url(user), "default").await.unwrap_err();
        assert_eq!(refused.kind().code(), "store_permission_denied", "{user}: {refused:?}");
        assert!(!format!("{refused:?}").contains("wrong"), "{refused:?}");
    }
}

const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);

async fn joined(store: &Arc<dyn Store>) -> Member {
    let member = Member {
        incarnation: random::incarnation().unwrap(),
        owner: String::new(),
        host: "host".into(),
        process: 1,
        address: String::new(),
    };
    store.join(&member, presence(0), NOW).await.unwrap();
    member
}

fn presence(renewals: u64) -> Presence {
    Presence { sample: NOW, renewals, ttl_ms: 600_000 }
}

async fn claim(store: &Arc<dyn Store>, member: &Member) -> Result<Vec<Lease>, Error> {
    let request = ClaimRequest {
        pool: Pool { name: "only".into(), slots: 1, group: 1, reuse: Reuse::Recycle },
        member: member.incarnation,
        owner: String::new(),
        count: 1,
        preference: Preference::Any,
        supersedes: None,
        mark_at_most: Mark::from(NOW),
        request: random::request().unwrap(),
    };
    store.claim(&request, NOW).await
}

#[tokio::test]
async fn zookeeper_member_is_live_no_longer_than_its_session() {
    let server = Zookeeper::start();
    let open = async || snowmint_stores::open(&server.url(), "default").await.unwrap();
    let (one, other) = (open().await, open().await);
    let (first, second) = (joined(&one).await, joined(&other).await);
    claim(&one, &first).await.unwrap();
    let refused = claim(&other, &second).await.unwrap_err();
    assert_eq!(refused.kind().code(), "pool_full", "{refused:?}");
    one.close().await.unwrap();
    drop(one);

    let lease = opening::at_last(|| claim(&other, &second)).await.remove(0);
    assert_eq!((lease.slot, lease.term.get()), (0, 2));
}

/// Session timeout of a client that gives up a frozen server seconds after the store's client does
/// (its timeout is 10 s), whatever the driver adds to both.
const LONGER_SESSION: Duration = Duration::from_secs(15);

#[tokio::test]
async fn ended_zookeeper_session_is_reopened() {
    let server = Zookeeper::start();
    let store = snowmint_stores::open(&server.url(), "default").await.unwrap();
    // One session shows both as live. Only the first is renewed in the next session.
    let (member, other) = (joined(&store).await, joined(&store).await);
    let url = server.url();
    let connector = zookeeper_client::Client::connector().with_session_timeout(LONGER_SESSION);
    let longer = connector.connect(url.strip_prefix("zookeeper://").unwrap()).await.unwrap();
    longer.sync("/").await.unwrap();
    server.freeze(true);
    opening::until("the client gives up its session", || longer.state().is_terminated()).await;
    server.freeze(false);
    opening::at_last(|| store.renew(member.incarnation, presence(1), NOW)).await;
    // When the server ends the old session, the other member's node goes, and this member's stays.
    opening::at_last(async || {
        store.renew(member.incarnation, presence(2), NOW).await.unwrap();
        let members = store.members(NOW).await.unwrap();
        let is_live = |one: &Member| {
            members.iter().any(|info| info.member.incarnation == one.incarnation && info.live)
        };
        assert!(is_live(&member), "{members:?}");
        if is_live(&other) { Err("the old session has not ended") } else { Ok(()) }
    })
    .await;
}
