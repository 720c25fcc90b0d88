//! Read deadlines: a client must read each response that counts toward the limit of unsent IDs,
//! since the held IDs are missing for all others. Traffic does not show that it does: a client has
//! pings acknowledged while it reads nothing. So each response has a deadline of its own, after
//! which
//! the connection ends.
//!
//! hyper takes a body as soon as it has room for a byte, and h2 keeps the rest. So a response
//! counts by its bytes, until they are gone, and not by its body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::access::Caller;
use crate::quota::{Bounds, Quota, Taken};
use crate::roster::{self, Owed, Ticket};

/// Rule by which a counted response is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    /// The client must read all of it in time.
    Whole,
    /// The client may read it for any time, but some of it in each period.
    Stream,
}

/// Bounds of unread responses of connections without a token, where tokens are required, beyond a
/// few of each connection. A connection needs this room for the files of the console. Each costs 2
/// or 3 KiB.
const OPEN: Bounds = Bounds { all: 2_048, share: 256, connection: 20 };

/// All unread responses of such connections.
#[derive(Debug)]
pub(super) struct AllOpen(Arc<Quota>);

/// One of these, until it is dropped.
#[derive(Debug)]
pub(super) enum Open {
    OfConnection { _open: roster::Open },
    OfAll { _taken: Taken },
}

impl AllOpen {
    pub(super) fn new() -> Self {
        // No caller has a token, so none needs room.
        Self(Quota::new(OPEN, false))
    }

    /// Adds one for this connection, if the bounds permit it.
    pub(super) fn open(&self, ticket: &Arc<Ticket>) -> Option<Open> {
        let own = ticket.opens().map(|open| Open::OfConnection { _open: open });
        own.or_else(|| {
            let nobody = Caller::anyone().over(ticket.entry());
            self.0.take(&nobody, 1).ok().map(|taken| Open::OfAll { _taken: taken })
        })
    }
}

/// Body of a response that has a read deadline, or counts for its connection.
pub(super) struct Owing {
    body: Body,
    kept: Arc<Kept>,
}

/// Parts of limits that a response takes until it is read.
struct Kept {
    owed: Option<(Counts, Owed)>,
    _open: Option<Open>,
}

impl Owing {
    pub(super) fn new(body: Body, owed: Option<(Counts, Owed)>, open: Option<Open>) -> Self {
        Self { body, kept: Arc::new(Kept { owed, _open: open }) }
    }
}

/// Wraps bytes that keep something until the last of them is sent, wherever they are.
pub(crate) fn keeping<T: Send + 'static>(bytes: Bytes, kept: T) -> Bytes {
    Bytes::from_owner(Keeping { bytes, _kept: kept })
}

struct Keeping<T> {
    bytes: Bytes,
    _kept: T,
}

impl<T> AsRef<[u8]> for Keeping<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Owing {
    type Data = Bytes;
    type Error = axum::Error;

    /// hyper polls for more when it has room: the client has read something, or it fits into the
    /// system's buffers.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, kept } = &mut *self;
        if let Some((Counts::Stream, owed)) = &kept.owed {
            owed.is_read();
        }
        let frame = Pin::new(body).poll_frame(context);
        frame.map_ok(|frame| frame.map_data(|data| keeping(data, Arc::clone(kept))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
