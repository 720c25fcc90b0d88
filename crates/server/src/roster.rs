//! The connections of one listener: how many, who, and until when each may go on as it does.
//!
//! A connection has one deadline, which it moves by a plain store whenever what it does changes. One
//! task looks at all of them a few times a second and ends those that are past it. So ten thousand
//! idle connections cost no timers, and a busy one pays no clock read for its deadlines. While nobody
//! is connected, it rests.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use snowmint_coord::Timer;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// How often deadlines are looked at: they are kept to within this.
const SWEEP_MS: u64 = 250;

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct Roster {
    connections_max: usize,
    entries: Mutex<HashMap<u64, Arc<Entry>>>,
    timer: Arc<dyn Timer>,
    /// Elapsed time at the last sweep.
    now_ms: AtomicU64,
    /// Somebody came while nobody was connected.
    came: Notify,
    accepted: AtomicU64,
    refused: AtomicU64,
    /// Requests answered; each connection adds its own from time to time.
    requests: AtomicU64,
}

/// A connection, as others see it.
pub(crate) struct Entry {
    /// Counts connections from 1, as Redis does.
    pub(crate) id: u64,
    /// Who is at the other end.
    pub(crate) peer: SocketAddr,
    /// When it began, in elapsed time.
    pub(crate) since_ms: u64,
    /// What the client calls itself.
    pub(crate) label: Mutex<Label>,
    deadline_ms: AtomicU64,
    /// The deadlines of answers that have to be read.
    owed: Mutex<Vec<Arc<AtomicU64>>>,
    task: OnceLock<AbortHandle>,
}

/// What a client says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// `CLIENT SETNAME`.
    pub(crate) name: String,
    /// `CLIENT SETINFO lib-name`.
    pub(crate) library: String,
    /// `CLIENT SETINFO lib-ver`.
    pub(crate) library_version: String,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).field("peer", &self.peer).finish()
    }
}

/// A connection's place in the roster; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Ticket {
    roster: Arc<Roster>,
    entry: Arc<Entry>,
}

/// An answer that has to be read in time; dropped when it was.
#[derive(Debug)]
pub(crate) struct Owed {
    ticket: Arc<Ticket>,
    within_ms: u64,
    deadline_ms: Arc<AtomicU64>,
}

/// Counters of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) connected: usize,
    pub(crate) connections_max: usize,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) requests: u64,
}

/// A mutex here guards plain data that is whole after every statement, so a poisoned one is used on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Roster {
    pub(crate) fn new(connections_max: usize, timer: Arc<dyn Timer>) -> Arc<Self> {
        Arc::new(Self {
            connections_max,
            entries: Mutex::default(),
            now_ms: AtomicU64::new(timer.elapsed().get()),
            timer,
            came: Notify::new(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        })
    }

    /// Takes a connection in; none when there are as many as may be.
    pub(crate) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Ticket> {
        let mut entries = lock(&self.entries);
        if entries.len() >= self.connections_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        if entries.is_empty() {
            self.look_at_time();
            self.came.notify_one();
        }
        let entry = Arc::new(Entry {
            id: self.accepted.fetch_add(1, Ordering::Relaxed).saturating_add(1),
            peer,
            since_ms: self.now_ms(),
            label: Mutex::default(),
            deadline_ms: AtomicU64::new(u64::MAX),
            owed: Mutex::default(),
            task: OnceLock::new(),
        });
        entries.insert(entry.id, Arc::clone(&entry));
        Some(Ticket { roster: Arc::clone(self), entry })
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
        let mut entries: Vec<_> = lock(&self.entries).values().cloned().collect();
        entries.sort_unstable_by_key(|entry| entry.id);
        entries
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            connected: lock(&self.entries).len(),
            connections_max: self.connections_max,
            accepted: self.accepted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
        }
    }

    /// Ends connections that are past their deadline, for ever.
    pub(crate) async fn sweep(self: Arc<Self>) {
        loop {
            let nobody = lock(&self.entries).is_empty();
            if nobody {
                self.came.notified().await;
            }
            self.timer.sleep_ms(SWEEP_MS).await;
            self.look_at_time();
            let now_ms = self.now_ms();
            for entry in lock(&self.entries).values() {
                if entry.is_late(now_ms)
                    && let Some(task) = entry.task.get()
                {
                    tracing::debug!(peer = %entry.peer, "connection past its time limit, closed");
                    task.abort();
                }
            }
        }
    }
}

impl Ticket {
    /// Names the task that is ended when the deadline passes.
    pub(crate) fn runs_as(&self) -> Arc<Entry> {
        Arc::clone(&self.entry)
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    pub(crate) fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// The connection may go on as it does for this long from now.
    pub(crate) fn allow_ms(&self, ms: u64) {
        self.entry.deadline_ms.store(self.in_ms(ms), Ordering::Relaxed);
    }

    fn in_ms(&self, ms: u64) -> u64 {
        self.roster.now_ms().saturating_add(ms).saturating_add(SWEEP_MS)
    }

    /// An answer of this connection that has to be read within this time, whatever else goes on.
    pub(crate) fn owes(self: Arc<Self>, within_ms: u64) -> Owed {
        let deadline_ms = Arc::new(AtomicU64::new(self.in_ms(within_ms)));
        lock(&self.entry.owed).push(Arc::clone(&deadline_ms));
        Owed { ticket: self, within_ms, deadline_ms }
    }

    /// What the connection does now is bounded otherwise.
    pub(crate) fn allow_for_now(&self) {
        self.entry.deadline_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// Counts requests that were answered.
    pub(crate) fn answered(&self, requests: u64) {
        self.roster.requests.fetch_add(requests, Ordering::Relaxed);
    }
}

impl Owed {
    /// Something of it was read: the time begins anew.
    pub(crate) fn is_read(&self) {
        self.deadline_ms.store(self.ticket.in_ms(self.within_ms), Ordering::Relaxed);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        lock(&self.ticket.entry.owed).retain(|other| !Arc::ptr_eq(other, &self.deadline_ms));
    }
}

impl Entry {
    fn is_late(&self, now_ms: u64) -> bool {
        let is_past = |deadline_ms: &AtomicU64| deadline_ms.load(Ordering::Relaxed) <= now_ms;
        is_past(&self.deadline_ms) || lock(&self.owed).iter().any(|owed| is_past(owed))
    }

    /// The task that serves this connection.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        // Set once, right after the task was made.
        let _ = self.task.set(task);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.roster.entries).remove(&self.entry.id);
    }
}
