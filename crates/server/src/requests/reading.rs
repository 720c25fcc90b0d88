//! Requests whose bodies are not complete: each body is read as a whole before any work is done.
//!
//! The problem: a client sends many requests over one connection and half of each. The memory that
//! the server keeps for a half request is multiplied by their number, and no event on the
//! connection ends the wait.
//!
//! This module's way: while a body is incomplete, the server keeps its head and the bytes received,
//! and nothing else. All that wait, over all connections, count toward one limit, of which each
//! caller gets at most a share. A whole body counts as well: it is kept while its request waits.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use hyper::{Request, Version};
use snowmint_wire::error::Code;

use crate::access::Caller;
use crate::clients::tracker::TrackedConnection;
use crate::error::Error;
use crate::requests::quota::{Bounds, Full, Quota, QuotaPermit};

/// Bytes that a waiting request counts for, besides its body: its head may keep a buffer of the
/// connection.
const REQUEST_BYTES: usize = 8 * 1024;
/// Bounds of all waiting requests.
const BOUNDS: Bounds = Bounds { all: 128 * MIB, share: 16 * MIB, connection: 16 * MIB };
const MIB: usize = 1024 * 1024;
/// Most header lines of a request: the limit of hyper over HTTP/1.
const HEADER_LINES_MAX: usize = 100;
/// Bytes that HTTP/2 adds for each line of a head.
const HEADER_LINE_OVERHEAD: usize = 32;

/// All waiting requests of a server. Clones share the limit.
#[derive(Clone, Debug)]
pub(crate) struct WaitingRequests(Arc<Quota>);

/// Reason why a body was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The body exceeds its limit, by its declared length or by the bytes received.
    TooLong,
    CutOff,
    Full(Full),
}

/// A body, and what its request counts for until the response is ready.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) bytes: Bytes,
    pub(crate) waiting: Waiting,
}

/// Amount that a request counts for while it waits. The default is that of a request without a body.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    body_bytes: usize,
    /// The part of the limit, if it is taken already.
    permit: Option<QuotaPermit>,
}

impl WaitingRequests {
    pub(crate) fn new(requires_tokens: bool) -> Self {
        Self(Quota::new(BOUNDS, requires_tokens))
    }

    /// Returns requests with other bounds.
    #[cfg(test)]
    pub(crate) fn within(bounds: Bounds) -> Self {
        Self(Quota::new(bounds, false))
    }

    /// Returns an empty part of the limit for the requests of a connection.
    pub(crate) fn over(&self, connection: &TrackedConnection) -> QuotaPermit {
        self.0.over(connection)
    }

    /// Returns the bytes that a bound permits.
    pub(crate) fn most(&self, bound: Full) -> usize {
        self.0.most(bound)
    }

    /// Checks whether a request may be worked on, given all that wait.
    ///
    /// # Errors
    /// `Overloaded` where too many wait.
    pub(crate) fn check(&self, caller: &Caller) -> Result<(), Error> {
        self.0.check(caller, REQUEST_BYTES).map_err(|full| Unread::Full(full).error(0))
    }

