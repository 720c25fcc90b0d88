//! A connection, as the tracker sees it: its client, its activity, and its deadline.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::task::AbortHandle;

use crate::clients::share::Client;
use snowmint_coord::lock;

/// Milliseconds that a connection has to end when it is asked to make room.
const LEAVE_MS: u64 = 500;
/// Milliseconds for which a request without its body counts as in progress.
const BODY_AWAITED_MS: u64 = 5_000;
/// Failed requests that a connection may have until it shows a token.
const REFUSED_MAX: u32 = 16;
/// Unread responses that a connection without a token may have by itself.
const OPEN_MAX: u32 = 4;
/// Milliseconds of a stop for which the server may be unable to send a client anything of its
/// responses. The system takes more bytes only once a good part of its buffer is free, so a client
/// that reads very slowly can look like one that reads nothing.
const UNREAD_MS: u64 = 2_000;
/// Value of an absent limit.
pub(super) const NEVER: u64 = u64::MAX;

/// A connection.
pub(crate) struct TrackedConnection {
    /// Number of the connection, from 1, as in Redis.
    pub(crate) id: u64,
    /// Address of the client.
    pub(crate) peer: SocketAddr,
    /// Begin of the connection, in elapsed time.
    pub(crate) since_ms: u64,
    /// Properties that a list of clients shows.
    pub(crate) label: Mutex<Label>,
    /// Time until which it may continue its current activity.
    deadline_ms: AtomicU64,
    /// Time of its last activity.
    moved_ms: AtomicU64,
    /// Client whose share of the places it takes.
    client: Mutex<Client>,
    /// Whether it has shown a token, or a certificate that maps to one.
    is_known: AtomicBool,
    /// Failed requests since it last showed a token.
    refused: AtomicU32,
    /// Responses, unread or pending, to requests from before it showed a token.
    open: AtomicU32,
    /// Requests that the server works on.
    busy: AtomicU32,
    /// Requests whose body is incomplete, or was when they came.
    awaited: AtomicU32,
    /// Time when the first of them came, or when the last one ended: no ping counts here.
    awaited_ms: AtomicU64,
    /// Unsent IDs in small responses.
    unsent: AtomicU32,
    /// Deadlines of responses that the client has to read.
    read_deadlines: Mutex<Vec<Arc<AtomicU64>>>,
    end_request: EndRequest,
    task: OnceLock<AbortHandle>,
}

/// Properties of a connection over RESP that a list of clients shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Label {
    /// Address of this server that the client uses.
    pub(crate) local: Option<SocketAddr>,
    /// Whether the client gets replies of version 3.
    pub(crate) is_version_three: bool,
    /// Selected database.
    pub(crate) database: u8,
    /// Whether `CLIENT TRACKING` is on.
    pub(crate) is_tracking: bool,
    /// `CLIENT SETNAME`.
    pub(crate) name: String,
    /// `CLIENT SETINFO lib-name`.
    pub(crate) library: String,
    /// `CLIENT SETINFO lib-ver`.
    pub(crate) library_version: String,
}

/// Reason why a connection is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EndReason {
    /// Another connection needs its place.
    Room = 1,
    /// It has shown no token in time.
    NoToken = 2,
    /// It sends failing requests without a token.
    Refused = 3,
}

/// Request to a connection to leave.
#[derive(Debug)]
struct EndRequest {
    /// A [`EndReason`], or 0.
    reason: AtomicU8,
    /// Time at which it is ended if it has not left.
    until_ms: AtomicU64,
    waker: AtomicWaker,
}

impl fmt::Debug for TrackedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedConnection").field("id", &self.id).field("peer", &self.peer).finish()
    }
}

