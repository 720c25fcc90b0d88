//! Tests of the list of all servers, and of their last hour.

use std::net::SocketAddr;
use std::sync::Arc;

use snowmint_coord::{BootTimer, MemoryStore, Node, NodeSettings, Platform, Timer as _};
use tokio::net::{TcpListener, TcpSocket};

use super::common::{Server, in_time, server, server_at, server_of, settings, soon, timer};

/// Opens a node on this store that announces this address, if any.
async fn node_at(store: &MemoryStore, address: Option<SocketAddr>, owner: &str) -> Node {
    let address = address.map(|address| format!("http={address}")).unwrap_or_default();
    let node_settings =
        NodeSettings { builtin: true, address, owner: owner.to_owned(), ..NodeSettings::default() };
    let store = Arc::new(store.handle("test").unwrap());
    Node::open(store, node_settings, Platform::system()).await.unwrap()
}

/// Starts a server that announces its address.
async fn announced(store: &MemoryStore, owner: &str) -> Server {
    let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = node_at(store, Some(http.local_addr().unwrap()), owner).await;
    server_at(http, None, node, settings(), (None, timer())).await
}

async fn servers(server: &Server) -> Vec<serde_json::Value> {
    let response = soon(server.get("/v1/servers")).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["servers"].as_array().unwrap().clone()
}

#[tokio::test]
async fn each_server_lists_all_with_their_own_reports() {
    let store = MemoryStore::new("test").unwrap();
    let (one, two) = (announced(&store, "one").await, announced(&store, "two").await);
    let _program = node_at(&store, None, "program").await;
    assert_eq!(two.get("/v1/ids/default?count=5").await.status, 200);
    let listed = servers(&one).await;
    let of = |owner: &str| listed.iter().find(|server| server["owner"] == owner).unwrap();
    assert_eq!((listed.len(), &listed[0]["own"]), (3, &true.into()), "{listed:?}");
    assert_eq!(of("one")["http"], format!("http://{}", one.http));
    assert_eq!((&of("two")["report"]["ready"], &of("two")["own"]), (&true.into(), &false.into()));
    assert_eq!(of("two")["report"]["issued"], 5);
    assert!(of("program")["report"].is_null() && of("program")["error"].is_null());
    // A forwarded request gets the one server alone: it calls no other.
    let alone = one.send("GET", "/v1/servers", "snowmint-passed-on: 1\r\n", "").await.json();
    assert_eq!(alone["servers"].as_array().map(Vec::len), Some(1), "{alone}");
}

#[tokio::test]
async fn server_that_does_not_respond_is_named_with_the_reason() {
    let store = MemoryStore::new("test").unwrap();
    let one = announced(&store, "one").await;
    // A socket that does not listen rejects connections, and keeps its port from other tests.
    let free = TcpSocket::new_v4().unwrap();
    free.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let _gone = node_at(&store, Some(free.local_addr().unwrap()), "gone").await;
    let listed = servers(&one).await;
    let gone = listed.iter().find(|server| server["owner"] == "gone").unwrap();
    assert!(gone["report"].is_null(), "{gone}");
    assert!(gone["error"].as_str().unwrap().starts_with("server did not respond: "), "{gone}");
}

#[tokio::test]
async fn history_is_sampled_and_asked_of_a_peer() {
    let store = MemoryStore::new("test").unwrap();
    let (one, two) = (announced(&store, "one").await, announced(&store, "two").await);
    let sampled = async |server: &Server, path: &str| loop {
        let history = server.get(path).await.json();
        if history["times_ms"].as_array().is_some_and(|times| !times.is_empty()) {
            return history;
        }
        BootTimer.sleep_ms(1).await;
    };
    assert_eq!(two.get("/v1/ids/default?count=7").await.status, 200);
    let own = in_time(&two.timer, sampled(&two, "/v1/history")).await;
    let sum = |counts: &serde_json::Value| -> u64 {
        counts.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!((sum(&own["ids"]["http"]), sum(&own["sources"]["default"])), (7, 7), "{own}");
    let listed = servers(&one).await;
    let member = listed.iter().find(|server| server["owner"] == "two").unwrap()["member"].clone();
    let path = format!("/v1/history?member={}", member.as_str().unwrap());
    let from_peer = soon(one.get(&path)).await;
    assert_eq!(from_peer.status, 200, "{from_peer:?}");
    let from_peer = from_peer.json();
    assert_eq!(sum(&from_peer["ids"]["http"]), 7, "{from_peer}");
}

#[tokio::test]
async fn history_of_an_unknown_member_is_an_error() {
    let server = server().await;
    for (path, status) in [
        ("/v1/history?member=x", 400),
        ("/v1/history?member=00000000000000000000000000000001", 404),
        ("/v1/history?since=1", 400),
        ("/v1/servers", 200),
    ] {
        assert_eq!(server.get(path).await.status, status, "{path}");
    }
}

/// Also a server that announces no address is in the list.
#[tokio::test]
async fn server_without_a_peer_lists_itself() {
    let node = node_at(&MemoryStore::new("test").unwrap(), None, "").await;
    let listed = servers(&server_of(node, settings()).await).await;
    assert_eq!((listed.len(), &listed[0]["own"]), (1, &true.into()), "{listed:?}");
    assert!(listed[0]["joined"].is_string(), "{listed:?}");
}
