//! Servers of nothing but a store.
#![allow(dead_code, reason = "each test uses its own share")]

use std::sync::Arc;

use snowmint_client::Settings;
use snowmint_coord::{BootTimer, MemoryStore, Node, NodeSettings, Parts, Store};
use snowmint_server::{Access, Handle};
use tokio::net::TcpListener;

/// Generous: these machines are noisy.
pub(crate) const SETTINGS: Settings = Settings {
    connect_ms: 10_000,
    attempt_ms: 10_000,
    call_ms: 60_000,
    retries_at_once: 100,
    retries_per_second: 100,
};

/// A node that minds a namespace which no test looks at.
pub(crate) async fn idle_node() -> Node {
    let store = MemoryStore::new("nobody").unwrap();
    Node::open(Arc::new(store), NodeSettings::default(), Parts::system()).await.unwrap()
}

/// Any free port.
pub(crate) async fn any() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A server of this node, which offers this store, or none.
pub(crate) fn serve(node: Node, offered: Option<Arc<dyn Store>>, http: TcpListener) -> Handle {
    serve_for(None, node, offered, http)
}

/// The same, for those who show a token.
pub(crate) fn serve_for(
    access: Option<Access>,
    node: Node,
    offered: Option<Arc<dyn Store>>,
    http: TcpListener,
) -> Handle {
    let parts = snowmint_server::Parts {
        node,
        offered,
        timer: Arc::new(BootTimer),
        http: Some(http),
        resp: None,
        access,
        tls: None,
        traces: None,
    };
    snowmint_server::start(snowmint_server::Settings::default(), parts).unwrap()
}
