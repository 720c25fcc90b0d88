//! A socket between hyper and the client, which sends the answers of a pipeline together.
//!
//! hyper can do that itself (`pipeline_flush`), but then puts no bound to what it holds back, and
//! holds it back while a part of another request has arrived. Here answers are collected up to
//! [`BUFFER_BYTES`] and sent as soon as hyper asks for more to read, which it does when it has
//! answered all that it has. Nothing is read while something cannot be sent.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::roster::Ticket;
use crate::stream::Stream;

/// Answers are collected up to this.
const BUFFER_BYTES: usize = 16 * 1024;
/// What a connection keeps of it while it rests.
const RESTING_BYTES: usize = 1024;
/// The first word of HTTP/2, where hyper collects frames itself, and flushes when it means it.
const HTTP2: &[u8] = b"PRI ";

/// A socket; each write that moves bytes allows the connection to rest for `idle_ms`.
#[derive(Debug)]
pub(super) struct Watched {
    stream: Stream,
    ticket: Arc<Ticket>,
    idle_ms: u64,
    unsent: Vec<u8>,
    /// Whether what was sent may still lie in the encryption.
    unflushed: bool,
    /// What is known of the protocol.
    speaks: Speaks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// Nothing has been read.
    Unknown,
    Http1,
    Http2,
}

impl Watched {
    pub(super) fn new(stream: Stream, ticket: Arc<Ticket>, idle_ms: u64) -> Self {
        Self {
            stream,
            ticket,
            idle_ms,
            unsent: Vec::new(),
            unflushed: false,
            speaks: Speaks::Unknown,
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        if sent > 0 {
            self.unflushed = true;
            self.ticket.allow_ms(self.idle_ms);
        }
        Poll::Ready(Ok(sent))
    }

    /// Sends what was collected, all the way.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send_all(context))?;
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
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

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.speaks == Speaks::Unknown {
            // A preface cut inside its first word is taken for HTTP/1; its answer is sent all the
            // same, at the next wake-up.
            let first = buffer.filled().get(before..).unwrap_or_default();
            self.speaks = if first.starts_with(HTTP2) { Speaks::Http2 } else { Speaks::Http1 };
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.unsent.is_empty() && bytes.len() >= BUFFER_BYTES {
            return self.poll_send(context, bytes);
        }
        if self.unsent.len() >= BUFFER_BYTES {
            ready!(self.poll_drain(context))?;
        }
        let room = BUFFER_BYTES.saturating_sub(self.unsent.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.unsent.extend_from_slice(taken);
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut taken: usize = 0;
        for slice in slices.iter().filter(|slice| !slice.is_empty()) {
            match self.as_mut().poll_write(context, slice) {
                Poll::Ready(Ok(bytes)) => {
                    taken = taken.saturating_add(bytes);
                    if bytes < slice.len() {
                        break;
                    }
                }
                // What was taken before counts; the rest is offered again.
                Poll::Pending | Poll::Ready(Err(_)) if taken > 0 => break,
                refused => return refused,
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What has gone past the collection must not rest in the encryption.
        if self.speaks == Speaks::Http2 || self.unsent.is_empty() {
            return self.poll_drain(context);
        }
        // Sent by the next read. Woken, hyper comes to it even if it has nothing else to do.
        context.waker().wake_by_ref();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
