//! A connection's place in the roster of a listener, and its reports to the roster.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{Entry, Why};
use super::{Roster, SWEEP_MS};

/// A connection's place in the roster; a drop frees the place.
#[derive(Debug)]
pub(crate) struct Ticket {
    roster: Arc<Roster>,
    entry: Arc<Entry>,
}

/// A response that the client has to read in time; dropped when read.
#[derive(Debug)]
pub(crate) struct Owed {
    ticket: Arc<Ticket>,
    within_ms: u64,
    deadline_ms: Arc<AtomicU64>,
}

/// A response that counts for its connection; dropped when read, or when not given.
#[derive(Debug)]
pub(crate) struct Open {
    ticket: Arc<Ticket>,
}

/// A request in progress; dropped when its response begins.
#[derive(Debug)]
pub(crate) struct Busy {
    ticket: Arc<Ticket>,
    is_whole: bool,
}

impl Ticket {
    pub(super) const fn new(roster: Arc<Roster>, entry: Arc<Entry>) -> Self {
        Self { roster, entry }
    }

    /// Returns the connection, as the roster sees it.
    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    pub(crate) fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// Permits the connection its current activity for this long from now.
    pub(crate) fn allow_ms(&self, ms: u64) {
        self.entry.moves(self.roster.now_ms(), self.in_ms(ms));
    }

    /// Notes that the client reads, without more time for it.
    pub(crate) fn moved(&self) {
        self.entry.moved(self.roster.now_ms());
    }

    fn in_ms(&self, ms: u64) -> u64 {
        self.roster.now_ms().saturating_add(ms).saturating_add(SWEEP_MS)
    }

    /// Adds a response that the client has to read within this time, whatever else the connection
    /// does.
    pub(crate) fn owes(self: Arc<Self>, within_ms: u64) -> Owed {
        let deadline_ms = Arc::new(AtomicU64::new(self.in_ms(within_ms)));
        self.entry.owes(Arc::clone(&deadline_ms));
        Owed { ticket: self, within_ms, deadline_ms }
    }

    /// Returns whether it has yet to show a token, where tokens are required.
    pub(crate) fn lacks_token(&self) -> bool {
        self.roster.places.token_within_ms.is_some() && !self.entry.is_known()
    }

    /// Adds one of the few unread responses that a connection may have by itself; `None` at the
    /// bound.
    pub(crate) fn opens(self: &Arc<Self>) -> Option<Open> {
        self.entry.opens().then(|| Open { ticket: Arc::clone(self) })
    }

    /// Begins a request of this connection, which is complete or still misses its body.
    pub(crate) fn works(self: Arc<Self>, is_whole: bool) -> Busy {
        self.entry.begins(is_whole, self.roster.now_ms());
        Busy { ticket: self, is_whole }
    }

    /// Removes the deadline: another limit bounds the current activity.
    pub(crate) fn allow_for_now(&self) {
        self.entry.has_no_deadline();
    }

    /// Counts requests with a response.
    pub(crate) fn answered(&self, requests: u64) {
        self.roster.requests.fetch_add(requests, Ordering::Relaxed);
    }

    /// Counts a failed request. Each of many at once grows the connection's memory: a client that
    /// continues without a token, where tokens are required, loses the connection.
    pub(crate) fn refused(&self) {
        if self.roster.places.token_within_ms.is_some() && self.entry.is_refused() {
            self.entry.ask_to_leave(Why::Refused, self.roster.now_ms());
        }
    }

    /// Waits until the connection is asked to end.
    pub(crate) async fn asked_to_leave(&self) -> Why {
        poll_fn(|context| self.entry.poll_leave(context)).await
    }
}

impl Owed {
    /// Restarts the time: the client has read a part.
    pub(crate) fn is_read(&self) {
        self.deadline_ms.store(self.ticket.in_ms(self.within_ms), Ordering::Relaxed);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.ticket.entry.owes_no_more(&self.deadline_ms);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.ticket.entry.closes();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Ticket { roster, entry } = &*self.ticket;
        entry.ends(self.is_whole, roster.now_ms());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.roster.leaves(&self.entry);
    }
}
