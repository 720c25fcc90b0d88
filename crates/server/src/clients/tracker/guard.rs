//! Place of a connection in the tracker of a listener, and its reports to the tracker.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::connection::{EndReason, TrackedConnection};
use super::state::{ConnectionTracker, SWEEP_MS};

/// Place of a connection in the tracker; a drop frees the place.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    tracker: Arc<ConnectionTracker>,
    connection: Arc<TrackedConnection>,
}

/// A response that the client has to read in time; dropped when read.
#[derive(Debug)]
pub(crate) struct ReadDeadline {
    guard: Arc<ConnectionGuard>,
    within_ms: u64,
    deadline_ms: Arc<AtomicU64>,
}

/// A response that counts for its connection; dropped when read, or when not given.
#[derive(Debug)]
pub(crate) struct OpenResponse {
    guard: Arc<ConnectionGuard>,
}

/// A request in progress; dropped when its response begins.
#[derive(Debug)]
pub(crate) struct Busy {
    guard: Arc<ConnectionGuard>,
    is_whole: bool,
}

impl ConnectionGuard {
    pub(super) const fn new(
        tracker: Arc<ConnectionTracker>,
        connection: Arc<TrackedConnection>,
    ) -> Self {
        Self { tracker, connection }
    }

    /// Returns the connection, as the tracker sees it.
    pub(crate) fn connection(&self) -> &Arc<TrackedConnection> {
        &self.connection
    }

    pub(crate) fn tracker(&self) -> &Arc<ConnectionTracker> {
        &self.tracker
    }

    /// Permits the connection its current activity for this long from now.
    pub(crate) fn allow_ms(&self, ms: u64) {
        self.connection.moves(self.tracker.now_ms(), self.in_ms(ms));
    }

    /// Notes that the client reads, without more time for it.
    pub(crate) fn moved(&self) {
        self.connection.moved(self.tracker.now_ms());
    }

    fn in_ms(&self, ms: u64) -> u64 {
        self.tracker.now_ms().saturating_add(ms).saturating_add(SWEEP_MS)
    }

    /// Adds a response that the client has to read within this time, whatever else the connection
    /// does.
    pub(crate) fn add_read_deadline(self: Arc<Self>, within_ms: u64) -> ReadDeadline {
        let deadline_ms = Arc::new(AtomicU64::new(self.in_ms(within_ms)));
        self.connection.add_read_deadline(Arc::clone(&deadline_ms));
        ReadDeadline { guard: self, within_ms, deadline_ms }
    }

    /// Returns whether it has yet to show a token, where tokens are required.
    pub(crate) fn lacks_token(&self) -> bool {
        self.tracker.bounds.token_within_ms.is_some() && !self.connection.is_known()
    }

    /// Adds one of the few unread responses that a connection may have by itself; `None` at the
    /// bound.
    pub(crate) fn opens(self: &Arc<Self>) -> Option<OpenResponse> {
        self.connection.opens().then(|| OpenResponse { guard: Arc::clone(self) })
    }

    /// Begins a request of this connection, which is complete or still misses its body.
    pub(crate) fn works(self: Arc<Self>, is_whole: bool) -> Busy {
        self.connection.begins(is_whole, self.tracker.now_ms());
        Busy { guard: self, is_whole }
    }

    /// Removes the deadline: another limit bounds the current activity.
    pub(crate) fn allow_for_now(&self) {
        self.connection.has_no_deadline();
    }

    /// Counts requests with a response.
    pub(crate) fn responded(&self, requests: u64) {
        self.tracker.requests.fetch_add(requests, Ordering::Relaxed);
    }

    /// Counts a failed request. Each of many at once grows the connection's memory: a client that
    /// continues without a token, where tokens are required, loses the connection.
    pub(crate) fn refused(&self) {
        if self.tracker.bounds.token_within_ms.is_some() && self.connection.is_refused() {
            self.connection.request_end(EndReason::Refused, self.tracker.now_ms());
        }
    }

    /// Waits until the connection is asked to end.
    pub(crate) async fn end_requested(&self) -> EndReason {
        poll_fn(|context| self.connection.poll_end_request(context)).await
    }
}

impl ReadDeadline {
    /// Restarts the time: the client has read a part.
    pub(crate) fn is_read(&self) {
        self.deadline_ms.store(self.guard.in_ms(self.within_ms), Ordering::Relaxed);
    }
}

impl Drop for ReadDeadline {
    fn drop(&mut self) {
        self.guard.connection.remove_read_deadline(&self.deadline_ms);
    }
}

impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.guard.connection.closes();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let ConnectionGuard { tracker, connection } = &*self.guard;
        connection.ends(self.is_whole, tracker.now_ms());
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.tracker.leaves(&self.connection);
    }
}
