//! Commands of one connection, each with its reply.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use futures_util::future::Either;
use opentelemetry::trace::FutureExt as _;
use snowmint_wire::resp::{Command, Next, Parser, ProtocolError};

use super::access::CommandLog;
use super::cmd::{self, CommandWork, Flow};
use super::oversized::Oversized;
use super::replies::Replies;
use super::session::Session;
use super::transaction::Transaction;
use crate::clients::tracker::EndReason;
use crate::service::UnsentPermit;

/// Executor of commands.
pub(super) struct Dispatcher {
    pub(super) replies: Replies,
    pub(super) session: Session,
}

/// Remaining work of a command.
pub(super) enum RemainingWork {
    /// No work; the next command follows.
    Nothing,
    /// No work; the connection closes.
    Close,
    /// Work that may have to wait.
    Work(Box<dyn CommandWork>, Option<CommandLog>),
    /// Commands of a transaction.
    Exec(Box<Transaction>),
}

impl Dispatcher {
    /// Runs a command as far as it needs no waiting.
    #[inline]
    pub(super) fn begin(&mut self, command: &Command<'_>) -> RemainingWork {
        let Self { replies, session } = self;
        let command_log = CommandLog::of(command, session);
        let begin = replies.unsent.len();
        let flow = cmd::run(session, command, &mut replies.unsent);
        if let (Some(command_log), false) = (&command_log, matches!(flow, Flow::Wait(_))) {
            command_log.log_reply(replies.unsent.get(begin..).unwrap_or_default(), session);
        }
        if !matches!(flow, Flow::Wait(_)) && session.reply_mode.drops_reply() {
            replies.unsent.truncate(begin);
        }
        match flow {
            Flow::Next => RemainingWork::Nothing,
            Flow::Close => RemainingWork::Close,
            Flow::Wait(work) => RemainingWork::Work(work, command_log),
            Flow::Exec(transaction) => RemainingWork::Exec(transaction),
        }
    }

    /// Rejects a request that was skipped.
    pub(super) fn reject_oversized(&mut self, oversized: &Oversized) {
        let Self { replies, session } = self;
        let mut parser = Parser::new();
        let Ok(Next::Command { command, .. }) = parser.next(oversized.name()) else { return };
        let command_log = CommandLog::of(&command, session);
        let begin = replies.unsent.len();
        cmd::reject_oversized(session, &command, &oversized.excess(), &mut replies.unsent);
        if let Some(command_log) = &command_log {
            command_log.log_reply(replies.unsent.get(begin..).unwrap_or_default(), session);
        }
        if session.reply_mode.drops_reply() {
            replies.unsent.truncate(begin);
        }
    }

    /// Rejects bytes that are no request. The beginning of the next request is unknown after them.
    pub(super) fn reject_bytes(&mut self, error: ProtocolError) {
        self.session.reply(&mut self.replies.unsent).error("ERR", &error.to_string());
    }

    /// Does the remaining work; returns whether there is a next command.
    pub(super) async fn finish(&mut self, rest: RemainingWork) -> io::Result<bool> {
        match rest {
            RemainingWork::Nothing => {}
            RemainingWork::Close => return Ok(false),
            RemainingWork::Work(work, command_log) => self.work(work, command_log).await?,
            RemainingWork::Exec(transaction) => self.exec(&transaction).await?,
        }
        if self.replies.are_many() {
            self.replies.send().await?;
        }
        Ok(true)
    }

    /// Sends a client the reason why its connection ends.
    pub(super) async fn leave(self, reason: EndReason) {
        let Self { mut replies, session } = self;
        let mut reply = session.reply(&mut replies.unsent);
        match reason {
            EndReason::Room => reply.error(
                "ERR",
                "closed: another connection needs the place of this one (resp.connections_max)",
            ),
            // Over RESP an error costs no lasting memory: as in Redis, only the time without AUTH
            // counts.
            EndReason::NoToken | EndReason::Refused => {
                let within_ms = session.state.settings.auth_time_max.ms();
                let message = format!("closed: no AUTH within {within_ms} ms (resp.auth_time_max)");
                reply.error("NOAUTH", &message);
            }
        }
        // A client that has disconnected needs no message.
        if replies.send().await.is_ok() {
            replies.close().await;
        }
    }

    /// Runs the commands of a transaction, as if they had been sent only now.
    async fn exec(&mut self, transaction: &Transaction) -> io::Result<()> {
        self.session.is_executing = true;
        let executed = self.execute(transaction).await;
        self.session.is_executing = false;
        self.session.wants_cache = false;
        executed
    }

    async fn execute(&mut self, transaction: &Transaction) -> io::Result<()> {
        let mut parser = Parser::new();
        let mut unread = transaction.requests();
        self.session.is_executing = true;
        // The commands were written as requests and are read as requests.
        while let Ok(Next::Command { command, bytes }) = parser.next(unread) {
            if let RemainingWork::Work(work, command_log) = self.begin(&command) {
                self.work(work, command_log).await?;
            }
            if self.replies.are_many() {
                self.replies.send().await?;
            }
            unread = unread.get(bytes..).unwrap_or_default();
        }
        self.session.is_executing = false;
        Ok(())
    }

    /// Runs work that may have to wait. If it has to, earlier replies are sent first; else they are
    /// sent together. Replies that count as unsent are sent immediately.
    async fn work(
        &mut self,
        work: Box<dyn CommandWork>,
        command_log: Option<CommandLog>,
    ) -> io::Result<()> {
        let Self { replies, session } = self;
        let mut reply = Vec::new();
        let unsent_permit: UnsentPermit = {
            let run = work.run(session, &mut reply);
            let mut run =
                pin!(match command_log.as_ref().and_then(|command_log| command_log.span.clone()) {
                    None => Either::Left(run),
                    Some(span) => Either::Right(run.with_context(span)),
                });
            let at_once = poll_fn(|context| match run.as_mut().poll(context) {
                Poll::Ready(unsent_permit) => Poll::Ready(Some(unsent_permit)),
                Poll::Pending => Poll::Ready(None),
            });
            match at_once.await {
                Some(unsent_permit) => unsent_permit,
                None => {
                    // Both at once: a client that does not read does not use up the time of the
                    // command.
                    let send = async {
                        let sent = replies.send().await;
                        replies.guard.allow_for_now();
                        sent
                    };
                    let ((), unsent_permit) = tokio::try_join!(send, async { Ok(run.await) })?;
                    unsent_permit
                }
            }
        };
        if let Some(command_log) = command_log {
            command_log.log_reply(&reply, session);
        }
        if session.reply_mode.drops_reply() {
            reply.clear();
        }
        replies.add(reply);
        if unsent_permit.counts() {
            replies.send().await?;
        }
        Ok(())
    }
}
