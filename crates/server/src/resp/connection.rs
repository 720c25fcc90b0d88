//! One connection: bytes in, bytes out, and the limits between them.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use snowmint_wire::resp::{Next, Parser};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::Door;
use super::answers::{Answers, Rest};
use super::kept::{self, Kept};
use super::replies::Replies;
use super::session::Session;
use crate::accept::stopping;
use crate::roster::Ticket;
use crate::tls::Opening;

/// Bytes that one read takes, at most.
const READ_BYTES: usize = 16 * 1024;
/// Longest request of a client before `AUTH`: it has a name and a token to send.
const UNNAMED_BYTES_MAX: usize = 4 * 1024;

/// Serves a client until either side closes. Errors of the socket end the connection: no reader is
/// left for a message.
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
    let ticket = Arc::new(ticket);
    let replies = Replies {
        stream,
        unsent: Vec::new(),
        requests: door.requests.clone(),
        ticket: Arc::clone(&ticket),
        write_max_ms: door.settings.write_time_max.ms(),
    };
    let session = Session::new(door, Arc::clone(&ticket), names);
    let mut connection = Connection {
        answers: Answers { replies, session },
        parser: Parser::new(),
        input: Vec::new(),
        kept: Kept::default(),
        midway: false,
    };
    let mut stopping = pin!(stopping(&mut closing));
    loop {
        let more = tokio::select! {
            biased;
            more = connection.read() => more,
            why = ticket.asked_to_leave() => return connection.answers.leave(why).await,
            () = &mut stopping => return,
        };
        ticket.entry().set_busy(true);
        let answered = match more {
            Ok(0) => return,
            Ok(_) => connection.answer().await,
            Err(error) => Err(error),
        };
        ticket.entry().set_busy(false);
        match answered {
            Ok(Afterwards::GoOn) => {
                // A connection with steady requests is never idle, and yet may have to end.
                if let Some(why) = ticket.entry().asked_to_leave() {
                    return connection.answers.leave(why).await;
                }
                tokio::task::consume_budget().await;
            }
            Ok(Afterwards::Close) => return connection.answers.replies.close().await,
            Err(error) => {
                tracing::debug!(%peer, %error, "connection lost");
                return;
            }
        }
    }
}

struct Connection {
    answers: Answers,
    parser: Parser,
    /// Bytes from the first unfinished request on.
    input: Vec<u8>,
    kept: Kept,
    /// Whether the first of them has its time limit, which counts from its first byte.
    midway: bool,
}

enum Afterwards {
    GoOn,
    Close,
}

impl Connection {
    /// Waits for bytes and reads some: 0 at the end of the stream. A drop half-way loses nothing.
    async fn read(&mut self) -> io::Result<usize> {
        let Answers { replies, session } = &mut self.answers;
        if !self.midway {
            session.ticket.allow_ms(session.door.settings.idle_max.ms());
        }
        loop {
            self.input.reserve(READ_BYTES);
            {
                let mut read = pin!(replies.stream.read_buf(&mut self.input));
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
                self.parser.rest();
                replies.unsent = Vec::new();
            }
            replies.stream.readable().await?;
        }
    }

    /// Replies to every complete request, in order.
    async fn answer(&mut self) -> io::Result<Afterwards> {
        let mut at: usize = 0;
        let mut requests: u64 = 0;
        let answers = &mut self.answers;
        let begun_us = answers.session.service.begun_us();
        answers.session.follow();
        let outcome = loop {
            let unread = self.input.get(at..).unwrap_or_default();
            let next = self.parser.next(unread);
            let length = match &next {
                Ok(Next::Command { bytes, .. }) => *bytes,
                _ => unread.len(),
            };
            if next.is_ok() && answers.session.is_nobody && length > UNNAMED_BYTES_MAX {
                let message = format!(
                    "Protocol error: request longer than {UNNAMED_BYTES_MAX} bytes before AUTH"
                );
                let output = &mut answers.replies.unsent;
                answers.session.reply(output).error("ERR", &message);
                break Afterwards::Close;
            }
            let (command, bytes) = match next {
                Ok(Next::Command { command, bytes }) => (command, bytes),
                Ok(Next::Incomplete { .. }) => break Afterwards::GoOn,
                Err(error) => {
                    // The beginning of the next request is unknown now.
                    let output = &mut answers.replies.unsent;
                    answers.session.reply(output).error("ERR", &error.to_string());
                    break Afterwards::Close;
                }
            };
            at = at.saturating_add(bytes);
            if command.is_empty() {
                continue;
            }
            requests = requests.saturating_add(1);
            if answers.replies.unsent.capacity() == 0 {
                // Room for all replies at once: they are about as long as the requests.
                answers.replies.unsent.reserve(self.input.len().min(READ_BYTES));
            }
            let rest = answers.begin(&command);
            if matches!(rest, Rest::Nothing) && !answers.replies.are_many() {
                continue;
            }
            if !answers.finish(rest).await? {
                break Afterwards::Close;
            }
        };
        let session = &mut answers.session;
        session.ticket.answered(requests);
        if requests > 0 {
            session.settle();
            session.service.answered(requests, begun_us);
        }
        answers.replies.send().await?;
        self.input.drain(..at.min(self.input.len()));
        match outcome {
            Afterwards::GoOn => self.keep_rest(at > 0).await,
            Afterwards::Close => Ok(outcome),
        }
    }

    /// Keeps the received part of the next request, if the limits permit it.
    async fn keep_rest(&mut self, is_another: bool) -> io::Result<Afterwards> {
        if self.input.is_empty() {
            self.midway = false;
            self.kept = Kept::default();
            return Ok(Afterwards::GoOn);
        }
        let Answers { replies, session } = &mut self.answers;
        if !self.midway || is_another {
            self.midway = true;
            session.ticket.allow_ms(session.door.settings.frame_time_max.ms());
        }
        let (requests, connection) = (&session.door.requests, session.ticket.entry());
        let Err(full) = self.kept.hold(self.input.capacity(), requests, connection) else {
            return Ok(Afterwards::GoOn);
        };
        let refused = kept::refusal("half a request", self.input.len(), full, requests);
        session.refused(refused.code(), None);
        let prefix = refused.code().row().resp.as_str();
        session.reply(&mut replies.unsent).error(prefix, refused.message());
        replies.send().await?;
        Ok(Afterwards::Close)
    }
}
