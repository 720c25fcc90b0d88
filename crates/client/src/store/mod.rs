//! The store of servers: each verb is one call.

mod beside;
mod clock;
mod names;
mod read;
mod seen;
mod verbs;
mod write;

use std::sync::Arc;

use snowmint_coord::catalog::check_name;
use snowmint_coord::{
    BootTimer, BoxFuture, Capabilities, ClockOf, ErrorKind, PresenceBy, Result, Timer, Verb,
};

use crate::credentials::Credentials;
use crate::failed::{Failed, of_store};
use crate::place::Place;
use crate::refusal::{Fallible, refused};
use crate::servers::{Call, Servers};
use crate::settings::Settings;
use beside::Way;
use names::Names;
use seen::Seen;

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
    names: Names,
    seen: Seen,
    /// Parameters of opening; `None` for a secondary store, which leads no further.
    way: Option<Way>,
}

/// Dependencies of a store of servers besides its settings.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Trusted certificates and presented credentials.
    pub credentials: Credentials,
    /// Source of elapsed time.
    pub timer: Arc<dyn Timer>,
}

impl Default for Parts {
    /// Uses the system's time and CAs, and presents nothing.
    fn default() -> Self {
        Self { credentials: Credentials::new(), timer: Arc::new(BootTimer) }
    }
}

/// A verb, and the path of the gRPC method that calls it.
#[derive(Clone, Copy, Debug)]
struct Method {
    verb: Verb,
    path: &'static str,
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
        Self::open_with(url, namespace, settings, Parts::default())
    }

    /// Opens the store with the caller's dependencies.
    ///
    /// # Errors
    /// The same as of [`RemoteStore::open`].
    pub fn open_with<'a>(
        url: &'a str,
        namespace: &'a str,
        settings: Settings,
        parts: Parts,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            check_name("namespace", namespace)?;
            let way = Way { url: url.into(), namespace: namespace.into(), settings, parts };
            let own = Self::open_at(&way, "").await?;
            Ok(Self { way: Some(way), ..own })
        })
    }

    /// Opens the servers' primary store, or the secondary store of this name.
    async fn open_at(way: &Way, beside: &str) -> Result<Self> {
        let Way { url, namespace, settings, parts } = way;
        let settings = *settings;
        let named = (namespace.as_str(), beside);
        let servers = Servers::new(Place::parse(url)?, named, settings, parts.clone())?;
        let Settings { call_ms: within_ms, attempt_ms, .. } = settings;
        let call = Call { again: true, within_ms, attempt_ms };
        let described = servers.ask(call, |link| async move { Ok(link.described) });
        let (described, compared) = tokio::join!(described, servers.compare());
        compared?;
        let described = described?;
        Ok(Self {
            servers: Arc::new(servers),
            namespace: namespace.to_owned(),
            capabilities: Capabilities {
                clock: if described.has_clock { ClockOf::Store } else { ClockOf::Caller },
                durable_on_reply: described.durable_on_reply,
                safe_over_failover: described.safe_over_failover,
                presence: if described.presence_by_session {
                    PresenceBy::Session
                } else {
                    PresenceBy::Record
                },
            },
            group_max: described.group_max,
            warnings: described.warnings.clone(),
            names: Names::default(),
            seen: Seen::default(),
            way: None,
        })
    }

    /// Sends a verb. `again`: whether a repeat has the same effect, or is recognised.
    async fn ask<Q, A>(&self, method: Method, again: bool, message: Q) -> Result<A>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + Fallible + 'static,
    {
        ask(&self.servers, method, again, message).await
    }
}

async fn ask<Q, A>(servers: &Servers, method: Method, again: bool, message: Q) -> Result<A>
where
    Q: prost::Message + Clone + 'static,
    A: prost::Message + Default + Fallible + 'static,
{
    let Method { verb, path } = method;
    let Settings { call_ms: within_ms, attempt_ms, .. } = *servers.settings();
    let call = Call { again, within_ms, attempt_ms };
    let answer = servers.ask(call, |link| {
        let message = message.clone();
        async move {
            let answer: Result<A, _> = link.ask(path, message).await;
            let mut answer = answer.map_err(|status| of_store(path, &link.address, &status))?;
            let Some(error) = answer.error() else { return Ok(answer) };
            let error = refused(error);
            match error.kind() {
                ErrorKind::Unavailable => Err(Failed::Cut(error)),
                _ => Err(Failed::Refused(error)),
            }
        }
    });
    answer.await.map_err(|error| error.with_verb(verb))
}
