//! One connection: bytes in, bytes out, and the limits between them.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use opentelemetry::trace::FutureExt as _;
use snowmint_wire::resp::{Next, Parser};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::Door;
use super::access::Asked;
use super::cmd::{self, Flow};
use super::session::Session;
use crate::accept::stopping;
use crate::roster::Ticket;
use crate::stream::Stream;
use crate::tls::Opening;

/// How much is read at once.
const READ_BYTES: usize = 16 * 1024;
/// Replies are sent when there are this many bytes of them, and at the end of what was read. A
/// client that sends without reading is not read from meanwhile, so no more than this, and one
/// reply, waits for it.
const UNSENT_BYTES: usize = 64 * 1024;

/// Talks to a client until one of both has enough. Errors of the socket end it: there is nobody left
/// to tell.
pub(super) async fn converse(
    (stream, opening): (TcpStream, Opening),
    door: Arc<Door>,
    ticket: Ticket,
    mut closing: watch::Receiver<bool>,
) {
    let peer = ticket.entry().peer;
    ticket.allow_ms(door.settings.frame_time_max.ms());
    let Some(stream) = opening.open(stream, peer, &mut closing).await else { return };
    let names = stream.names();
    let mut connection = Connection {
        stream,
        parser: Parser::new(),
        input: Vec::new(),
        midway: false,
        output: Vec::new(),
        session: Session::new(door, ticket, names),
    };
    let mut stopping = pin!(stopping(&mut closing));
    loop {
        let more = tokio::select! {
            biased;
            more = connection.read() => more,
            () = &mut stopping => return,
        };
        let answered = match more {
            Ok(0) => return,
            Ok(_) => connection.answer().await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(Afterwards::GoOn) => tokio::task::consume_budget().await,
            Ok(Afterwards::Close) => return connection.close().await,
            Err(error) => {
                tracing::debug!(%peer, %error, "connection lost");
                return;
            }
        }
    }
}

struct Connection {
    stream: Stream,
    parser: Parser,
    /// Bytes from the first request that has not been answered.
    input: Vec<u8>,
    /// Whether the first of them has its time limit, which counts from its first byte.
    midway: bool,
    /// Replies not yet sent.
    output: Vec<u8>,
    session: Session,
}

enum Afterwards {
    GoOn,
    Close,
}

impl Connection {
    /// Waits for bytes and reads some: 0 at the end of the stream. Nothing is lost when it is
    /// dropped half-way.
    async fn read(&mut self) -> io::Result<usize> {
        if !self.midway {
            self.session.ticket.allow_ms(self.session.door.settings.idle_max.ms());
        }
        loop {
            self.input.reserve(READ_BYTES);
            {
                let mut read = pin!(self.stream.read_buf(&mut self.input));
                let once = poll_fn(|context| match read.as_mut().poll(context) {
                    Poll::Ready(done) => Poll::Ready(Some(done)),
                    Poll::Pending => Poll::Ready(None),
                });
                if let Some(done) = once.await {
                    return done;
                }
            }
            if self.input.is_empty() {
                // Nothing to read now: an idle connection holds no buffers.
                self.input = Vec::new();
                self.output = Vec::new();
            }
            self.stream.readable().await?;
        }
    }

    /// Answers every request that is complete, in order.
    async fn answer(&mut self) -> io::Result<Afterwards> {
        let mut at: usize = 0;
        let mut requests: u64 = 0;
        let begun_us = self.session.service.begun_us();
        self.session.follow();
        let outcome = loop {
            let unread = self.input.get(at..).unwrap_or_default();
            let (command, bytes) = match self.parser.next(unread) {
                Ok(Next::Command { command, bytes }) => (command, bytes),
                Ok(Next::Incomplete { .. }) => break Afterwards::GoOn,
                Err(error) => {
                    // Where the next request begins is not known any more.
                    self.session.reply(&mut self.output).error("ERR", &error.to_string());
                    break Afterwards::Close;
                }
            };
            at = at.saturating_add(bytes);
            if command.is_empty() {
                continue;
            }
            requests = requests.saturating_add(1);
            let asked = Asked::of(&command, &self.session.door.service);
            let begin = self.output.len();
            let flow = cmd::run(&mut self.session, &command, &mut self.output);
            let closes = matches!(flow, Flow::Close);
            match flow {
                Flow::Next | Flow::Close => self.tell(asked, begin),
                Flow::Wait(work) => {
                    // Whoever waits for earlier replies need not wait for this one.
                    self.flush().await?;
                    self.session.ticket.allow_for_now();
                    let run = work.run(&mut self.session, &mut self.output);
                    let hold = match asked.as_ref().and_then(|asked| asked.span.clone()) {
                        None => run.await,
                        Some(span) => run.with_context(span).await,
                    };
                    self.tell(asked, 0);
                    self.flush().await?;
                    drop(hold);
                }
            }
            if closes {
                break Afterwards::Close;
            }
            if self.output.len() >= UNSENT_BYTES {
                self.flush().await?;
            }
        };
        self.session.ticket.answered(requests);
        if requests > 0 {
            self.session.settle();
            self.session.service.answered(requests, begun_us);
        }
        self.flush().await?;
        self.input.drain(..at.min(self.input.len()));
        if self.input.is_empty() {
            self.midway = false;
        } else if !self.midway || at > 0 {
            self.midway = true;
            self.session.ticket.allow_ms(self.session.door.settings.frame_time_max.ms());
        }
        Ok(outcome)
    }

    /// A line in the log, if one is wanted, for the request whose reply begins here.
    fn tell(&self, asked: Option<Asked>, begin: usize) {
        if let Some(asked) = asked {
            let reply = self.output.get(begin..).unwrap_or_default();
            asked.answered(reply, &self.session.door.service);
        }
    }

    /// Says that there is nothing more, where that is not what a closed socket says.
    async fn close(mut self) {
        if let Stream::Tls(stream) = &mut self.stream {
            self.session.ticket.allow_ms(self.session.door.settings.write_time_max.ms());
            // Whoever has gone already need not be told.
            let _ = stream.shutdown().await;
        }
    }

    /// Sends the replies. A client that does not read them within the limit is cut off.
    async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        match &mut self.stream {
            Stream::Plain(_) => self.flush_plain().await?,
            Stream::Tls(stream) => {
                self.session.ticket.allow_ms(self.session.door.settings.write_time_max.ms());
                stream.write_all(&self.output).await?;
                stream.flush().await?;
            }
        }
        self.output.clear();
        // A large batch is rare: do not keep its room.
        self.output.shrink_to(UNSENT_BYTES);
        Ok(())
    }

    async fn flush_plain(&mut self) -> io::Result<()> {
        let Stream::Plain(stream) = &self.stream else { return Ok(()) };
        let mut sent: usize = 0;
        let mut waiting = false;
        while let Some(unsent) = self.output.get(sent..)
            && !unsent.is_empty()
        {
            match stream.try_write(unsent) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => sent = sent.saturating_add(bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !waiting {
                        waiting = true;
                        self.session
                            .ticket
                            .allow_ms(self.session.door.settings.write_time_max.ms());
                    }
                    stream.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
