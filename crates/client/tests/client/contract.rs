//! The store behind servers keeps the contract of all stores: real servers, real sockets.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use snowmint_client::{RemoteStore, Settings};
use snowmint_coord::{MemoryClock, MemoryStore, Node, Store, random};
use snowmint_core::UnixMillis;
use snowmint_server::Handle;
use snowmint_testkit::contract::{self, Factory};

use crate::common::{any, idle_node, serve};

/// Factory of stores: two servers for each handle, and a store for each server.
#[async_trait]
trait Stores: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    async fn open(&self, namespace: &str) -> Arc<dyn Store>;
    fn pass_ms(&self, _: u64) {}
}

struct Served<S> {
    stores: S,
    node: Node,
    running: Mutex<Vec<Handle>>,
}

impl<S: Stores> Served<S> {
    async fn new(stores: S) -> Self {
        Self { stores, node: idle_node().await, running: Mutex::default() }
    }
}

#[async_trait]
impl<S: Stores> Factory for Served<S> {
    fn name(&self) -> String {
        format!("servers on {}", self.stores.name())
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        let mut addresses = Vec::new();
        for _ in 0..2 {
            let server =
                serve(self.node.clone(), Some(self.stores.open(namespace).await), any().await);
            addresses.push(server.http().unwrap().to_string());
            self.running.lock().unwrap().push(server);
        }
        let url = format!("snowmint://{}", addresses.join(","));
        // A thousand claims at once queue up on a busy machine.
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

struct Sqlite(PathBuf);

#[async_trait]
impl Stores for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    async fn open(&self, namespace: &str) -> Arc<dyn Store> {
        let url = format!("sqlite:{}", self.0.join("ids.db").display());
        snowmint_stores::open(&url, namespace).await.unwrap()
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_on_memory_keep_the_contract() {
    let clock = MemoryClock::new(UnixMillis::new(1_900_000_000_000));
    let store = MemoryStore::with_clock("all", clock.clone()).unwrap();
    contract::run(Served::new(Memory(store, clock)).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_on_sqlite_keep_the_contract() {
    let name = random::incarnation().unwrap().to_string();
    let folder = std::env::temp_dir().join(format!("snowmint-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    contract::run(Served::new(Sqlite(folder)).await).await;
}
