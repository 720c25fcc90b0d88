//! Read deadlines: a client must read each response that counts toward the limit of unsent IDs,
//! since the held IDs are missing for all others. Traffic does not show that it does: a client has
//! pings acknowledged while it reads nothing. So each response has a deadline of its own, after
//! which the connection ends.
//!
//! hyper takes a body as soon as it has room for a byte, and h2 keeps the rest. So a response
//! counts by its bytes, until they are gone, and not by its body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::access::Caller;
use crate::clients::tracker::{self, ConnectionGuard, ReadDeadline};
use crate::requests::quota::{Bounds, Quota, QuotaPermit};

/// Rule by which a counted response is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyKind {
    /// The client must read all of it in time.
    Whole,
    /// The client may read it for any time, but some of it in each period.
    Stream,
}

/// Bounds of unread responses of connections without a token, where tokens are required, beyond a
/// few of each connection. A connection needs this room for the files of the console. Each costs 2
/// or 3 KiB.
const OPEN: Bounds = Bounds { all: 2_048, share: 256, connection: 20 };

/// Quota of the unread responses of all such connections.
#[derive(Debug)]
pub(crate) struct UnreadQuota(Arc<Quota>);

/// Permit for one unread response, until it is dropped.
#[derive(Debug)]
pub(crate) enum UnreadPermit {
    OfConnection { _open: tracker::OpenResponse },
    OfAll { _permit: QuotaPermit },
}

impl UnreadQuota {
    pub(crate) fn new() -> Self {
        // No caller has a token, so none needs room.
        Self(Quota::new(OPEN, false))
    }

    /// Adds one for this connection, if the bounds permit it.
    pub(crate) fn acquire(&self, guard: &Arc<ConnectionGuard>) -> Option<UnreadPermit> {
        let own = guard.opens().map(|open| UnreadPermit::OfConnection { _open: open });
        own.or_else(|| {
            let caller = Caller::unrestricted().over(guard.connection());
            self.0
                .try_acquire(&caller, 1)
                .ok()
                .map(|permit| UnreadPermit::OfAll { _permit: permit })
        })
    }
}

/// Body of a response that has a read deadline, or counts for its connection.
pub(crate) struct ReadDeadlineBody {
    body: Body,
    kept: Arc<ReadPermits>,
}

/// Parts of limits that a response takes until it is read.
struct ReadPermits {
    read_deadline: Option<(BodyKind, ReadDeadline)>,
    _open: Option<UnreadPermit>,
}

impl ReadDeadlineBody {
    pub(crate) fn new(
        body: Body,
        read_deadline: Option<(BodyKind, ReadDeadline)>,
        open: Option<UnreadPermit>,
    ) -> Self {
        Self { body, kept: Arc::new(ReadPermits { read_deadline, _open: open }) }
    }
}

/// Wraps bytes that keep something until the last of them is sent, wherever they are.
pub(crate) fn keeping<T: Send + 'static>(bytes: Bytes, kept: T) -> Bytes {
    Bytes::from_owner(OwnedBytes { bytes, _kept: kept })
}

struct OwnedBytes<T> {
    bytes: Bytes,
    _kept: T,
}

impl<T> AsRef<[u8]> for OwnedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for ReadDeadlineBody {
    type Data = Bytes;
    type Error = axum::Error;

    /// hyper polls for more when it has room: the client has read something, or it fits into the
    /// system's buffers.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, kept } = &mut *self;
        if let Some((BodyKind::Stream, read_deadline)) = &kept.read_deadline {
            read_deadline.is_read();
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
