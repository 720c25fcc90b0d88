//! The connections of one listener: how many, who, and until when each may go on as it does.
//!
//! A connection has one deadline, which it moves by a plain store whenever what it does changes. One
//! task looks at all of them a few times a second and ends those that are past it. So ten thousand
//! idle connections cost no timers, and a busy one pays no clock read for its deadlines. While nobody
//! is connected, it rests.
//!
//! When all places are taken, a connection ends for one that comes, at rest if there is any: [`room`] says which.

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

/// How often deadlines are looked at: they are kept to within this.
const SWEEP_MS: u64 = 250;
/// So many connections may take their time to leave; beyond, they are cut off. They are open beside those that may be.
const LEAVING_MAX: usize = 16;

/// Whom a listener has places for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The most connections.
    pub(crate) max: usize,
    /// The key that says so.
    pub(crate) key: &'static str,
    /// How long one may take to show a token; none where no token is asked for.
    pub(crate) token_within_ms: Option<u64>,
}

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct Roster {
    places: Places,
    taken: Mutex<Taken>,
    timer: Arc<dyn Timer>,
    /// Elapsed time at the last sweep.
    now_ms: AtomicU64,
    /// Somebody came while nobody was connected.
    came: Notify,
    accepted: AtomicU64,
    refused: AtomicU64,
    /// Connections that ended for others.
    gave_way: AtomicU64,
    /// Requests answered; each connection adds its own from time to time.
    requests: AtomicU64,
}

/// The places that are taken.
#[derive(Debug, Default)]
struct Taken {
    entries: HashMap<u64, Arc<Entry>>,
    /// How many of them are about to end for others.
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

/// A mutex here guards plain data that is whole after every statement, so a poisoned one is used on.
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

    /// Takes a connection in; none when all places are taken, and none of them is this client's to have.
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

    /// Has one connection end; whether there was any that may for this client.
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

    /// Has some connections end, because the system has no more of what they are made of.
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

    /// Elapsed time, at most a sweep old while somebody is connected.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Everybody connected, in the order in which they came.
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

    /// Ends connections that are past their deadline, for ever.
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
    /// How many are there, without those that are about to end for others.
    fn staying(&self) -> usize {
        self.entries.len().saturating_sub(self.leaving)
    }
}