    /// Reads the whole body of a request. A long one counts from then on, however soon it was
    /// there: a rejection comes before the work on the request.
    pub(crate) async fn whole(
        &self,
        caller: &Caller,
        version: Version,
        mut body: impl Body<Data = Bytes> + Unpin,
        bytes_max: usize,
    ) -> Result<Whole, Unread> {
        let mut came = Came::default();
        let mut permit = None;
        // Over HTTP/1 a connection has one request, and its body is never there at the first poll.
        let mut is_expected = version != Version::HTTP_2;
        if usize::try_from(body.size_hint().lower()).map_or(true, |bytes| bytes > bytes_max) {
            return Err(Unread::TooLong);
        }
        loop {
            let frame = match body.frame().now_or_never() {
                Some(frame) => frame,
                None => {
                    if !std::mem::take(&mut is_expected) && permit.is_none() {
                        came.copy();
                        permit = Some(self.try_acquire(caller, came.len())?);
                    }
                    body.frame().await
                }
            };
            let data = match frame {
                None => {
                    let body_bytes = came.len();
                    if permit.is_none() && body_bytes > REQUEST_BYTES {
                        permit = Some(self.try_acquire(caller, body_bytes)?);
                    }
                    let waiting = Waiting { body_bytes, permit };
                    return Ok(Whole { bytes: came.into(), waiting });
                }
                Some(Err(_)) => return Err(Unread::CutOff),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if came.len().saturating_add(data.len()) > bytes_max {
                return Err(Unread::TooLong);
            }
            if let Some(permit) = &mut permit {
                permit.grow(data.len()).map_err(Unread::Full)?;
            }
            came.add(data);
        }
    }

    /// Runs the work on a request, which counts toward the limit as soon as it has to wait.
    pub(crate) async fn counted<T, F: Future<Output = T>>(
        &self,
        caller: &Caller,
        Waiting { body_bytes, mut permit }: Waiting,
        mut work: Pin<Box<F>>,
    ) -> T {
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() && permit.is_none() {
                permit =
                    Some(self.0.acquire_anyway(caller, REQUEST_BYTES.saturating_add(body_bytes)));
            }
            polled
        })
        .await
    }

    /// Takes a part of the limit for a request with this much of its body.
    fn try_acquire(&self, caller: &Caller, body_bytes: usize) -> Result<QuotaPermit, Unread> {
        self.0.try_acquire(caller, REQUEST_BYTES.saturating_add(body_bytes)).map_err(Unread::Full)
    }
}

impl Unread {
    /// Returns the error for the caller.
    pub(crate) fn error(&self, bytes_max: usize) -> Error {
        match self {
            Self::TooLong => {
                let message = format!(
                    "request body exceeds {bytes_max} bytes (http.body_bytes_max); send less at \
                     once"
                );
                Error::new(Code::LimitExceeded, message)
            }
            Self::CutOff => Error::bad_request("request body cut off; send it again"),
            Self::Full(full) => {
                let scope = full.scope();
                let message = format!(
                    "too many requests {scope} wait for their bodies or the store; send fewer at \
                     once, each with its body"
                );
                Error::new(Code::Overloaded, message)
            }
        }
    }
}

/// Returns the bytes of the longest head that is read over HTTP/2: more than is accepted, so that
/// callers get an error that says so. Without it gRPC clients see a broken connection or a status of
/// HTTP, and some reject the call by themselves.
pub(crate) const fn read_head_bytes_max(head_bytes_max: usize) -> usize {
    head_bytes_max.saturating_mul(2)
}

/// Returns whether a head over HTTP/2 exceeds its limit. Over HTTP/1 longer heads are not read.
pub(crate) fn is_head_too_long<B>(request: &Request<B>, head_bytes_max: usize) -> bool {
    request.version() == Version::HTTP_2 && head_bytes(request) > head_bytes_max
}

/// Returns the length of a head as HTTP/2 counts it (RFC 9113, 6.5.2).
fn head_bytes<B>(request: &Request<B>) -> usize {
    let line_bytes =
        |name: usize, value: usize| name.saturating_add(value).saturating_add(HEADER_LINE_OVERHEAD);
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let headers = request.headers().iter();
    headers.fold(line_bytes(0, path), |bytes, (name, value)| {
        bytes.saturating_add(line_bytes(name.as_str().len(), value.len()))
    })
}

/// Rejects long heads, and heads of more lines than HTTP/1 takes: each line costs much more memory
/// than bytes on the wire.
///
/// # Errors
/// `LimitExceeded`.
pub(crate) fn check_head<B>(request: &Request<B>, head_bytes_max: usize) -> Result<(), Error> {
    let lines = request.headers().len();
    let message = if lines > HEADER_LINES_MAX {
        format!("{lines} header lines exceed the limit of {HEADER_LINES_MAX}; send fewer")
    } else if is_head_too_long(request, head_bytes_max) {
        let bytes = head_bytes(request);
        format!(
            "head of {bytes} bytes exceeds {head_bytes_max} (http.head_bytes_max); send fewer or \
             shorter header lines, or less metadata"
        )
    } else {
        return Ok(());
    };
    Err(Error::new(Code::LimitExceeded, message))
}

