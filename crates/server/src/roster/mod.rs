//! Connections of one listener: their number, their clients, and their deadlines.
//!
//! A connection has one deadline, which it moves by a plain store whenever its activity changes.
//! One task checks all of them a few times a second and ends those that are past it. So ten
//! thousand idle connections cost no timers, and a busy one pays no clock read for its deadlines.
//! Without connections, the task sleeps.
//!
//! When all places are taken, a connection ends for a new one, an idle one if there is any:
//! [`room`] decides which.

mod entry;
mod room;
mod ticket;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::Timer;
use tokio::sync::Notify;

use crate::share::Client;
pub(crate) use entry::{Entry, Why};
use room::Room;
pub(crate) use ticket::{Open, Owed, Ticket};

/// Interval of the deadline checks: deadlines are exact to within this.
const SWEEP_MS: u64 = 250;
/// Most connections that may take their time to leave; beyond, they are cut off. They are open in
/// addition to `Places::max`.
const LEAVING_MAX: usize = 16;

/// Bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// Most connections.
    pub(crate) max: usize,
    /// Configuration key of the bound.
    pub(crate) key: &'static str,
    /// Time in which a connection must show a token; `None` where tokens are not required.
    pub(crate) token_within_ms: Option<u64>,
}

/// Connections of one listener.
#[derive(Debug)]
pub(crate) struct Roster {
    places: Places,
    taken: Mutex<Taken>,
    timer: Arc<dyn Timer>,
    /// Elapsed time at the last sweep.
    now_ms: AtomicU64,
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
struct Taken {
    entries: HashMap<u64, Arc<Entry>>,
    /// Number of them that are about to end to make room.
    leaving: usize,
    room: Room,
}

/// Counters of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
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

impl Roster {
    pub(crate) fn new(places: Places, timer: Arc<dyn Timer>) -> Arc<Self> {
        Arc::new(Self {
            places,
            taken: Mutex::default(),
            now_ms: AtomicU64::new(timer.elapsed().get()),
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
    pub(crate) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Ticket> {
        let mut taken = lock(&self.taken);
        if taken.entries.is_empty() {
            self.look_at_time();
            self.came.notify_one();
        }
        let client = Client::at(peer.ip());
        if taken.staying() >= self.places.max && !self.make_room(&mut taken, &client) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let connected = taken.entries.len();
        taken.room.came(client, connected);
        let id = self.accepted.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let entry = Arc::new(Entry::new(id, peer, self.now_ms()));
        taken.entries.insert(id, Arc::clone(&entry));
        Some(Ticket::new(Arc::clone(self), entry))
    }

    /// Asks one connection to end; returns whether any may end for this client.
    fn make_room(&self, taken: &mut Taken, client: &Client) -> bool {
        let now_ms = self.now_ms();
        let Taken { entries, leaving, room } = taken;
        let Some(entry) = room.make(entries, client, now_ms) else { return false };
        entry.ask_to_leave(Why::Room, now_ms);
        if *leaving >= LEAVING_MAX {
            entry.end();
        }
        *leaving = leaving.saturating_add(1);
        if self.gave_way.fetch_add(1, Ordering::Relaxed) == 0 {
            let Places { max, key, .. } = self.places;
            tracing::warn!(
                key,
                max,
                "all places are taken: connections are closed for others, those at rest first"
            );
        }
        true
    }

    /// Asks some connections to end, because the system has no resources for more.
    pub(crate) fn give_way(&self) {
        let mut taken = lock(&self.taken);
        for _ in 0..LEAVING_MAX {
            if !self.make_room(&mut taken, &Client::Own) {
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
    pub(crate) fn entries(&self) -> Vec<Arc<Entry>> {
        let mut entries: Vec<_> = lock(&self.taken).entries.values().cloned().collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        entries
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            connected: lock(&self.taken).entries.len(),
            connections_max: self.places.max,
            accepted: self.accepted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            gave_way: self.gave_way.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
        }
    }

    /// Ends connections that are past their deadline, forever.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            let nobody = lock(&self.taken).entries.is_empty();
            if nobody {
                self.came.notified().await;
            }
            self.timer.sleep_ms(SWEEP_MS).await;
            self.look_at_time();
            let now_ms = self.now_ms();
            for entry in lock(&self.taken).entries.values() {
                if entry.is_late(now_ms) {
                    tracing::debug!(peer = %entry.peer, "connection past its time limit, closed");
                    entry.end();
                } else if let Some(within_ms) = self.places.token_within_ms
                    && entry.lacks_token(now_ms, within_ms)
                {
                    entry.ask_to_leave(Why::NoToken, now_ms);
                }
            }
        }
    }

    fn leaves(&self, entry: &Entry) {
        let mut taken = lock(&self.taken);
        taken.entries.remove(&entry.id);
        if entry.makes_room() {
            taken.leaving = taken.leaving.saturating_sub(1);
        }
    }
}

impl Taken {
    /// Returns the number of connections, without those about to end to make room.
    fn staying(&self) -> usize {
        self.entries.len().saturating_sub(self.leaving)
    }
}
