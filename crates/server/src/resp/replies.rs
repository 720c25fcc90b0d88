//! Replies to a client: collected, and sent together.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::buffered_bytes::BufferedBytes;
use crate::clients::tracker::ConnectionGuard;
use crate::net::stream::Stream;
use crate::requests::quota::Full;
use crate::requests::reading::WaitingRequests;

/// Bytes of replies at which they are sent; all are sent at the end of a read. The server reads
/// nothing from a client that does not read. So at most this many bytes, and one reply, wait for
/// it.
const UNSENT_BYTES: usize = 64 * 1024;

/// The socket to a client, and its unsent replies.
pub(super) struct Replies {
    pub(super) stream: Stream,
    pub(super) unsent: Vec<u8>,
    /// Limit toward which unread replies count.
    pub(super) requests: WaitingRequests,
    pub(super) guard: Arc<ConnectionGuard>,
    /// Time in which the client must read.
    pub(super) write_max_ms: u64,
}

impl Replies {
    /// Returns whether the replies must be sent before more are added.
    pub(super) fn are_many(&self) -> bool {
        self.unsent.len() >= UNSENT_BYTES
    }

    /// Adds a reply after the existing ones.
    pub(super) fn add(&mut self, reply: Vec<u8>) {
        if self.unsent.is_empty() {
            self.unsent = reply;
        } else {
            self.unsent.extend_from_slice(&reply);
        }
    }

    /// Sends the replies. Cuts off a client that does not read them in time, or for which the
    /// server already keeps the most bytes that the limit permits.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        match &mut self.stream {
            Stream::Plain(stream) => {
                let limits = (&*self.guard, &self.requests);
                send_plain(stream, &self.unsent, limits, self.write_max_ms).await?;
            }
            Stream::Tls(stream) => {
                // TLS does not show in advance whether the client reads.
                let mut buffered_bytes = BufferedBytes::default();
                let bytes = counted(&self.unsent);
                buffered_bytes
                    .set(bytes, &self.requests, self.guard.connection())
                    .map_err(unread)?;
                self.guard.allow_ms(self.write_max_ms);
                send_tls(stream, &self.unsent, &self.guard).await?;
            }
        }
        self.unsent.clear();
        // A large batch is rare: its buffer is not kept.
        self.unsent.shrink_to(UNSENT_BYTES);
        Ok(())
    }

    /// Announces the end of the stream over TLS, where a closed socket does not.
    pub(super) async fn close(mut self) {
        if let Stream::Tls(stream) = &mut self.stream {
            self.guard.allow_ms(self.write_max_ms);
            // A client that has disconnected needs no message.
            let _ = stream.shutdown().await;
        }
    }
}

/// Sends plain bytes. If the socket does not take all, the client gets this long, and its
/// connection counts as idle meanwhile.
async fn send_plain(
    stream: &TcpStream,
    bytes: &[u8],
    (guard, requests): (&ConnectionGuard, &WaitingRequests),
    write_max_ms: u64,
) -> io::Result<()> {
    let mut sent: usize = 0;
    let mut waiting = false;
    let mut buffered_bytes = BufferedBytes::default();
    while let Some(unsent) = bytes.get(sent..)
        && !unsent.is_empty()
    {
        match stream.try_write(unsent) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => {
                sent = sent.saturating_add(bytes);
                if waiting {
                    guard.moved();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !waiting {
                    waiting = true;
                    buffered_bytes
                        .set(counted(bytes), requests, guard.connection())
                        .map_err(unread)?;
                    guard.allow_ms(write_max_ms);
                    guard.connection().set_busy(false);
                }
                stream.writable().await?;
            }
            Err(error) => return Err(error),
        }
    }
    if waiting {
        guard.connection().set_busy(true);
    }
    Ok(())
}

/// Sends bytes over TLS. If the socket does not take all, the connection counts as idle meanwhile.
async fn send_tls(
    stream: &mut TlsStream<TcpStream>,
    bytes: &[u8],
    guard: &ConnectionGuard,
) -> io::Result<()> {
    let mut sending = pin!(async {
        let mut sent: usize = 0;
        while let Some(unsent) = bytes.get(sent..)
            && !unsent.is_empty()
        {
            match stream.write(unsent).await? {
                0 => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                bytes => sent = sent.saturating_add(bytes),
            }
            guard.moved();
        }
        stream.flush().await
    });
    let at_once = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
    if let Poll::Ready(sent) = at_once {
        return sent;
    }
    guard.connection().set_busy(false);
    sending.await?;
    guard.connection().set_busy(true);
    Ok(())
}

/// Returns the bytes that count. A longer single reply has many IDs, which count toward
/// `limits.unsent_max`.
fn counted(unsent: &[u8]) -> usize {
    unsent.len().min(UNSENT_BYTES)
}

/// Returns the error of a client that does not read; it ends the connection without a message.
fn unread(full: Full) -> io::Error {
    io::Error::other(format!("too many replies {} wait to be read", full.scope()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use snowmint_coord::ManualTimer;
    use tokio::net::TcpListener;

    use super::*;
    use crate::clients::tracker::{ConnectionTracker, ListenerBounds};
    use crate::requests::quota::Bounds;

    #[tokio::test]
    async fn unread_replies_end_connections_of_a_client_over_its_share() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let bounds = ListenerBounds { max: 1, key: "resp.connections_max", token_within_ms: None };
        let tracker = ConnectionTracker::new(bounds, Arc::new(ManualTimer::new(1_000)));
        let mut replies = Replies {
            stream: stream.into(),
            // More than both sockets take.
            unsent: vec![b'x'; 64 * 1024 * 1024],
            requests: WaitingRequests::within(Bounds {
                all: 20_000,
                share: 5_000,
                connection: 20_000,
            }),
            guard: Arc::new(tracker.admit(peer).unwrap()),
            write_max_ms: 60_000,
        };
        let refused = replies.send().now_or_never().expect("nothing is waited for").unwrap_err();
        assert!(refused.to_string().contains("of this connection wait to be read"), "{refused}");
        drop(client);
    }
}