/// The received bytes of a body.
#[derive(Debug, Default)]
struct Came {
    /// The only piece, not copied while it is alone.
    piece: Bytes,
    copied: Vec<u8>,
}

impl Came {
    fn len(&self) -> usize {
        self.piece.len().saturating_add(self.copied.len())
    }

    fn add(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.piece = data;
        } else {
            self.copy();
            self.copied.extend_from_slice(&data);
        }
    }

    /// Copies the piece, which may be one byte that keeps a buffer of many thousand.
    fn copy(&mut self) {
        self.copied.extend_from_slice(&std::mem::take(&mut self.piece));
    }
}

impl From<Came> for Bytes {
    fn from(came: Came) -> Self {
        if came.copied.is_empty() { came.piece } else { came.copied.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller() -> Caller {
        Caller::unrestricted().over(&Arc::new(TrackedConnection::new(
            1,
            "127.0.0.1:1".parse().unwrap(),
            0,
        )))
    }

    #[test]
    fn work_counts_while_it_waits() {
        let requests = WaitingRequests::new(false);
        let caller = caller();
        let used = Box::pin(async { requests.0.used() });
        let at_once = requests.counted(&caller, Waiting::default(), used);
        assert_eq!(at_once.now_or_never(), Some(0));
        for body_bytes in [0, 100, REQUEST_BYTES] {
            let waiting = Waiting { body_bytes, permit: None };
            let never = Box::pin(std::future::pending::<()>());
            let mut waits = Box::pin(requests.counted(&caller, waiting, never));
            assert_eq!(waits.as_mut().now_or_never(), None);
            assert_eq!(waits.as_mut().now_or_never(), None);
            assert_eq!(requests.0.used(), REQUEST_BYTES + body_bytes, "once");
            drop(waits);
            assert_eq!(requests.0.used(), 0);
        }
    }

    /// Such a body never has to be awaited.
    #[test]
    fn body_that_is_there_at_once_counts_if_it_is_long() {
        const LONG: usize = 60 * 1024;
        let all = 2 * (REQUEST_BYTES + LONG);
        let requests = WaitingRequests::within(Bounds { all, share: 0, connection: all });
        let caller = caller();
        let read = |version, length: usize| {
            let body = http_body_util::Full::new(Bytes::from(vec![0_u8; length]));
            requests.whole(&caller, version, body, LONG).now_or_never().unwrap()
        };
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let short = read(version, REQUEST_BYTES).unwrap();
            assert_eq!(requests.0.used(), 0, "{version:?}: only if it waits");
            assert_eq!(short.waiting.body_bytes, REQUEST_BYTES);

            let long = read(version, LONG).unwrap();
            assert_eq!((long.bytes.len(), requests.0.used()), (LONG, REQUEST_BYTES + LONG));
            let refused = read(version, REQUEST_BYTES + 1).unwrap_err();
            assert!(matches!(refused, Unread::Full(Full::Share)), "{version:?}: {refused:?}");
            let Whole { waiting, .. } = long;
            let work = Box::pin(async { requests.0.used() });
            let used = requests.counted(&caller, waiting, work).now_or_never();
            assert_eq!(used, Some(REQUEST_BYTES + LONG), "not twice");
            assert_eq!(requests.0.used(), 0);
        }
    }

    #[test]
    fn body_of_one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"0123");
        let mut came = Came::default();
        came.add(piece.clone());
        assert_eq!(Bytes::from(came).as_ptr(), piece.as_ptr());

        let mut came = Came::default();
        came.add(piece.clone());
        came.copy();
        came.copy();
        came.add(Bytes::new());
        came.add(Bytes::from_static(b"45"));
        assert_eq!(came.len(), 6);
        let whole = Bytes::from(came);
        assert_eq!(whole, "012345");
        assert_ne!(whole.as_ptr(), piece.as_ptr());
    }
}
