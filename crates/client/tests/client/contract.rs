//! The store behind servers keeps the contract of all stores: real servers, real sockets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_client::{RemoteStore, Settings};
use snowmint_coord::{MemoryClock, MemoryStore, Node, Store};
use snowmint_core::UnixMillis;
use snowmint_server::Handle;
use snowmint_testkit::contract::{self, Factory};

use crate::common::{Folder, any, idle_node, serve, sqlite_url};

/// Factory of stores: two servers for each handle, and a store for each server.
#[async_trait]
trait Stores: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    async fn open(&self, namespace: &str) -> Arc<dyn Store>;
    fn pass_ms(&self, _: u64) {}
}

struct Served<S> {
    stores: S,
    /// Node of the servers of each namespace. A node notices a store that became another one, so
    /// the servers of one case must not have the node of another.
    nodes: Mutex<HashMap<String, Node>>,
    running: Mutex<Vec<Handle>>,
}

impl<S: Stores> Served<S> {
    fn new(stores: S) -> Self {
        Self { stores, nodes: Mutex::default(), running: Mutex::default() }
    }

    async fn node(&self, namespace: &str) -> Node {
        let known = self.nodes.lock().unwrap().get(namespace).cloned();
        if let Some(node) = known {
            return node;
        }
        let new = idle_node().await;
        self.nodes.lock().unwrap().entry(namespace.to_owned()).or_insert(new).clone()
    }
}

#[async_trait]
impl<S: Stores> Factory for Served<S> {
    fn name(&self) -> String {
        format!("servers on {}", self.stores.name())
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        let mut addresses = Vec::new();
        let node = self.node(namespace).await;
        for _ in 0..2 {
            let server = serve(node.clone(), Some(self.stores.open(namespace).await), any().await);
            addresses.push(server.http().unwrap().to_string());
            self.running.lock().unwrap().push(server);
        }
        let url = format!("snowmint://{}", addresses.join(","));
        // A hundred claims at once queue up on a busy machine.
        let settings = Settings {
            attempt_ms: 60_000,
            call_ms: 120_000,
            connect_ms: 30_000,
            ..Settings::default()
        };
        Arc::new(RemoteStore::open(&url, namespace, settings).await.unwrap())
    }

    async fn pass_ms(&self, ms: u64) {
        self.stores.pass_ms(ms);
    }
}

struct Memory(MemoryStore, MemoryClock);

#[async_trait]
impl Stores for Memory {
    fn name(&self) -> &'static str {
        "a memory store with a clock of its own"
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        Arc::new(self.0.handle(namespace).unwrap())
    }

    fn pass_ms(&self, ms: u64) {
        self.1.set(self.1.now().saturating_add(ms));
    }
}

struct Sqlite(Folder);

#[async_trait]
impl Stores for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        snowmint_stores::open(&sqlite_url(&self.0.0), namespace).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_on_memory_keep_the_contract() {
    let clock = MemoryClock::new(UnixMillis::new(1_900_000_000_000));
    let store = MemoryStore::with_clock("all", clock.clone()).unwrap();
    contract::run(Served::new(Memory(store, clock))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_on_sqlite_keep_the_contract() {
    contract::run(Served::new(Sqlite(Folder::new()))).await;
}
