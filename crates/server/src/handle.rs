//! Start and stop of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use snowmint_coord::{Node, SourceSpec, Store, Timer};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::access::Access;
use crate::access::hosts::Hosts;
use crate::cluster::peers::{Peers, SILENT_PEERS_MAX};
use crate::config::Settings;
use crate::net::listener::{ConnectionTrackers, ListenerContext};
use crate::net::shutdown::stopping;
use crate::net::tls::Tls;
use crate::observe::live::Live;
use crate::observe::meter::Protocol;
use crate::observe::trace::Traces;
use crate::requests::reading::WaitingRequests;
use crate::service::{Service, probe_peers};
use crate::{grpc, http, port, resp};

/// Parts of a server. Either listener may be absent.
pub struct ServerDeps {
    /// Node that mints.
    pub node: Node,
    /// Store that clients reach over gRPC, normally the node's own. `None`: only the node uses the
    /// store.
    pub offered: Option<Arc<dyn Store>>,
    /// Sources that the configuration defines. They and the built-in ones decide readiness, and a
    /// recovery defines those that the store has lost.
    pub configured: BTreeMap<String, SourceSpec>,
    /// Elapsed time, for limits.
    pub timer: Arc<dyn Timer>,
    /// Listener for HTTP and gRPC.
    pub http: Option<TcpListener>,
    /// Listener for RESP.
    pub resp: Option<TcpListener>,
    /// Tokens and their rights; `None`: every caller may do everything, within the limits.
    pub access: Option<Access>,
    /// Encryption of both listeners; `None`: plain text.
    pub tls: Option<Tls>,
    /// Exporter of request spans; `None`: no spans.
    pub traces: Option<Traces>,
}

impl fmt::Debug for ServerDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDeps").field("http", &self.http).field("resp", &self.resp).finish()
    }
}

/// A running server. Dropping it ends every connection at once; [`Handle::stop`] lets requests in
/// progress finish.
#[derive(Debug)]
pub struct Handle {
    http: Option<SocketAddr>,
    resp: Option<SocketAddr>,
    closing: watch::Sender<bool>,
    service: Service,
    task: JoinHandle<()>,
}

/// Starts a server on the current Tokio runtime.
///
/// The node stays open: close it after [`Handle::stopped`].
///
/// # Errors
/// When a listener has no local address, which the system decides, or a setting is invalid.
pub fn start(settings: Settings, deps: ServerDeps) -> io::Result<Handle> {
    let ServerDeps { node, offered, configured, timer, http, resp, access, tls, traces } = deps;
    let address =
        |listener: &Option<TcpListener>| listener.as_ref().map(TcpListener::local_addr).transpose();
    let (http_address, resp_address) = (address(&http)?, address(&resp)?);

    let (closing, closing_seen) = watch::channel(false);
    let live = Live::new(settings.limits, settings.access_log, traces.clone());
    let ctx = ListenerContext {
        timer,
        closing: closing_seen,
        live: live.clone(),
        tls: tls.clone(),
        trackers: ConnectionTrackers::default(),
    };
    let timer = Arc::clone(&ctx.timer);
    let missed_ms = node.missed_ms();
    let (silent_peers, silent_received) = mpsc::channel(SILENT_PEERS_MAX);
    let peers =
        Peers::new(timer, live.clone(), access.clone(), tls, traces, missed_ms, silent_peers);
    let probing = probe_peers(node.clone(), peers.clone(), silent_received);
    let hosts = Arc::new(Hosts::new(&settings.http.hosts, access.is_some()));
    let requests = WaitingRequests::new(access.is_some());
    let service = Service::new(node, live, ctx.closing.clone(), peers, access);
    service.set_configured(configured);
    let calls = service.for_protocol(Protocol::Grpc);
    let timer = Arc::clone(&ctx.timer);
    let shared = (Arc::clone(&hosts), requests.clone());
    let limits = (&settings.http, settings.compat.cosid.machines_max);
    let grpc = grpc::GrpcState::new(calls, offered, shared, limits, timer)?;
    let looking = grpc.looking();
    let recording = service.clone().record_history();
    let mut listeners = JoinSet::new();
    if let Some(listener) = http {
        let ctx = ctx.clone();
        let compat = http::compat::paths(&service, &hosts, &settings.compat, &settings.http)
            .map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        listeners.spawn(port::serve(
            listener,
            (service.clone(), grpc),
            requests.clone(),
            settings.http,
            (hosts, compat),
            ctx,
        ));
    }
    if let Some(listener) = resp {
        let ctx = ctx.clone();
        let resp_service = (service.for_protocol(Protocol::Resp), requests);
        listeners.spawn(resp::serve(listener, resp_service, settings.resp, ctx));
    }
    let mut stopped_by_handle = ctx.closing;
    let task = tokio::spawn(async move {
        tokio::select! {
            () = stopping(&mut stopped_by_handle) => {}
            () = probing => {}
            () = looking => {}
            () = recording => {}
        }
        while listeners.join_next().await.is_some() {}
    });
    Ok(Handle { http: http_address, resp: resp_address, closing, service, task })
}

impl Handle {
    /// Returns the listen address of HTTP and gRPC.
    #[must_use]
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Returns the listen address of RESP.
    #[must_use]
    pub fn resp(&self) -> Option<SocketAddr> {
        self.resp
    }

    /// Returns the service, for changes while the server runs.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Hands counters and global orders over to the peers before a stop, while the server still
    /// serves: callers of the peers notice nothing. Ends within a few seconds.
    pub async fn hand_over(&self) {
        self.service.hand_over().await;
    }

    /// Begins to stop: accepts no new connections and finishes requests in progress.
    pub fn stop(&self) {
        self.closing.send_replace(true);
    }

    /// Waits until the server has stopped, after [`Handle::stop`]: at most for `limits.stop_max`.
    pub async fn stopped(mut self) {
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "server stopped by an error");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}
