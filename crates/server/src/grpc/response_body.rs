//! Response of a call while it is sent.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Frame, SizeHint};
use snowmint_wire::error::Code;
use tonic::Status;

use crate::error::Error;
use crate::net::read_deadline_body::{BodyKind, keeping};
use crate::requests::quota::QuotaPermit;
use crate::service::UnsentPermit;

/// Bytes of a message that are handed over at once: hyper polls for more when it has room.
const CHUNK_BYTES: usize = 16 * 1024;

/// Hold on the limit of unsent IDs until a response is sent.
#[derive(Clone, Debug)]
pub(super) struct BodyPermit {
    unsent_permit: Arc<UnsentPermit>,
    kind: BodyKind,
}

impl BodyPermit {
    pub(super) fn new(unsent_permit: UnsentPermit, kind: BodyKind) -> Self {
        Self { unsent_permit: Arc::new(unsent_permit), kind }
    }

    /// Returns how the response counts, if it does.
    pub(super) fn counts(&self) -> Option<BodyKind> {
        self.unsent_permit.counts().then_some(self.kind)
    }
}

/// Copies a small response into a buffer of its size: the library writes each into a buffer of 8
/// KiB, and would keep it until the client reads the response.
pub(super) async fn copied(response: Response) -> Response {
    if response.body().is_end_stream() {
        return response;
    }
    let (head, body) = response.into_parts();
    let whole = match body.collect().await {
        Ok(whole) => whole,
        Err(error) => {
            let message = format!("internal error: response was lost: {error}; please report it");
            return Status::from(Error::new(Code::Internal, message)).into_http();
        }
    };
    let trailers = whole.trailers().cloned();
    let bytes = Bytes::copy_from_slice(&whole.to_bytes());
    let body = Full::new(bytes).with_trailers(ready(trailers.map(Ok)));
    Response::from_parts(head, Body::new(body))
}

/// Body of a response.
pub(super) struct ResponseBody {
    body: Body,
    /// Rest of a message that waits for room.
    unsent: Bytes,
    /// Parts of the limits of unsent IDs and of open calls, held until its bytes are sent.
    permits: Option<Arc<(Option<BodyPermit>, Option<QuotaPermit>)>>,
    /// Future that ends the call, however long its caller would hold it open.
    ends: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl ResponseBody {
    pub(super) fn new(
        body: Body,
        (body_permit, permit): (Option<BodyPermit>, Option<QuotaPermit>),
        ends: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> Self {
        let ends = ends.map(|ends| Box::pin(ends) as Pin<Box<_>>);
        let body_permit = body_permit.filter(|permit| !permit.unsent_permit.is_nothing());
        let is_kept = body_permit.is_some() || permit.is_some();
        let permits = is_kept.then(|| Arc::new((body_permit, permit)));
        Self { body, unsent: Bytes::new(), permits, ends }
    }

    /// Returns the trailers of the call when its time is over.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Option<Frame<Bytes>> {
        if self.ends.as_mut()?.as_mut().poll(context).is_pending() {
            return None;
        }
        self.ends = None;
        self.body = Body::empty();
        let stopping = Error::new(Code::Closed, "server is stopping; call another server");
        let status = Status::from(stopping);
        Some(Frame::trailers(status.into_http::<()>().into_parts().0.headers))
    }
}

impl HttpBody for ResponseBody {
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
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            self.unsent = match &self.permits {
                Some(permits) => keeping(data, Arc::clone(permits)),
                None => data,
            };
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

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn small_response_is_equal_and_keeps_no_buffer() {
        let buffer = Bytes::from(vec![7; 8 * 1024]);
        let trailers = HeaderMap::from_iter([(
            axum::http::header::EXPIRES,
            HeaderValue::from_static("never"),
        )]);
        let original =
            Full::new(buffer.slice(..7)).with_trailers(ready(Some(Ok(trailers.clone()))));
        let copied = copied(Response::new(Body::new(original))).now_or_never().unwrap();
        let whole = copied.into_body().collect().now_or_never().unwrap().unwrap();
        assert_eq!(whole.trailers(), Some(&trailers));
        let bytes = whole.to_bytes();
        assert_eq!(bytes, [7; 7][..]);
        assert_ne!(bytes.as_ptr(), buffer.as_ptr());
    }
}
