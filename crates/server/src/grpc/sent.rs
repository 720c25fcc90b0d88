//! A call's answer on its way out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use snowmint_wire::error::Code;
use tonic::Status;

use crate::http::Counts;
use crate::quota::Taken;
use crate::service::{Error, Hold};

/// How much of a message is handed on at once: hyper asks for more when there is room for it.
const CHUNK_BYTES: usize = 16 * 1024;

/// What counts against the limit of unsent IDs until an answer is sent.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    hold: Arc<Hold>,
    counts: Counts,
}

impl Kept {
    pub(super) fn new(hold: Hold, counts: Counts) -> Self {
        Self { hold: Arc::new(hold), counts }
    }

    /// How it counts, if it does.
    pub(super) fn counts(&self) -> Option<Counts> {
        self.hold.counts().then_some(self.counts)
    }
}

/// The body of an answer.
pub(super) struct Sent {
    body: Body,
    /// A part of a message that there was no room for yet.
    unsent: Bytes,
    _kept: Option<Kept>,
    /// What it takes of the limit of calls that are held open.
    _taken: Option<Taken>,
    /// Ends the call, however long its caller would hold it open.
    ends: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Sent {
    pub(super) fn new(
        body: Body,
        (kept, taken): (Option<Kept>, Option<Taken>),
        ends: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> Self {
        let ends = ends.map(|ends| Box::pin(ends) as Pin<Box<_>>);
        Self { body, unsent: Bytes::new(), _kept: kept, _taken: taken, ends }
    }

    /// The call's end, when it is time for it.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Option<Frame<Bytes>> {
        if self.ends.as_mut()?.as_mut().poll(context).is_pending() {
            return None;
        }
        self.ends = None;
        self.body = Body::empty();
        let status = Status::from(Error::new(Code::Closed, "the server is stopping"));
        Some(Frame::trailers(status.into_http::<()>().into_parts().0.headers))
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.unsent.is_empty() {
            if let Some(end) = self.poll_end(context) {
                return Poll::Ready(Some(Ok(end)));
            }
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other.map_err(Into::into),
            };
            match frame.into_data() {
                Ok(data) => self.unsent = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = self.unsent.len().min(CHUNK_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.unsent.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.unsent.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
