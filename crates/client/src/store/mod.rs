//! The store of servers: each verb is one call.

mod aliases;
mod ask;
mod clock;
mod observe;
mod open_params;
mod secondary_store;
mod seen;
mod verbs;

use std::sync::Arc;

use snowmint_coord::catalog::check_name;
use snowmint_coord::{BoxFuture, Capabilities, Result};
use snowmint_store_rpc::{Codec as _, Description, Malformed};

use crate::servers::{Call, Servers};
use crate::servers_url::ServersUrl;
use crate::settings::{ClientDeps, Settings};
use aliases::IncarnationAliases;
use open_params::OpenParams;
use seen::NewestIdentity;

/// One namespace of the store that servers share, reached through any server that responds.
///
/// Its [`capabilities`](snowmint_coord::Store::capabilities) are those of the servers' store.
/// Closing it closes this handle and its connections, and nothing at the servers.
#[derive(Debug)]
pub struct RemoteStore {
    servers: Arc<Servers>,
    namespace: String,
    capabilities: Capabilities,
    group_max: u32,
    warnings: Vec<String>,
    aliases: IncarnationAliases,
    seen: NewestIdentity,
    /// Parameters of opening; `None` for a secondary store, which leads no further.
    open_params: Option<OpenParams>,
}

impl RemoteStore {
    /// Opens the store behind the servers of `snowmint://HOST:PORT,HOST:PORT`, or with TLS
    /// `snowmints://`. Needs a Tokio runtime; the store must be used within one, too.
    ///
    /// # Errors
    /// - `Invalid` for a bad URL or namespace.
    /// - `Conflict` when the servers serve another namespace.
    /// - `StoreMismatch` when two of the servers that respond within [`Settings::connect_ms`] have
    ///   different stores.
    /// - `Unavailable` when no server, or no trusted server, responds in time.
    /// - Any error of the servers' store.
    pub fn open<'a>(
        url: &'a str,
        namespace: &'a str,
        settings: Settings,
    ) -> BoxFuture<'a, Result<Self>> {
        Self::open_with(url, namespace, settings, ClientDeps::default())
    }

    /// Opens the store with the caller's dependencies.
    ///
    /// # Errors
    /// The same as of [`RemoteStore::open`].
    pub fn open_with<'a>(
        url: &'a str,
        namespace: &'a str,
        settings: Settings,
        deps: ClientDeps,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            check_name("namespace", namespace)?;
            let open_params =
                OpenParams { url: url.into(), namespace: namespace.into(), settings, deps };
            let own = Self::open_at(&open_params, "").await?;
            Ok(Self { open_params: Some(open_params), ..own })
        })
    }

    /// Opens the servers' primary store, or the secondary store of this name.
    async fn open_at(open_params: &OpenParams, secondary_store: &str) -> Result<Self> {
        let OpenParams { url, namespace, settings, deps } = open_params;
        let settings = *settings;
        let named = (namespace.as_str(), secondary_store);
        let servers = Servers::new(ServersUrl::parse(url)?, named, settings, deps.clone())?;
        let Settings { call_ms: within_ms, attempt_ms, .. } = settings;
        let call = Call { again: true, within_ms, attempt_ms };
        let described = servers.ask(call, |link| async move { Ok(link.described) });
        let (described, compared) = tokio::join!(described, servers.compare());
        compared?;
        let described = Description::read((*described?).clone()).map_err(Malformed::of_response)?;
        Ok(Self {
            servers: Arc::new(servers),
            namespace: namespace.to_owned(),
            capabilities: described.capabilities,
            group_max: described.group_max,
            warnings: described.warnings,
            aliases: IncarnationAliases::default(),
            seen: NewestIdentity::default(),
            open_params: None,
        })
    }
}
