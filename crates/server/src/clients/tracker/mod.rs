//! Connections of one listener: their number, their clients, and their deadlines.
//!
//! A connection has one deadline, which it moves by a plain store whenever its activity changes.
//! One task checks all of them a few times a second and ends those that are past it. So ten
//! thousand idle connections cost no timers, and a busy one pays no clock read for its deadlines.
//! Without connections, the task sleeps.
//!
//! When all places are taken, a connection ends for a new one, an idle one if there is any:
//! [`room`] decides which.

mod connection;
mod guard;
mod room;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::Timer;
use tokio::sync::Notify;

use crate::clients::share::Client;
use connection::NEVER;
pub(crate) use connection::{EndReason, TrackedConnection};
pub(crate) use guard::{ConnectionGuard, OpenResponse, ReadDeadline};
use room::Room;

/// Interval of the deadline checks: deadlines are exact to within this.
const SWEEP_MS: u64 = 250;
/// Most connections that may take their time to leave; beyond, they are cut off. They are open in
/// addition to `ListenerBounds::max`.
const LEAVING_MAX: usize = 16;

/// Bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerBounds {
    /// Most connections.
    pub(crate) max: usize,
    /// Configuration key of the bound.
    pub(crate) key: &'static str,
    /// Time in which a connection must show a token; `None` where tokens are not required.
    pub(crate) token_within_ms: Option<u64>,
}

/// Connections of one listener.
#[derive(Debug)]
pub(crate) struct ConnectionTracker {
    bounds: ListenerBounds,
    connections: Mutex<Connections>,
    timer: Arc<dyn Timer>,
    /// Elapsed time at the last sweep.
    now_ms: AtomicU64,
    /// Elapsed time when the server began to stop; [`NEVER`] before.
    stopping_ms: AtomicU64,
    /// Signals the first connection after none.
    came: Notify,
    accepted: AtomicU64,
    refused: AtomicU64,
    /// Connections that ended to make room.
    gave_way: AtomicU64,
    /// Requests with a response; each connection adds its own from time to time.
    requests: AtomicU64,
}

/// Taken places.
#[derive(Debug, Default)]
struct Connections {
    entries: HashMap<u64, Arc<TrackedConnection>>,
    /// Number of them that are about to end to make room.
    leaving: usize,
    room: Room,
}

/// Counters of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerCounts {
    pub(crate) connected: usize,
    pub(crate) connections_max: usize,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) gave_way: u64,
    pub(crate) requests: u64,
}

/// Locks a mutex. Those here guard plain data that is whole after every statement, so a poisoned
/// one is still usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConnectionTracker {
    pub(crate) fn new(bounds: ListenerBounds, timer: Arc<dyn Timer>) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            connections: Mutex::default(),
            now_ms: AtomicU64::new(timer.elapsed().get()),
            stopping_ms: AtomicU64::new(NEVER),
            timer,
            came: Notify::new(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            gave_way: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        })
    }

    /// Admits a connection; `None` when all places are taken, and this client may replace none of
    /// them.
    pub(crate) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<ConnectionGuard> {
        let mut connections = lock(&self.connections);
        if connections.entries.is_empty() {
            self.look_at_time();
            self.came.notify_one();
        }
        let client = Client::at(peer.ip());
        if connections.staying() >= self.bounds.max && !self.make_room(&mut connections, &client) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let connected = connections.entries.len();
        connections.room.came(client, connected);
        let id = self.accepted.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let connection = Arc::new(TrackedConnection::new(id, peer, self.now_ms()));
        connections.entries.insert(id, Arc::clone(&connection));
        Some(ConnectionGuard::new(Arc::clone(self), connection))
    }

    /// Asks one connection to end; returns whether any may end for this client.
    fn make_room(&self, connections: &mut Connections, client: &Client) -> bool {
        let now_ms = self.now_ms();
        let Connections { entries, leaving, room } = connections;
        let Some(connection) = room.make(entries, client, now_ms) else { return false };
        connection.request_end(EndReason::Room, now_ms);
        if *leaving >= LEAVING_MAX {
            connection.end();
        }
        *leaving = leaving.saturating_add(1);
        if self.gave_way.fetch_add(1, Ordering::Relaxed) == 0 {
            let ListenerBounds { max, key, .. } = self.bounds;
            tracing::warn!(
                key,
                max,
                "connection limit reached; closing idle connections for new ones"
            );
        }
        true
    }

    /// Asks some connections to end, because the system has no resources for more.
    pub(crate) fn give_way(&self) {
        let mut connections = lock(&self.connections);
        for _ in 0..LEAVING_MAX {
            if !self.make_room(&mut connections, &Client::Own) {
                return;
            }
        }
    }

    fn look_at_time(&self) {
        self.now_ms.store(self.timer.elapsed().get(), Ordering::Relaxed);
    }

    /// Returns the elapsed time, at most a sweep old while any connection is open.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Returns all connections, in the order of their arrival.
    pub(crate) fn entries(&self) -> Vec<Arc<TrackedConnection>> {
        let mut entries: Vec<_> = lock(&self.connections).entries.values().cloned().collect();
        entries.sort_unstable_by_key(|connection| connection.id);
        entries
    }

    pub(crate) fn counts(&self) -> ListenerCounts {
        ListenerCounts {
            connected: lock(&self.connections).entries.len(),
            connections_max: self.bounds.max,
            accepted: self.accepted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            gave_way: self.gave_way.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
        }
    }

    /// Begins a stop: connections whose clients do not read then end soon.
    pub(crate) fn stops(&self) {
        self.stopping_ms.store(self.timer.elapsed().get(), Ordering::Relaxed);
    }

    /// Ends connections that are past their deadline, forever.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            let is_empty = lock(&self.connections).entries.is_empty();
            if is_empty {
                self.came.notified().await;
            }
            self.timer.sleep_ms(SWEEP_MS).await;
            self.look_at_time();
            let now_ms = self.now_ms();
            let stopping_ms = self.stopping_ms.load(Ordering::Relaxed);
            for connection in lock(&self.connections).entries.values() {
                if connection.is_late(now_ms) || connection.is_unread(now_ms, stopping_ms) {
                    tracing::debug!(peer = %connection.peer, "connection past its time limit, closed");
                    connection.end();
                } else if let Some(within_ms) = self.bounds.token_within_ms
                    && connection.lacks_token(now_ms, within_ms)
                {
                    connection.request_end(EndReason::NoToken, now_ms);
                }
            }
        }
    }

    fn leaves(&self, connection: &TrackedConnection) {
        let mut connections = lock(&self.connections);
        connections.entries.remove(&connection.id);
        if connection.makes_room() {
            connections.leaving = connections.leaving.saturating_sub(1);
        }
    }
}

impl Connections {
    /// Returns the number of connections, without those about to end to make room.
    fn staying(&self) -> usize {
        self.entries.len().saturating_sub(self.leaving)
    }
}
