//! A connection's place among all of a listener, and what it says there of itself.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entry::{Entry, Why};
use super::{Roster, SWEEP_MS};

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

/// An answer that counts for its connection; dropped when it was read, or was not given.
#[derive(Debug)]
pub(crate) struct Open {
    ticket: Arc<Ticket>,
}

/// A request in progress; dropped when its answer begins.
#[derive(Debug)]
pub(crate) struct Busy {
    ticket: Arc<Ticket>,
    is_whole: bool,
}

impl Ticket {
    pub(super) const fn new(roster: Arc<Roster>, entry: Arc<Entry>) -> Self {
        Self { roster, entry }
    }

    /// The connection, as others see it.
    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    pub(crate) fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// The connection may go on as it does for this long from now.
    pub(crate) fn allow_ms(&self, ms: u64) {
        self.entry.moves(self.roster.now_ms(), self.in_ms(ms));
    }

    /// The client takes what it is sent, for which it has no more time than before.
    pub(crate) fn moved(&self) {
        self.entry.moved(self.roster.now_ms());
    }

    fn in_ms(&self, ms: u64) -> u64 {
        self.roster.now_ms().saturating_add(ms).saturating_add(SWEEP_MS)
    }

    /// An answer of this connection that has to be read within this time, whatever else goes on.
    pub(crate) fn owes(self: Arc<Self>, within_ms: u64) -> Owed {
        let deadline_ms = Arc::new(AtomicU64::new(self.in_ms(within_ms)));
        self.entry.owes(Arc::clone(&deadline_ms));
        Owed { ticket: self, within_ms, deadline_ms }
    }

    /// Whether it has yet to show a token, where one is asked for.
    pub(crate) fn lacks_token(&self) -> bool {
        self.roster.places.token_within_ms.is_some() && !self.entry.is_known()
    }

    /// An answer that is one of the few that a connection may have unread by itself; none when there are as many.
    pub(crate) fn opens(self: &Arc<Self>) -> Option<Open> {
        self.entry.opens().then(|| Open { ticket: Arc::clone(self) })
    }

    /// A request of this connection is in progress, which has come as a whole or has a body to come.
    pub(crate) fn works(self: Arc<Self>, is_whole: bool) -> Busy {
        self.entry.begins(is_whole, self.roster.now_ms());
        Busy { ticket: self, is_whole }
    }

    /// What the connection does now is bounded otherwise.
    pub(crate) fn allow_for_now(&self) {
        self.entry.has_no_deadline();
    }

    /// Counts requests that were answered.
    pub(crate) fn answered(&self, requests: u64) {
        self.roster.requests.fetch_add(requests, Ordering::Relaxed);
    }

    /// A request was refused. Each of many at once grows what the connection keeps: whoever goes on without a token,
    /// where one is asked for, loses the connection.
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
    /// Something of it was read: the time begins anew.
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
