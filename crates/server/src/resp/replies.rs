//! Replies on their way to a client: collected, and sent together.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::roster::Ticket;
use crate::stream::Stream;

/// Replies are sent when there are this many bytes of them, and at the end of what was read. A
/// client that sends without reading is not read from meanwhile, so no more than this, and one
/// reply, waits for it.
const UNSENT_BYTES: usize = 64 * 1024;

/// A client's end of the socket, and what it has still to be sent.
pub(super) struct Replies {
    pub(super) stream: Stream,
    pub(super) unsent: Vec<u8>,
    pub(super) ticket: Arc<Ticket>,
    /// How long the client may take to read.
    pub(super) write_max_ms: u64,
}

impl Replies {
    /// Whether there are so many that they must be sent before there are more.
    pub(super) fn are_many(&self) -> bool {
        self.unsent.len() >= UNSENT_BYTES
    }

    /// One more, after those that there are.
    pub(super) fn add(&mut self, reply: Vec<u8>) {
        if self.unsent.is_empty() {
            self.unsent = reply;
        } else {
            self.unsent.extend_from_slice(&reply);
        }
    }

    /// Sends them. A client that does not read them within the limit is cut off.
    pub(super) async fn send(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        match &mut self.stream {
            Stream::Plain(stream) => {
                send_plain(stream, &self.unsent, &self.ticket, self.write_max_ms).await?;
            }
            Stream::Tls(stream) => {
                self.ticket.allow_ms(self.write_max_ms);
                stream.write_all(&self.unsent).await?;
                stream.flush().await?;
            }
        }
        self.unsent.clear();
        // A large batch is rare: do not keep its room.
        self.unsent.shrink_to(UNSENT_BYTES);
        Ok(())
    }

    /// Says that there is nothing more, where that is not what a closed socket says.
    pub(super) async fn close(mut self) {
        if let Stream::Tls(stream) = &mut self.stream {
            self.ticket.allow_ms(self.write_max_ms);
            // A client that has gone already need not be told.
            let _ = stream.shutdown().await;
        }
    }
}

/// If the socket does not take all at once, the client has so long for it, in which its connection counts as at rest.
async fn send_plain(
    stream: &TcpStream,
    bytes: &[u8],
    ticket: &Ticket,
    write_max_ms: u64,
) -> io::Result<()> {
    let mut sent: usize = 0;
    let mut waiting = false;
    while let Some(unsent) = bytes.get(sent..)
        && !unsent.is_empty()
    {
        match stream.try_write(unsent) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => {
                sent = sent.saturating_add(bytes);
                if waiting {
                    ticket.moved();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if !waiting {
                    waiting = true;
                    ticket.allow_ms(write_max_ms);
                    ticket.entry().set_busy(false);
                }
                stream.writable().await?;
            }
            Err(error) => return Err(error),
        }
    }
    if waiting {
        ticket.entry().set_busy(true);
    }
    Ok(())
}
