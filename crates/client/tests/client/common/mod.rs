//! Servers that offer nothing but a store.
#![allow(dead_code, reason = "each test uses its own share")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use snowmint_client::{ClientDeps as Shown, RemoteStore, Settings};
use snowmint_coord::{
    BootTimer, ManualTimer, MemoryStore, Node, NodeSettings, Platform, Store, Timer, random,
};
use snowmint_server::{Access, Handle};
use snowmint_testkit::servers;
use tokio::net::TcpListener;

/// A folder that is removed with its contents.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let name = random::incarnation().unwrap().to_string();
        let path = std::env::temp_dir().join(format!("snowmint-{name}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the URL of the SQLite store in a folder.
pub(crate) fn sqlite_url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("ids.db").display())
}

/// Long limits: these machines are noisy.
pub(crate) const SETTINGS: Settings = Settings {
    connect_ms: 10_000,
    attempt_ms: 10_000,
    call_ms: 60_000,
    retries_at_once: 100,
    retries_per_second: 100,
};

/// Longest time in milliseconds that counts between two readings of the real clock.
const STEP_MS_MAX: u64 = 20;

/// Returns the timer for a call's limits: its time passes while this process runs, so that a
/// machine that stands still uses up none of it.
pub(crate) fn timer() -> Arc<dyn Timer> {
    let timer = ManualTimer::new(0);
    let passing = timer.clone();
    tokio::spawn(async move {
        let mut looked = BootTimer.elapsed();
        loop {
            BootTimer.sleep_ms(1).await;
            let now = BootTimer.elapsed();
            passing.advance_ms(now.since(looked).min(STEP_MS_MAX));
            looked = now;
        }
    });
    Arc::new(timer)
}

/// Opens the store of the servers of this URL, with that timer.
pub(crate) async fn open(url: &str, settings: Settings) -> snowmint_coord::Result<RemoteStore> {
    let shown = Shown { timer: timer(), ..Shown::default() };
    RemoteStore::open_with(url, "all", settings, shown).await
}

/// Waits for a result that must come soon: the limit is longer than anything takes, even on a busy
/// machine.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it happens before long")
}

/// Returns settings of a node that waits for a store call as long as a busy machine takes.
pub(crate) fn node_settings() -> NodeSettings {
    NodeSettings { store_call_ms: 60_000, ..NodeSettings::default() }
}

/// Returns a node on a namespace that no test checks.
pub(crate) async fn idle_node() -> Node {
    let store = MemoryStore::new("absent").unwrap();
    Node::open(Arc::new(store), NodeSettings::default(), Platform::system()).await.unwrap()
}

/// Binds any free port, which no other process gets while a server that had it is stopped.
pub(crate) async fn any() -> TcpListener {
    loop {
        match TcpListener::bind(("127.0.0.1", servers::free_port())).await {
            Ok(listener) => return listener,
            // Another process was faster.
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Starts a server with this node, which offers this store, or none.
pub(crate) fn serve(node: Node, offered: Option<Arc<dyn Store>>, http: TcpListener) -> Handle {
    serve_for(None, node, offered, http)
}

/// Starts the same server for callers with a token.
pub(crate) fn serve_for(
    access: Option<Access>,
    node: Node,
    offered: Option<Arc<dyn Store>>,
    http: TcpListener,
) -> Handle {
    serve_as(snowmint_server::Settings::default(), access, node, offered, http)
}

/// Starts the same server with these settings.
pub(crate) fn serve_as(
    settings: snowmint_server::Settings,
    access: Option<Access>,
    node: Node,
    offered: Option<Arc<dyn Store>>,
    http: TcpListener,
) -> Handle {
    let parts = snowmint_server::ServerDeps {
        node,
        offered,
        configured: std::collections::BTreeMap::new(),
        timer: Arc::new(BootTimer),
        http: Some(http),
        resp: None,
        access,
        tls: None,
        traces: None,
    };
    snowmint_server::start(settings, parts).unwrap()
}