impl TrackedConnection {
    pub(crate) fn new(id: u64, peer: SocketAddr, since_ms: u64) -> Self {
        Self {
            id,
            peer,
            since_ms,
            label: Mutex::default(),
            deadline_ms: AtomicU64::new(NEVER),
            moved_ms: AtomicU64::new(since_ms),
            client: Mutex::new(Client::at(peer.ip())),
            is_known: AtomicBool::new(false),
            refused: AtomicU32::new(0),
            open: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            awaited: AtomicU32::new(0),
            awaited_ms: AtomicU64::new(0),
            unsent: AtomicU32::new(0),
            read_deadlines: Mutex::default(),
            end_request: EndRequest {
                reason: AtomicU8::new(0),
                until_ms: AtomicU64::new(NEVER),
                waker: AtomicWaker::new(),
            },
            task: OnceLock::new(),
        }
    }

    /// Sets the task that serves this connection.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        // Set once, right after the task was made.
        let _ = self.task.set(task);
    }

    /// Notes activity, and the deadline of the new activity.
    pub(super) fn moves(&self, now_ms: u64, deadline_ms: u64) {
        self.moved_ms.store(now_ms, Ordering::Relaxed);
        self.deadline_ms.store(deadline_ms, Ordering::Relaxed);
    }

    /// Notes activity.
    pub(super) fn moved(&self, now_ms: u64) {
        self.moved_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Removes the deadline: another limit bounds the current activity.
    pub(super) fn has_no_deadline(&self) {
        self.deadline_ms.store(NEVER, Ordering::Relaxed);
    }

    pub(super) fn add_read_deadline(&self, deadline_ms: Arc<AtomicU64>) {
        lock(&self.read_deadlines).push(deadline_ms);
    }

    pub(super) fn remove_read_deadline(&self, deadline_ms: &Arc<AtomicU64>) {
        lock(&self.read_deadlines).retain(|other| !Arc::ptr_eq(other, deadline_ms));
    }

    /// Takes in the caller of a request: whether it has a token, whether it has shown anything, and
    /// the client that it is. A caller without a credential changes nothing: over HTTP some requests
    /// need no token.
    pub(crate) fn is_of(&self, is_known: bool, has_shown: bool, client: impl FnOnce() -> Client) {
        if is_known {
            self.refused.store(0, Ordering::Relaxed);
        }
        if is_known || has_shown {
            self.set_known(is_known, client);
        }
    }

    /// Restores the state of a new connection.
    pub(crate) fn forget_caller(&self) {
        self.set_known(false, || Client::Own);
    }

    fn set_known(&self, is_known: bool, client: impl FnOnce() -> Client) {
        if self.is_known.swap(is_known, Ordering::Relaxed) != is_known {
            *lock(&self.client) = if is_known { client() } else { Client::at(self.peer.ip()) };
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Returns the client whose share of the places, and of its kept memory, the connection takes.
    pub(crate) fn client(&self) -> Client {
        lock(&self.client).clone()
    }

    /// Counts a failed request. Returns whether it is one too many.
    pub(super) fn is_refused(&self) -> bool {
        !self.is_known() && self.refused.fetch_add(1, Ordering::Relaxed) == REFUSED_MAX
    }

    /// Counts a response until it is read, if the bound permits one more.
    pub(super) fn opens(&self) -> bool {
        let fits = self.open.fetch_add(1, Ordering::Relaxed) < OPEN_MAX;
        if !fits {
            self.closes();
        }
        fits
    }

    pub(super) fn closes(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sets whether the server works for it, where it handles one request after the other.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(u32::from(busy), Ordering::Relaxed);
    }

    /// Begins a request, which is complete or still misses its body.
    pub(super) fn begins(&self, is_whole: bool, now_ms: u64) {
        if is_whole {
            self.busy.fetch_add(1, Ordering::Relaxed);
        } else if self.awaited.fetch_add(1, Ordering::Relaxed) == 0 {
            self.awaited_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Ends a request: its response begins, or it is given up.
    pub(super) fn ends(&self, is_whole: bool, now_ms: u64) {
        // Before the count: the client has all its time to read from now on.
        self.moved(now_ms);
        if is_whole {
            self.busy.fetch_sub(1, Ordering::Release);
        } else {
            self.awaited_ms.store(now_ms, Ordering::Relaxed);
            self.awaited.fetch_sub(1, Ordering::Release);
        }
    }

    /// Takes a part of the connection's own bound of unsent IDs, if it is free.
    pub(crate) fn takes(&self, count: u32, most: u32) -> bool {
        let before = self.unsent.fetch_add(count, Ordering::Relaxed);
        let fits = before.saturating_add(count) <= most;
        if !fits {
            self.gives_back(count);
        }
        fits
    }

    pub(crate) fn gives_back(&self, count: u32) {
        self.unsent.fetch_sub(count, Ordering::Relaxed);
    }

    /// Returns the time of its last activity.
    pub(crate) fn moved_ms(&self) -> u64 {
        self.moved_ms.load(Ordering::Relaxed)
    }

    /// Returns whether its end would lose no result that a client waits for.
    pub(super) fn is_idle(&self, now_ms: u64) -> bool {
        let has = |count: &AtomicU32| count.load(Ordering::Relaxed) > 0;
        let awaited_ms = now_ms.saturating_sub(self.awaited_ms.load(Ordering::Relaxed));
        !has(&self.busy)
            && (!has(&self.awaited) || awaited_ms >= BODY_AWAITED_MS)
            && lock(&self.read_deadlines).is_empty()
    }

    /// Returns whether it was asked to leave to make room.
    pub(super) fn makes_room(&self) -> bool {
        self.end_request.reason.load(Ordering::Relaxed) == EndReason::Room as u8
    }

    /// Asks it to end, with a message to the client. A connection that was asked for another reason
    /// is asked again only to make room: those that make room are counted until they have left.
    pub(super) fn request_end(&self, reason: EndReason, now_ms: u64) {
        let changed =
            self.end_request.reason.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
                (reason == EndReason::Room || before == 0).then_some(reason as u8)
            });
        if changed.is_err() {
            return;
        }
        let leave_ms = match reason {
            EndReason::Room => Some(LEAVE_MS),
            EndReason::NoToken => None,
            // A flood opens many such connections, and each keeps its memory until it ends.
            EndReason::Refused => Some(0),
        };
        if let Some(leave_ms) = leave_ms {
            self.end_request.until_ms.store(now_ms.saturating_add(leave_ms), Ordering::Relaxed);
        }
        self.end_request.waker.wake();
    }

    /// Ends it.
    pub(super) fn end(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Returns why it is asked to end, if it is.
    pub(crate) fn end_requested(&self) -> Option<EndReason> {
        match self.end_request.reason.load(Ordering::Acquire) {
            0 => None,
            reason if reason == EndReason::Room as u8 => Some(EndReason::Room),
            reason if reason == EndReason::Refused as u8 => Some(EndReason::Refused),
            _ => Some(EndReason::NoToken),
        }
    }

    /// Returns `Ready` when the connection is asked to end. Only its own task polls.
    pub(super) fn poll_end_request(&self, context: &mut Context<'_>) -> Poll<EndReason> {
        self.end_request.waker.register(context.waker());
        self.end_requested().map_or(Poll::Pending, Poll::Ready)
    }

    /// Returns whether it is past a time limit.
    pub(super) fn is_late(&self, now_ms: u64) -> bool {
        let is_past = |deadline_ms: &AtomicU64| deadline_ms.load(Ordering::Relaxed) <= now_ms;
        is_past(&self.deadline_ms)
            || is_past(&self.end_request.until_ms) && self.is_idle(now_ms)
            || lock(&self.read_deadlines).iter().any(|deadline_ms| is_past(deadline_ms))
    }

    /// Returns whether a stop waits only for its client to read: every request has a response, and
    /// the server could send nothing for a while.
    pub(super) fn is_unread(&self, now_ms: u64, stopping_ms: u64) -> bool {
        let has = |count: &AtomicU32| count.load(Ordering::Acquire) > 0;
        if has(&self.busy) || has(&self.awaited) {
            return false;
        }
        now_ms.saturating_sub(self.moved_ms().max(stopping_ms)) >= UNREAD_MS
    }

    /// Returns whether its time to show a token is over, and it was not asked to leave.
    pub(super) fn lacks_token(&self, now_ms: u64, within_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) > within_ms
            && !self.is_known()
            && self.end_request.reason.load(Ordering::Relaxed) == 0
    }
}
