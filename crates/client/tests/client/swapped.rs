//! A client whose servers, or whose servers' store, are replaced while it holds numbers.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use snowmint_coord::{MemoryStore, Store};
use snowmint_server::Handle;
use snowmint_testkit::contract::{
    LostWrites, every_verb_is_refused_by_an_older_state, every_verb_is_refused_by_another_store,
};
use snowmint_testkit::proxy::Proxy;
use tokio::runtime::Builder;

use crate::common::{self, Folder, sqlite_url};

/// Starts a server that offers this store.
async fn serve(store: Arc<dyn Store>) -> Handle {
    common::serve(common::idle_node().await, Some(store), common::any().await)
}

fn port(server: &Handle) -> u16 {
    server.http().unwrap().port()
}

/// Opens the client of the server at this port.
async fn through(port: u16) -> Arc<dyn Store> {
    let url = format!("snowmint://127.0.0.1:{port}");
    Arc::new(common::open(&url, common::SETTINGS).await.unwrap())
}

async fn open(url: &str) -> Arc<dyn Store> {
    snowmint_stores::open(url, "all").await.unwrap()
}

#[test]
fn servers_of_another_store_are_rejected_by_every_verb() {
    for other_writes_more in [true, false] {
        // Leads nowhere yet. The proxy has its own runtime, and so must start and end outside any
        // other.
        let proxy = Proxy::start(0);
        Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
            let new = || -> Arc<dyn Store> { Arc::new(MemoryStore::new("all").unwrap()) };
            let other = new();
            let (first, second) = (serve(new()).await, serve(Arc::clone(&other)).await);
            proxy.lead_to(port(&first));
            let store = through(proxy.port()).await;
            let swap = async || proxy.lead_to(port(&second));
            every_verb_is_refused_by_another_store(store, other, swap, other_writes_more).await;
        });
    }
}

/// Folders with a link to the one that the servers' store is in, as after a mount.
struct Linked {
    folder: Folder,
    current: PathBuf,
}

impl Linked {
    fn new() -> Self {
        let folder = Folder::new();
        let linked = Self { current: folder.0.join("current"), folder };
        std::fs::create_dir(linked.at("one")).unwrap();
        symlink(linked.at("one"), &linked.current).unwrap();
        linked
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn leads_to(&self, name: &str) {
        std::fs::remove_file(&self.current).unwrap();
        symlink(self.at(name), &self.current).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn other_file_below_servers_is_rejected_by_every_verb() {
    for other_writes_more in [true, false] {
        let linked = Linked::new();
        std::fs::create_dir(linked.at("two")).unwrap();
        let server = serve(open(&sqlite_url(&linked.current)).await).await;
        let (store, other) =
            (through(port(&server)).await, open(&sqlite_url(&linked.at("two"))).await);
        let swap = async || linked.leads_to("two");
        every_verb_is_refused_by_another_store(store, other, swap, other_writes_more).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn restored_file_below_servers_is_rejected_by_every_verb() {
    for lost in LostWrites::ALL {
        let linked = Linked::new();
        let url = sqlite_url(&linked.current);
        let server = serve(open(&url).await).await;
        every_verb_is_refused_by_an_older_state(
            through(port(&server)).await,
            async || open(&url).await,
            async || {
                // Copied by another process: a process that closes a file releases all its locks on
                // it.
                let (one, copy) = (linked.at("one"), linked.at("copy"));
                let copied = Command::new("cp").arg("-a").args([one, copy]).status().unwrap();
                assert!(copied.success());
            },
            async || linked.leads_to("copy"),
            lost,
        )
        .await;
    }
}
