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
mod state;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clients::share::Client;
pub(crate) use connection::{EndReason, TrackedConnection};
pub(crate) use guard::{ConnectionGuard, OpenResponse, ReadDeadline};
use snowmint_coord::lock;
pub(crate) use state::{ConnectionTracker, ListenerBounds, ListenerCounts};
use state::{Connections, SWEEP_MS};

/// Most connections that may take their time to leave; beyond, they are cut off. They are open in
/// addition to `ListenerBounds::max`.
const LEAVING_MAX: usize = 16;

impl ConnectionTracker {
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
}
