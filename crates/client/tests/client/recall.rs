//! Knowledge of a program about the servers' store, and later reports of servers about it.

use std::sync::Arc;

use snowmint_client::RemoteStore;
use snowmint_coord::{
    FastForward, IdBatch, Incarnation, Mark, Member, MemoryStore, NewDefinition, Node,
    NodeSettings, Platform, Presence, Recalled, Reserve, SourceSpec, Store,
};
use snowmint_core::UnixMillis;

use crate::common;

const NOW: UnixMillis = UnixMillis::new(1_900_000_000_000);

/// Returns a program's handle, through a server that has seen nothing before.
async fn through_a_server(store: &MemoryStore) -> (RemoteStore, snowmint_server::Handle) {
    let offered = Some(Arc::new(store.handle("all").unwrap()) as _);
    let server = common::serve(common::idle_node().await, offered, common::any().await);
    let url = format!("snowmint://127.0.0.1:{}", server.http().unwrap().port());
    (common::open(&url, common::SETTINGS).await.unwrap(), server)
}

async fn write(store: &dyn Store, times: u64) {
    let new = NewDefinition::of("bills", &SourceSpec::default()).unwrap();
    let definition_version = store.define(&new).await.unwrap().version;
    for _ in 0..times {
        let source = new.name.clone();
        let reserve = Reserve { source, length: 1, definition_version, within: None };
        store.reserve(&reserve).await.unwrap();
    }
}

/// The program's journal outranks the first server that it reaches.
#[tokio::test]
async fn client_journal_rejects_another_store() {
    let (own, other) = (MemoryStore::new("all").unwrap(), MemoryStore::new("all").unwrap());
    let known = own.identity().await.unwrap();
    let (program, _server) = through_a_server(&other).await;
    program.list().await.unwrap();
    program.remember(&known);
    let refused = program.list().await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch", "{refused}");
    assert!(refused.to_string().contains("this program's journal"), "{refused}");
}

#[tokio::test]
async fn client_remembers_a_history_but_no_overtaken_count() {
    let store = MemoryStore::new("all").unwrap();
    let (program, _server) = through_a_server(&store).await;
    let member = Member {
        incarnation: Incarnation::new(7),
        owner: String::new(),
        host: "here".into(),
        process: 1,
        address: String::new(),
    };
    let presence = Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 };
    program.join(&member, presence, NOW).await.unwrap();
    let backup = store.backup();
    write(&program, 5).await;
    program.renew(member.incarnation, Presence { renewals: 2, ..presence }, NOW).await.unwrap();
    let seen = program.seen().expect("a server says what it has seen");
    assert_eq!(program.recall("the journal", &seen).await.unwrap(), Recalled::Same);
    // Other processes write another history, and much further.
    store.restore(backup);
    write(&store.handle("all").unwrap(), 50).await;
    let (later, _server) = through_a_server(&store).await;
    assert!(later.identity().await.unwrap().writes > seen.writes);
    let refused = later.recall("the journal", &seen).await.unwrap_err();
    assert_eq!(refused.kind().code(), "store_rolled_back", "{refused}");
    assert!(refused.to_string().contains("the journal"), "{refused}");
    let forward = FastForward { writes_at_least: seen.writes, ..FastForward::default() };
    store.handle("all").unwrap().fast_forward(&forward).await.unwrap();
    let (later, _server) = through_a_server(&store).await;
    assert_eq!(later.recall("the journal", &seen).await.unwrap(), Recalled::Recovered);
    let long = "the journal ".repeat(10);
    assert_eq!(later.recall(&long, &seen).await.unwrap_err().kind().code(), "invalid");
}

/// The restored state contains its member, and only the server was notified of the recovery.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_asleep_in_a_recovery_drops_prefetched_numbers() {
    const WITHIN_MS: u64 = 60_000;
    let store = MemoryStore::new("all").unwrap();
    let http = common::any().await;
    let address = format!("http={}", http.local_addr().unwrap());
    let settings = NodeSettings { address, ..common::node_settings() };
    let own = Arc::new(store.handle("all").unwrap());
    let server_node = Node::open(own, settings, Platform::system()).await.unwrap();
    let server = common::serve(server_node.clone(), Some(Arc::clone(server_node.store())), http);
    let url = format!("snowmint://127.0.0.1:{}", server.http().unwrap().port());
    let remote = Arc::new(common::open(&url, common::SETTINGS).await.unwrap());
    let spec = r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#;
    server_node.define("bills", &SourceSpec::from_json(spec).unwrap()).await.unwrap();
    let program = Node::open(remote, common::node_settings(), Platform::system()).await.unwrap();
    let until = async |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    until(&|| program.incarnation().is_some()).await;
    let backup = store.backup();
    let bills = program.source("bills").await.unwrap();
    let mint = async || match bills.mint(1, None, WITHIN_MS).await.unwrap() {
        IdBatch::Numbers(numbers) => numbers[0],
        IdBatch::Texts(texts) => panic!("{texts:?}"),
    };
    assert_eq!(mint().await, 1);
    let before = program.incarnation();

    store.restore(backup);
    let forward = FastForward {
        segments: vec![("bills".into(), Mark::new(10_000))],
        writes_at_least: 1_000,
        ..FastForward::default()
    };
    store.handle("all").unwrap().fast_forward(&forward).await.unwrap();
    // The server is notified once, by its first call.
    drop(server_node.store().list().await);
    server_node.store().list().await.unwrap();
    let rejoined = || program.incarnation().is_some_and(|now| Some(now) != before);
    until(&rejoined).await;
    assert!(mint().await >= 10_000);
}
