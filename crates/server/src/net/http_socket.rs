//! A socket between hyper and the client, which sends the responses of a pipeline together.
//!
//! hyper can do this itself (`pipeline_flush`), but then has no bound on held-back bytes, and holds
//! them back while a part of another request has arrived. Here responses are collected up to
//! [`BUFFER_BYTES`]. They are sent when hyper flushes and has no further response, or flushes again
//! without another response. Nothing is read while something cannot be sent.
//!
//! Over HTTP/2 hyper flushes after every frame of 256 bytes and more, and once again when it has no
//! more frames: the former are collected, the latter sends.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use memchr::memchr_iter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clients::tracker::ConnectionGuard;
use crate::net::stream::Stream;

/// Most bytes of collected responses.
const BUFFER_BYTES: usize = 16 * 1024;
/// The same over HTTP/2, where a stream fills frames of 16 KiB as fast as they are taken: this
/// makes fewer system calls.
const HTTP2_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of the buffer that an idle connection keeps.
const RESTING_BYTES: usize = 1024;
/// First word of HTTP/2.
const HTTP2: &[u8] = b"PRI ";

/// A socket; each write that moves bytes permits the connection to be idle for `idle_ms`.
#[derive(Debug)]
pub(crate) struct CollectingStream {
    stream: Stream,
    guard: Arc<ConnectionGuard>,
    idle_ms: u64,
    unsent: Vec<u8>,
    /// Whether written bytes may still be in the TLS buffer.
    unflushed: bool,
    /// Whether the socket did not take bytes that should have been sent.
    is_blocked: bool,
    /// Whether hyper has no response after the last one it wrote: nothing to read has come since,
    /// or one request, as far as can be seen. When this is wrong, responses are sent one by one.
    is_last: bool,
    /// Whether a flush by hyper after the last response was deferred.
    put_off: bool,
    /// Whether a frame was written with its payload apart from its head: h2 flushes after each of
    /// these (`FramedWrite::flush` of h2 0.4), before it looks for another, and flushes again when
    /// there is none.
    is_framing: bool,
    /// Known protocol of the connection.
    version: HttpVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpVersion {
    /// Nothing has been read.
    Unknown,
    Http1,
    Http2,
}

impl HttpVersion {
    /// Returns the most bytes to collect.
    const fn buffer_bytes(self) -> usize {
        match self {
            Self::Unknown | Self::Http1 => BUFFER_BYTES,
            Self::Http2 => HTTP2_BUFFER_BYTES,
        }
    }
}

impl CollectingStream {
    pub(crate) fn new(stream: Stream, guard: Arc<ConnectionGuard>, idle_ms: u64) -> Self {
        Self {
            stream,
            guard,
            idle_ms,
            unsent: Vec::new(),
            unflushed: false,
            is_blocked: false,
            is_last: false,
            put_off: false,
            is_framing: false,
            version: HttpVersion::Unknown,
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        if sent > 0 {
            self.unflushed = true;
            self.guard.allow_ms(self.idle_ms);
        }
        Poll::Ready(Ok(sent))
    }

    /// Sends all collected bytes.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_blocked = true;
        ready!(self.poll_send_all(context))?;
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        self.is_blocked = false;
        Poll::Ready(Ok(()))
    }

    fn poll_send_all(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut unsent = std::mem::take(&mut self.unsent);
        let mut sent: usize = 0;
        let outcome = loop {
            match unsent.get(sent..) {
                None | Some([]) => break Poll::Ready(Ok(())),
                Some(rest) => match self.poll_send(context, rest) {
                    Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(bytes)) => sent = sent.saturating_add(bytes),
                    Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                    Poll::Pending => break Poll::Pending,
                },
            }
        };
        unsent.drain(..sent.min(unsent.len()));
        if unsent.is_empty() && unsent.capacity() > RESTING_BYTES {
            unsent = Vec::new();
        }
        self.unsent = unsent;
        outcome
    }
}

/// Returns whether these bytes are one request without a body, and nothing more.
fn is_one(bytes: &[u8]) -> bool {
    // From line to line: heads are long, and have few.
    let mut rests = memchr_iter(b'\n', bytes).filter_map(|at| bytes.get(at..)?.get(1..));
    rests.find_map(|rest| rest.strip_prefix(b"\r\n")).is_some_and(<[u8]>::is_empty)
}

