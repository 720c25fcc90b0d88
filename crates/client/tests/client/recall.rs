//! Knowledge of a program about the servers' store, and later reports of servers about it.

use std::sync::Arc;

use snowmint_client::RemoteStore;
use snowmint_coord::{
    FastForward, History, IdBatch, Incarnation, Mark, Member, MemoryStore, NewDefinition, Node,
    NodeSettings, Platform, Presence, Reason, Recalled, Reserve, SourceSpec, Store,
};
use snowmint_core::UnixMillis;

use crate::common;

const NOW: UnixMillis = UnixMillis::new(1_900_000_000_000);

/// Returns a program's handle, through a server that has seen nothing before.
async fn through_a_server(store: &MemoryStore) -> (RemoteStore, snowmint_server::Handle) {
    through_a_server_on(Arc::new(store.handle("all").unwrap())).await
}

/// Returns a program's handle, through a server with this one.
async fn through_a_server_on(offered: Arc<MemoryStore>) -> (RemoteStore, snowmint_server::Handle) {
    let offered = Some(offered as _);
    let server = common::serve(common::idle_node().await, offered, common::any().await);
    let url = format!("snowmint://127.0.0.1:{}", server.http().unwrap().port());
    (common::open(&url, common::SETTINGS).await.unwrap(), server)
}

fn member() -> Member {
    Member {
        incarnation: Incarnation::new(7),
        owner: String::new(),
        host: "here".into(),
        process: 1,
        address: String::new(),
    }
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
    let member = member();
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

/// The restored store's only server opened it after the loss, so the program alone knows more. Its
/// state is never replaced by that of another history, however far that one counts.
#[tokio::test]
async fn client_keeps_the_state_that_a_restored_store_lacks() {
    for follow in [0, 50] {
        let offered = Arc::new(MemoryStore::new("all").unwrap());
        let (program, _server) = through_a_server_on(Arc::clone(&offered)).await;
        let (member, mut presence) =
            (member(), Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 });
        program.join(&member, presence, NOW).await.unwrap();
        let mut renew = async || {
            presence.renewals += 1;
            program.renew(member.incarnation, presence, NOW).await
        };
        let backup = offered.backup();
        write(&program, 5).await;
        renew().await.unwrap();
        let seen = program.seen().unwrap();
        // The server's handle forgets what it has seen, as a new server's.
        offered.restore(backup);
        write(&offered.handle("all").unwrap(), follow).await;
        for _ in 0..2 {
            for refused in [renew().await, program.identity().await.map(drop)] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.kind().code(), "store_rolled_back", "{follow}: {refused}");
                assert!(refused.to_string().contains("this program"), "{refused}");
            }
            assert_eq!(program.seen().as_ref(), Some(&seen), "{follow}");
            // Neither is a recovery of this namespace, and both count as one.
            let raised = FastForward { values_only: true, ..FastForward::default() };
            offered.handle("all").unwrap().fast_forward(&raised).await.unwrap();
            let other = offered.handle("other").unwrap();
            other.fast_forward(&FastForward::default()).await.unwrap();
        }

        offered.handle("all").unwrap().fast_forward(&FastForward::default()).await.unwrap();
        renew().await.unwrap();
        let recovered = program.seen().unwrap();
        assert_eq!(History::of(&recovered.id).recoveries, 5, "{recovered:?}");
    }
}

/// Each process that begins to write leaves a start, and the store loses nothing by it.
#[tokio::test]
async fn client_follows_the_writes_of_other_processes() {
    let store = MemoryStore::new("all").unwrap();
    let (program, _server) = through_a_server(&store).await;
    let (member, mut presence) = (member(), Presence { sample: NOW, renewals: 1, ttl_ms: 10_000 });
    program.join(&member, presence, NOW).await.unwrap();
    for _ in 0..3 {
        write(&store.handle("all").unwrap(), 3).await;
        presence.renewals += 1;
        program.renew(member.incarnation, presence, NOW).await.unwrap();
        assert_eq!(program.seen().unwrap(), store.handle("all").unwrap().identity().await.unwrap());
    }
}

/// Servers that opened the restored store after the loss would hand out its numbers again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_alone_knows_of_a_loss_stops_minting() {
    let offered = Arc::new(MemoryStore::new("all").unwrap());
    let (remote, _server) = through_a_server_on(Arc::clone(&offered)).await;
    let spec = SourceSpec::from_json(r#"{"kind":"segment","step":{"rule":"fixed","size":100}}"#);
    let new = NewDefinition::of("bills", &spec.unwrap()).unwrap();
    offered.define(&new).await.unwrap();
    let remote = Arc::new(remote);
    let settings = NodeSettings { presence_ttl_ms: 3_000, ..common::node_settings() };
    let program = Node::open(Arc::clone(&remote) as _, settings, Platform::system()).await.unwrap();
    let until = async |is_so: &dyn Fn() -> bool| {
        common::soon(async {
            while !is_so() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    until(&|| program.incarnation().is_some()).await;
    let backup = offered.backup();
    let bills = program.source("bills").await.unwrap();
    bills.mint(1, None, 60_000).await.unwrap();
    let reserved = offered.identity().await.unwrap().writes;
    until(&|| remote.seen().is_some_and(|seen| seen.writes >= reserved)).await;
    assert!(bills.try_mint().is_ok(), "numbers are prefetched");

    offered.restore(backup);
    let is_back = |reason: &Reason| reason.code == "store_rolled_back";
    until(&|| program.readiness().reasons.iter().any(is_back)).await;
    assert!(bills.try_mint().is_err());
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
