//! One connection: bytes in, bytes out, and the limits between them.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use snowmint_coord::lock;
use snowmint_wire::resp::{Next, Parser};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::buffered_bytes::{self, BufferedBytes};
use super::dispatcher::{Dispatcher, RemainingWork};
use super::oversized::{Oversized, Skipped};
use super::replies::Replies;
use super::session::Session;
use super::state::RespState;
use crate::clients::tracker::ConnectionGuard;
use crate::net::shutdown::stopping;
use crate::net::tls::ConnectionOpening;

/// Bytes that one read takes, at most.
const READ_BYTES: usize = 16 * 1024;
/// Longest request of a client before `AUTH`: it has a name and a token to send.
const UNNAMED_BYTES_MAX: usize = 4 * 1024;

/// Serves a client until either side closes. Errors of the socket end the connection: no reader is
/// left for a message.
pub(super) async fn converse(
    (stream, opening): (TcpStream, ConnectionOpening),
    state: Arc<RespState>,
    guard: ConnectionGuard,
    mut closing: watch::Receiver<bool>,
) {
    let peer = guard.connection().peer;
    guard.allow_ms(state.settings.frame_time_max.ms());
    let Some(stream) = opening.open(stream, peer, &mut closing).await else { return };
    let names = stream.names();
    lock(&guard.connection().label).local = stream.local_addr();
    let guard = Arc::new(guard);
    let replies = Replies {
        stream,
        unsent: Vec::new(),
        requests: state.requests.clone(),
        guard: Arc::clone(&guard),
        write_max_ms: state.settings.write_time_max.ms(),
    };
    let session = Session::new(state, Arc::clone(&guard), names);
    let mut connection = RespConnection {
        dispatcher: Dispatcher { replies, session },
        parser: Parser::new(),
        input: Vec::new(),
        buffered_bytes: BufferedBytes::default(),
        midway: false,
        oversized: None,
    };
    let mut stopping = pin!(stopping(&mut closing));
    loop {
        let more = tokio::select! {
            biased;
            more = connection.read() => more,
            reason = guard.end_requested() => return connection.dispatcher.leave(reason).await,
            () = &mut stopping => return,
        };
        guard.connection().set_busy(true);
        let outcome = match more {
            Ok(0) => return,
            Ok(_) => connection.respond().await,
            Err(error) => Err(error),
        };
        guard.connection().set_busy(false);
        match outcome {
            Ok(Afterwards::Continue) => {
                // A connection with steady requests is never idle, and yet may have to end.
                if let Some(reason) = guard.connection().end_requested() {
                    return connection.dispatcher.leave(reason).await;
                }
                tokio::task::consume_budget().await;
            }
            Ok(Afterwards::Close) => return connection.dispatcher.replies.close().await,
            Err(error) => {
                tracing::debug!(%peer, %error, "connection lost");
                return;
            }
        }
    }
}

struct RespConnection {
    dispatcher: Dispatcher,
    parser: Parser,
    /// Bytes from the first unfinished request on.
    input: Vec<u8>,
    buffered_bytes: BufferedBytes,
    /// Whether the first of them has its time limit, which counts from its first byte.
    midway: bool,
    /// Request above a limit, whose bytes are skipped.
    oversized: Option<Oversized>,
}

enum Afterwards {
    Continue,
    Close,
}