impl AsyncRead for CollectingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_blocked || self.unsent.len() >= self.version.buffer_bytes() {
            ready!(self.poll_drain(context))?;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.is_last = read.is_pending();
        ready!(read)?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        self.is_last = is_one(read);
        if self.version == HttpVersion::Unknown {
            // A preface cut inside its first word counts as HTTP/1; its response is still sent, at
            // the next wake-up.
            self.version =
                if read.starts_with(HTTP2) { HttpVersion::Http2 } else { HttpVersion::Http1 };
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for CollectingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let buffer_bytes = self.version.buffer_bytes();
        if self.unsent.is_empty() && bytes.len() >= buffer_bytes {
            return self.poll_send(context, bytes);
        }
        if self.unsent.len() >= buffer_bytes {
            ready!(self.poll_drain(context))?;
        }
        let room = buffer_bytes.saturating_sub(self.unsent.len());
        let written = bytes.get(..room).unwrap_or(bytes);
        if !self.unsent.is_empty() && self.unsent.spare_capacity_mut().len() < written.len() {
            // A second response: there may be many.
            self.unsent.reserve(room);
        }
        self.unsent.extend_from_slice(written);
        self.put_off = false;
        Poll::Ready(Ok(written.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut written: usize = 0;
        self.is_framing |= slices.len() > 1;
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            match self.as_mut().poll_write(context, slice) {
                Poll::Ready(Ok(bytes)) => {
                    written = written.saturating_add(bytes);
                    if bytes < slice.len() {
                        break;
                    }
                }
                // Bytes taken before count; hyper offers the rest again.
                Poll::Pending | Poll::Ready(Err(_)) if written > 0 => break,
                refused => return refused,
            }
        }
        Poll::Ready(Ok(written))
    }

    /// Returns whether hyper keeps the parts of responses separate. Those over HTTP/1 are small,
    /// and are collected here anyway.
    fn is_write_vectored(&self) -> bool {
        self.version == HttpVersion::Http2
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.version == HttpVersion::Http2 {
            let is_framing = std::mem::take(&mut self.is_framing);
            return if is_framing { Poll::Ready(Ok(())) } else { self.poll_drain(context) };
        }
        // Bytes that bypassed the collection must not rest in the TLS buffer.
        if self.unsent.is_empty() || self.is_last || self.put_off {
            return self.poll_drain(context);
        }
        // There are more requests. Woken, hyper flushes again even if it waits for the response to
        // one.
        self.put_off = true;
        context.waker().wake_by_ref();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};

    use snowmint_coord::BootTimer;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::clients::tracker::{ConnectionTracker, ListenerBounds};

    #[tokio::test]
    async fn frames_over_http2_are_sent_when_there_are_no_more() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let bounds = ListenerBounds { max: 1, key: "http.connections_max", token_within_ms: None };
        let guard = ConnectionTracker::new(bounds, Arc::new(BootTimer)).admit(peer).unwrap();
        let mut collecting = CollectingStream::new(stream.into(), Arc::new(guard), 60_000);
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        assert_eq!(collecting.read(&mut [0; 64]).await.unwrap(), 24);

        client.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        client.set_nonblocking(true).unwrap();
        for _ in 0..2 {
            let frame = [IoSlice::new(b"head "), IoSlice::new(b"payload ")];
            assert_eq!(collecting.write_vectored(&frame).await.unwrap(), 13);
            // h2 flushes after each frame.
            collecting.flush().await.unwrap();
            assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        // h2 flushes when it has no more.
        collecting.flush().await.unwrap();
        client.set_nonblocking(false).unwrap();
        let mut sent = [0; 26];
        client.read_exact(&mut sent).unwrap();
        assert_eq!(&sent, b"head payload head payload ");

        // A frame of one piece is sent by the flush after it.
        collecting.write_all(b"small").await.unwrap();
        collecting.flush().await.unwrap();
        client.read_exact(sent.get_mut(..5).unwrap()).unwrap();
        assert!(sent.starts_with(b"small"));
    }

    #[test]
    fn single_request_is_distinguished_from_several() {
        assert!(is_one(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        for other in [
            &b""[..],
            b"\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\nGET / HT",
            b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}",
        ] {
            assert!(!is_one(other), "{}", other.escape_ascii());
        }
    }
}
