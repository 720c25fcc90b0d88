//! Socket between hyper and the client. Bytes that are sent permit the connection to be idle.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clients::tracker::ConnectionGuard;
use crate::net::stream::Stream;

/// A socket; each write that moves bytes permits the connection to be idle for `idle_ms`.
#[derive(Debug)]
pub(crate) struct HttpSocket {
    stream: Stream,
    guard: Arc<ConnectionGuard>,
    idle_ms: u64,
}

impl HttpSocket {
    pub(crate) const fn new(stream: Stream, guard: Arc<ConnectionGuard>, idle_ms: u64) -> Self {
        Self { stream, guard, idle_ms }
    }

    fn allow(&self, sent: usize) -> Poll<io::Result<usize>> {
        if sent > 0 {
            self.guard.allow_ms(self.idle_ms);
        }
        Poll::Ready(Ok(sent))
    }
}

impl AsyncRead for HttpSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for HttpSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.allow(sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        self.allow(sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
