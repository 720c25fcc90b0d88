//! State of the tracker of a listener.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use snowmint_coord::Timer;
use snowmint_coord::lock;
use tokio::sync::Notify;

use super::connection::{NEVER, TrackedConnection};
use super::room::Room;

/// Interval of the deadline checks: deadlines are exact to within this.
pub(super) const SWEEP_MS: u64 = 250;

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
    pub(super) bounds: ListenerBounds,
    pub(super) connections: Mutex<Connections>,
    pub(super) timer: Arc<dyn Timer>,
    /// Elapsed time at the last sweep.
    pub(super) now_ms: AtomicU64,
    /// Elapsed time when the server began to stop; [`NEVER`] before.
    pub(super) stopping_ms: AtomicU64,
    /// Signals the first connection after none.
    pub(super) came: Notify,
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Connections that ended to make room.
    pub(super) gave_way: AtomicU64,
    /// Requests with a response; each connection adds its own from time to time.
    pub(super) requests: AtomicU64,
}

/// Taken places.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) entries: HashMap<u64, Arc<TrackedConnection>>,
    /// Number of them that are about to end to make room.
    pub(super) leaving: usize,
    pub(super) room: Room,
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

    pub(super) fn look_at_time(&self) {
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

    pub(super) fn leaves(&self, connection: &TrackedConnection) {
        let mut connections = lock(&self.connections);
        connections.entries.remove(&connection.id);
        if connection.makes_room() {
            connections.leaving = connections.leaving.saturating_sub(1);
        }
    }
}

impl Connections {
    /// Returns the number of connections, without those about to end to make room.
    pub(super) fn staying(&self) -> usize {
        self.entries.len().saturating_sub(self.leaving)
    }
}
