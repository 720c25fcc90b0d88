//! Answers that count against the limit of unsent IDs have to be read: what their readers hold is missed by all others.
//! Bytes on the connection do not show that they are, since a client has pings answered while it reads nothing. So
//! each has a deadline of its own, after which the connection is ended.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::roster::Owed;

/// What an answer that counts says of itself to its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts {
    /// All of it is to be read in time.
    Whole,
    /// It is read for as long as somebody likes, and always some of it in time.
    Stream,
}

/// The body of such an answer.
pub(super) struct Owing {
    body: Body,
    counts: Counts,
    owed: Owed,
}

impl Owing {
    pub(super) const fn new(body: Body, counts: Counts, owed: Owed) -> Self {
        Self { body, counts, owed }
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
        if matches!(self.counts, Counts::Stream) {
            self.owed.is_read();
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
