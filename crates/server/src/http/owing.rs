//! Answers that count against the limit of unsent IDs have to be read: what their readers hold is missed by all others.
//! Bytes on the connection do not show that they are, since a client has pings answered while it reads nothing. So
//! each has a deadline of its own, after which the connection is ended.
//!
//! A body is handed on as soon as there is room for a byte of it, and h2 keeps the rest. So it is the bytes that an
//! answer counts by, until they are gone, and not the body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::access::Caller;
use crate::quota::{Bounds, Quota, Taken};
use crate::roster::{self, Owed, Ticket};

/// What an answer that counts says of itself to its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    /// All of it is to be read in time.
    Whole,
    /// It is read for as long as somebody likes, and always some of it in time.
    Stream,
}

/// How many answers that are not read yet connections may have that have shown no token, where one is asked for, beyond
/// a few of each: with those, a connection has room for the files of the console. Each costs 2 or 3 KiB.
const OPEN: Bounds = Bounds { all: 2_048, share: 256, connection: 20 };

/// All of these.
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
        // There is none with a token to leave room for.
        Self(Quota::new(OPEN, false))
    }

    /// One more for this connection, if there may be one.
    pub(super) fn open(&self, ticket: &Arc<Ticket>) -> Option<Open> {
        let own = ticket.opens().map(|open| Open::OfConnection { _open: open });
        own.or_else(|| {
            let nobody = Caller::anyone().over(ticket.entry());
            self.0.take(&nobody, 1).ok().map(|taken| Open::OfAll { _taken: taken })
        })
    }
}

/// The body of such an answer, or of one that counts for its connection.
pub(super) struct Owing {
    body: Body,
    kept: Arc<Kept>,
}

/// What an answer takes until it is read.
struct Kept {
    owed: Option<(Counts, Owed)>,
    _open: Option<Open>,
}

impl Owing {
    pub(super) fn new(body: Body, owed: Option<(Counts, Owed)>, open: Option<Open>) -> Self {
        Self { body, kept: Arc::new(Kept { owed, _open: open }) }
    }
}

/// Bytes that keep something until the last of them is sent, whoever holds them.
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

    /// Asked for more when there is room for it: something was read, or fits into what the system keeps.
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
