//! Accepts connections, up to a limit.

use std::io;
use std::sync::{Arc, Mutex};

use snowmint_coord::{Timer, lock, within};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clients::tracker::{ConnectionGuard, ConnectionTracker};
use crate::net::shutdown::stopping;
use crate::net::tls::Tls;
use crate::observe::live::Live;

/// Wait before the next `accept` when the system has no file descriptors or memory left.
const EXHAUSTED_WAIT_MS: u64 = 100;

/// Context of a listener, apart from its protocol.
#[derive(Clone, Debug)]
pub(crate) struct ListenerContext {
    pub(crate) timer: Arc<dyn Timer>,
    /// Becomes true when the server stops.
    pub(crate) closing: watch::Receiver<bool>,
    /// Source of `limits.stop_max`, the time that connections get to finish when the server stops.
    pub(crate) live: Live,
    /// Encryption of connections; `None`: plain text.
    pub(crate) tls: Option<Tls>,
    /// Connections of all listeners, which share the file descriptors and the memory of the
    /// process.
    pub(crate) trackers: ConnectionTrackers,
}

/// Connections of all listeners. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTrackers(Arc<Mutex<Vec<Arc<ConnectionTracker>>>>);

impl ConnectionTrackers {
    fn add(&self, tracker: &Arc<ConnectionTracker>) {
        lock(&self.0).push(Arc::clone(tracker));
    }

    /// Ends some connections of the listener that has most, idle ones first.
    fn give_way(&self) {
        let most = lock(&self.0).iter().max_by_key(|tracker| tracker.counts().connected).cloned();
        if let Some(most) = most {
            most.give_way();
        }
    }
}

/// Serves connections until the server stops; then lets them finish, for a bounded time. A
/// connection with a client that does not read ends earlier.
///
/// `rejection` is the message that a connection beyond the limit gets.
pub(crate) async fn serve<F>(
    listener: TcpListener,
    tracker: Arc<ConnectionTracker>,
    ctx: ListenerContext,
    rejection: &'static [u8],
    converse: impl Fn(TcpStream, ConnectionGuard) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let ListenerContext { timer, mut closing, live, trackers, .. } = ctx;
    trackers.add(&tracker);
    let mut connections = JoinSet::new();
    let mut sweeper = JoinSet::new();
    sweeper.spawn(Arc::clone(&tracker).sweep());
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => match tracker.admit(peer) {
                    Some(guard) => {
                        if let Err(error) = stream.set_nodelay(true) {
                            tracing::debug!(%peer, %error, "TCP_NODELAY not set");
                        }
                        // Names the task that ends when a deadline passes.
                        let connection = Arc::clone(guard.connection());
                        connection.set_task(connections.spawn(converse(stream, guard)));
                    }
                    None => refuse(&stream, rejection),
                },
                Err(error) => not_accepted(&error, &trackers, timer.as_ref()).await,
            },
            Some(_) = connections.join_next() => {}
            () = stopping(&mut closing) => break,
        }
    }
    drop(listener);
    tracker.stops();
    let stop_ms = live.limit(|limits| limits.stop_max.ms());
    let finished = async { while connections.join_next().await.is_some() {} };
    if within(&*timer, stop_ms, finished).await.is_none() {
        tracing::warn!(
            connections = tracker.counts().connected,
            "closed with requests in progress"
        );
    }
}

/// Sends a rejected connection the reason. It gets no memory and no time: bytes that the socket
/// does not take immediately are lost.
fn refuse(stream: &TcpStream, rejection: &[u8]) {
    let _ = stream.try_write(rejection);
}

async fn not_accepted(error: &io::Error, trackers: &ConnectionTrackers, timer: &dyn Timer) {
    // These errors concern the one connection, which has closed already.
    if matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    ) {
        return;
    }
    tracing::warn!(%error, "failed to accept a connection; retrying in {EXHAUSTED_WAIT_MS} ms");
    trackers.give_way();
    timer.sleep_ms(EXHAUSTED_WAIT_MS).await;
}
