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
    BootTimer, BoxFuture, Capabilities, ClockOf, Error, ErrorKind, PresenceBy, Result, Timer,
};

use crate::credentials::Credentials;
use crate::failed::{Failed, of_store};
use crate::place::Place;
use crate::refusal::{Refusable, refused};
use crate::servers::{Call, Servers};
use crate::settings::Settings;
use beside::Way;
use names::Names;
use seen::Seen;

const OPEN: &str = "open store";

/// One namespace of the store that servers share, reached through whichever of them answers.
///
/// It can do what that store can: [`capabilities`](snowmint_coord::Store::capabilities) are the store's.
/// Closing it closes this handle and its connections, and nothing of the servers.
#[derive(Debug)]
pub struct RemoteStore {
    servers: Arc<Servers>,
    namespace: String,
    capabilities: Capabilities,
    group_max: u32,
    cautions: Vec<String>,
    names: Names,
    seen: Seen,
    /// How it was opened; none of a store beside the servers' own, which leads no further.
    way: Option<Way>,
}

/// What a store of servers goes by besides its settings.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Whom it trusts, and what it shows.
    pub credentials: Credentials,
    /// How time passes.
    pub timer: Arc<dyn Timer>,
}

impl Default for Parts {
    /// The system's time and trust, and nothing to show.
    fn default() -> Self {
        Self { credentials: Credentials::new(), timer: Arc::new(BootTimer) }
    }
}

/// A verb on its way: its name and its place.
#[derive(Clone, Copy, Debug)]
struct Verb {
    op: &'static str,
    path: &'static str,
}

impl RemoteStore {
    /// The store behind the servers of `snowmint://HOST:PORT,HOST:PORT`, or with TLS `snowmints://`. Needs
    /// a Tokio runtime, within which it is used, too.
    ///
    /// # Errors
    /// `Invalid` for a bad URL or namespace; `Conflict` when the servers serve another namespace; `OtherStore`
    /// when two of those that answer within [`Settings::connect_ms`] have different stores;
    /// `Unavailable` when none of them answers in time, or none that is trusted; what a server's store says.
    pub fn open<'a>(
        url: &'a str,
        namespace: &'a str,
        settings: Settings,
    ) -> BoxFuture<'a, Result<Self>> {
        Self::open_with(url, namespace, settings, Parts::default())
    }

    /// The same, with parts of one's own.
    ///
    /// # Errors
    /// As [`RemoteStore::open`].
    pub fn open_with<'a>(
        url: &'a str,
        namespace: &'a str,
        settings: Settings,
        parts: Parts,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            check_name("namespace", namespace).map_err(|kind| Error::new(OPEN, kind))?;
            let way = Way { url: url.into(), namespace: namespace.into(), settings, parts };
            let own = Self::open_at(&way, "").await?;
            Ok(Self { way: Some(way), ..own })
        })
    }

    /// The servers' own store, or the one of this name beside it.
    async fn open_at(way: &Way, beside: &str) -> Result<Self> {
        let Way { url, namespace, settings, parts } = way;
        let settings = *settings;
        let named = (namespace.as_str(), beside);
        let servers = Servers::new(Place::parse(url)?, named, settings, parts.clone())?;
        let Settings { call_ms: within_ms, attempt_ms, .. } = settings;
        let call = Call { op: OPEN, again: true, within_ms, attempt_ms };
        let described = servers.ask(call, |link| async move { Ok(link.described) });
        let (described, compared) = tokio::join!(described, servers.compare(OPEN));
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
            cautions: described.cautions.clone(),
            names: Names::default(),
            seen: Seen::default(),
            way: None,
        })
    }

    /// Sends a verb. `again`: whether a repeat is as good as the first, or recognised.
    async fn ask<Q, A>(&self, verb: Verb, again: bool, message: Q) -> Result<A>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + Refusable + 'static,
    {
        ask(&self.servers, verb, again, message).await
    }
}

async fn ask<Q, A>(servers: &Servers, verb: Verb, again: bool, message: Q) -> Result<A>
where
    Q: prost::Message + Clone + 'static,
    A: prost::Message + Default + Refusable + 'static,
{
    let Verb { op, path } = verb;
    let Settings { call_ms: within_ms, attempt_ms, .. } = *servers.settings();
    let call = Call { op, again, within_ms, attempt_ms };
    let answer = servers.ask(call, |link| {
        let message = message.clone();
        async move {
            let answer: Result<A, _> = link.ask(path, message).await;
            let mut answer = answer.map_err(|status| of_store(op, &link.address, &status))?;
            let Some(refusal) = answer.refusal() else { return Ok(answer) };
            let error = refused(op, refusal);
            match error.kind() {
                ErrorKind::Unavailable { .. } => Err(Failed::Cut(error)),
                _ => Err(Failed::Refused(error)),
            }
        }
    });
    answer.await
}
