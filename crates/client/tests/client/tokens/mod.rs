//! Programs with different tokens: the rights and the limits of each.

mod bounds;
mod counts;
mod rates;
mod rights;

use std::sync::Arc;

use snowmint_client::{ClientDeps as Shown, Credentials, RemoteStore, Settings};
use snowmint_coord::{BootTimer, MemoryStore, Node, NodeSettings, Platform, SourceSpec};
use snowmint_server::{
    Access, Handle, Settings as ServerSettings, TokenHash, TokenSettings, Tokens,
};

use crate::common::{self, SETTINGS};

pub(crate) const ORDERS: &str = "orders-0123456789abcdef0123456789";
pub(crate) const BILLS: &str = "bills-0123456789abcdef0123456789";
pub(crate) const ADMIN: &str = "admin-0123456789abcdef0123456789";
pub(crate) const BUILDER: &str = "builder-0123456789abcdef0123456789";
/// TTL that is longer than any test, so that no member expires on a busy machine.
pub(crate) const TTL_MS: u64 = 600_000;
pub(crate) const ENOUGH: &str = "10000000/s *";

pub(crate) fn access(rate: &str) -> Access {
    let token = |name: &str, secret: &str, grant: &str, rate: &str| {
        let token = TokenSettings {
            hashes: vec![TokenHash::of(secret.as_bytes()).to_string()],
            grants: vec![grant.to_owned()],
            rates: vec![rate.to_owned()],
            ..TokenSettings::default()
        };
        (name.to_owned(), token)
    };
    let tokens = [
        token("orders", ORDERS, "mint,reserve,join *", ENOUGH),
        token("bills", BILLS, "mint,reserve,join bills*", rate),
        token("builder", BUILDER, "join,admin build-*", rate),
        token("admin", ADMIN, "mint,reserve,join,decode,admin *", ENOUGH),
    ];
    let tokens = Tokens { tokens: tokens.into(), peers: Vec::new(), open_metrics: false };
    Access::new("all", &tokens, Arc::new(BootTimer)).unwrap()
}

/// Starts a server on this store, which mints, too.
pub(crate) async fn serve(store: &MemoryStore, rate: &str) -> (Handle, Node) {
    serve_as(ServerSettings::default(), store, rate).await
}

/// Starts the same server with these settings.
pub(crate) async fn serve_as(
    of_server: ServerSettings,
    store: &MemoryStore,
    rate: &str,
) -> (Handle, Node) {
    let http = common::any().await;
    let address = format!("http={}", http.local_addr().unwrap());
    let settings =
        NodeSettings { address, builtin: true, presence_ttl_ms: TTL_MS, ..common::node_settings() };
    let own = Arc::new(store.handle("all").unwrap());
    let node = Node::open(own, settings, Platform::system()).await.unwrap();
    let offered = Some(Arc::clone(node.store()));
    (common::serve_as(of_server, Some(access(rate)), node.clone(), offered, http), node)
}

pub(crate) async fn remote(token: &str, servers: &[&Handle]) -> Arc<RemoteStore> {
    remote_with(token, servers, SETTINGS).await
}

pub(crate) async fn remote_with(
    token: &str,
    servers: &[&Handle],
    settings: Settings,
) -> Arc<RemoteStore> {
    let addresses: Vec<_> =
        servers.iter().map(|server| server.http().unwrap().to_string()).collect();
    let url = format!("snowmint://{}", addresses.join(","));
    let credentials = Credentials::new().token(token);
    let shown = Shown { credentials, timer: common::timer() };
    Arc::new(RemoteStore::open_with(&url, "all", settings, shown).await.unwrap())
}

pub(crate) async fn define(node: &Node, name: &str, spec: &str) {
    node.define(name, &SourceSpec::from_json(spec).unwrap()).await.unwrap();
}
