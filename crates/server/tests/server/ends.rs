//! Tests of a store in which a source lies below a number that a server has seen issued, while the
//! history is complete: a change by hand leaves no other sign. `/readyz` reports it, and names the
//! source.

use std::path::PathBuf;
use std::sync::Arc;

use snowmint_coord::{
    GiveBack, MemoryStore, Node, NodeSettings, Platform, SourceSpec, Store as _, random,
};
use snowmint_core::{Clock as _, SystemClock};

use super::common::{Server, server_of, settings, soon};

/// Each number is requested, and none is prefetched.
const ONE: &str = r#"{"kind":"segment","step":{"rule":"fixed","size":1}}"#;

/// A directory that is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let number = random::number().unwrap();
        Self(std::env::temp_dir().join(format!("snowmint-server-{number:x}")))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a server on this store, with a journal in the directory, if given.
async fn start(store: &MemoryStore, dir: Option<&Scratch>) -> (Server, Node) {
    let settings_of_node = NodeSettings {
        data_dir: dir.map(|dir| dir.0.clone()),
        waits_for_recovery: true,
        presence_ttl_ms: 300,
        ..NodeSettings::default()
    };
    let open = async || {
        let store = Arc::new(store.handle("test").unwrap());
        Node::open(store, settings_of_node.clone(), Platform::system()).await
    };
    // The previous user of the directory is still closing.
    let node = soon(async {
        loop {
            match open().await {
                Err(error) if error.kind().code() == "locked" => tokio::task::yield_now().await,
                opened => return opened.unwrap(),
            }
        }
    })
    .await;
    (server_of(node.clone(), settings()).await, node)
}

/// Starts the same, and issues the first number of a source.
async fn having_minted(store: &MemoryStore, dir: Option<&Scratch>) -> (Server, Node) {
    let (server, node) = start(store, dir).await;
    node.define("one", &SourceSpec::from_json(ONE).unwrap()).await.unwrap();
    assert_eq!(server.get("/v1/ids/one").await.ids(), [1]);
    (server, node)
}

/// Makes the store forget that its newest number was issued.
async fn set_back(store: &MemoryStore) {
    let row = store.get("one").await.unwrap().segment;
    let (first, last) = (row.floor.get(), row.mark.get() - 1);
    let back = GiveBack { source: "one".into(), first, last, version: row.version };
    store.give_back(&back).await.unwrap();
}

/// Returns why the server cannot mint, once it reports a store rollback.
async fn rollback_reason(server: &Server) -> String {
    soon(async {
        loop {
            let ready = server.get("/readyz").await;
            let readiness = ready.json();
            if readiness["codes"].as_array().unwrap().contains(&"store_rolled_back".into()) {
                assert_eq!(ready.status, 503, "{readiness}");
                return readiness["reasons"].to_string();
            }
        }
    })
    .await
}

#[tokio::test]
async fn start_below_a_journal_end_names_the_source() {
    let (store, dir) = (MemoryStore::new("test").unwrap(), Scratch::new());
    let (server, node) = having_minted(&store, Some(&dir)).await;
    soon(node.close()).await.unwrap();
    drop((server, node));
    set_back(&store).await;
    let (server, _node) = start(&store, Some(&dir)).await;
    let reason = rollback_reason(&server).await;
    assert!(reason.contains(r#"next number of source \"one\" seen by the journal"#), "{reason}");
}

/// No caller requests a number of the source.
#[tokio::test]
async fn rejoin_below_a_seen_end_names_the_source() {
    let store = MemoryStore::new("test").unwrap();
    let (server, node) = having_minted(&store, None).await;
    soon(async { while server.get("/readyz").await.status != 200 {} }).await;
    let member = soon(async {
        loop {
            match node.incarnation() {
                Some(member) => return member,
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    set_back(&store).await;
    store.leave(member, SystemClock.unix_ms()).await.unwrap();
    let reason = rollback_reason(&server).await;
    assert!(reason.contains(r#"next number of source \"one\" seen by this process"#), "{reason}");
}

/// The member stays, and no caller requests a number of the source.
#[tokio::test]
async fn change_under_an_idle_server_names_the_source() {
    let store = MemoryStore::new("test").unwrap();
    let (server, _node) = having_minted(&store, None).await;
    soon(async { while server.get("/readyz").await.status != 200 {} }).await;
    set_back(&store).await;
    let reason = rollback_reason(&server).await;
    assert!(reason.contains(r#"next number of source \"one\""#), "{reason}");
}

#[tokio::test]
async fn reserve_of_issued_numbers_names_the_source() {
    let store = MemoryStore::new("test").unwrap();
    let (server, _node) = having_minted(&store, None).await;
    set_back(&store).await;
    let refused = server.get("/v1/ids/one").await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "store_rolled_back"));
    let reason = rollback_reason(&server).await;
    assert!(reason.contains(r#"next number of source \"one\""#), "{reason}");
}