impl RespConnection {
    /// Waits for bytes and reads some: 0 at the end of the stream. A drop half-way loses nothing.
    async fn read(&mut self) -> io::Result<usize> {
        let Dispatcher { replies, session } = &mut self.dispatcher;
        if !self.midway {
            session.guard.allow_ms(session.state.settings.idle_max.ms());
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
    async fn respond(&mut self) -> io::Result<Afterwards> {
        let mut at: usize = 0;
        let mut requests: u64 = 0;
        let was_skipping = self.oversized.is_some();
        let dispatcher = &mut self.dispatcher;
        let begun_us = dispatcher.session.service.now_us();
        dispatcher.session.follow();
        let outcome = loop {
            let unread = self.input.get(at..).unwrap_or_default();
            if let Some(oversized) = &mut self.oversized {
                match oversized.skip(unread) {
                    Ok(Skipped::Part(bytes)) => {
                        at = at.saturating_add(bytes);
                        break Afterwards::Continue;
                    }
                    Ok(Skipped::Whole(bytes)) => {
                        at = at.saturating_add(bytes);
                        requests = requests.saturating_add(1);
                        dispatcher.reject_oversized(oversized);
                        self.oversized = None;
                        self.parser = Parser::new();
                        continue;
                    }
                    Err(error) => {
                        dispatcher.reject_bytes(error);
                        break Afterwards::Close;
                    }
                }
            }
            let next = self.parser.next(unread);
            let length = match &next {
                Ok(Next::Command { bytes, .. }) => *bytes,
                _ => unread.len(),
            };
            if next.is_ok() && dispatcher.session.is_anonymous && length > UNNAMED_BYTES_MAX {
                let message = format!(
                    "Protocol error: request longer than {UNNAMED_BYTES_MAX} bytes before AUTH"
                );
                let output = &mut dispatcher.replies.unsent;
                dispatcher.session.reply(output).error("ERR", &message);
                break Afterwards::Close;
            }
            let (command, bytes) = match next {
                Ok(Next::Command { command, bytes }) => (command, bytes),
                Ok(Next::Incomplete) => break Afterwards::Continue,
                Err(error) => {
                    self.oversized =
                        Oversized::new(error).filter(|_| !dispatcher.session.is_anonymous);
                    if self.oversized.is_some() {
                        continue;
                    }
                    dispatcher.reject_bytes(error);
                    break Afterwards::Close;
                }
            };
            at = at.saturating_add(bytes);
            if command.is_empty() {
                continue;
            }
            requests = requests.saturating_add(1);
            if dispatcher.replies.unsent.capacity() == 0 {
                // Room for all replies at once: they are about as long as the requests.
                dispatcher.replies.unsent.reserve(self.input.len().min(READ_BYTES));
            }
            let rest = dispatcher.begin(&command);
            if matches!(rest, RemainingWork::Nothing) && !dispatcher.replies.are_many() {
                continue;
            }
            if !dispatcher.finish(rest).await? {
                break Afterwards::Close;
            }
        };
        let session = &mut dispatcher.session;
        session.guard.responded(requests);
        if requests > 0 {
            session.count_issued();
            session.service.record_responses(requests, begun_us);
        }
        dispatcher.replies.send().await?;
        self.input.drain(..at.min(self.input.len()));
        match outcome {
            Afterwards::Continue => {
                let is_another = at > 0 && !(was_skipping && requests == 0);
                self.keep_rest(is_another).await
            }
            Afterwards::Close => Ok(outcome),
        }
    }

    /// Keeps the received part of the next request, if the limits permit it.
    async fn keep_rest(&mut self, is_another: bool) -> io::Result<Afterwards> {
        if self.input.is_empty() && self.oversized.is_none() {
            self.midway = false;
            self.buffered_bytes = BufferedBytes::default();
            return Ok(Afterwards::Continue);
        }
        let Dispatcher { replies, session } = &mut self.dispatcher;
        if !self.midway || is_another {
            self.midway = true;
            session.guard.allow_ms(session.state.settings.frame_time_max.ms());
        }
        let (requests, connection) = (&session.state.requests, session.guard.connection());
        let Err(full) = self.buffered_bytes.set(self.input.capacity(), requests, connection) else {
            return Ok(Afterwards::Continue);
        };
        let refused =
            buffered_bytes::limit_error("half a request", self.input.len(), full, requests);
        session.refused(refused.code(), None);
        let prefix = refused.code().row().resp.as_str();
        session.reply(&mut replies.unsent).error(prefix, refused.message());
        replies.send().await?;
        Ok(Afterwards::Close)
    }
}
