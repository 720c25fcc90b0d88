//! Access log of commands.

use snowmint_coord::lock;
use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use super::cmd;
use super::session::Session;
use crate::observe::log_line::{Issued, LogLine};
use crate::observe::meter::Protocol;
use crate::observe::trace::RequestSpan;

/// Name of a command that neither this server nor Redis has, or with a wrong number of arguments: its text may be a
/// token.
const UNKNOWN: &str = "(unknown)";

/// A command before its reply.
#[derive(Debug)]
pub(super) struct CommandLog {
    name: String,
    /// Argument in the place of a source.
    source: Option<String>,
    count: Option<u64>,
    begun_us: u64,
    /// Whether the command is queued: a line is only written if it is rejected, since it is
    /// recorded when it runs.
    is_queued: bool,
    pub(super) span: Option<RequestSpan>,
}

impl CommandLog {
    /// Returns `None` when neither the log nor traces record commands.
    pub(super) fn of(command: &Command<'_>, session: &Session) -> Option<Self> {
        let state = &session.state;
        let (service, live) = (&state.service, state.service.live());
        if !live.is_watched() {
            return None;
        }
        let is_queued = session.transaction.is_some() && cmd::waits_for_exec(command);
        let known = cmd::known(command);
        let name = known.map(|known| known.name).or_else(|| cmd::rejected_name(command));
        let name = name.map_or_else(|| UNKNOWN.to_owned(), str::to_ascii_uppercase);
        let arg = |index: usize| command.arg(index).and_then(|arg| std::str::from_utf8(arg).ok());
        let target = known.and_then(|known| cmd::target_of(known, command, session));
        let count = match name.as_str() {
            "INCR" => Some(1),
            "MINT" => arg(2).map_or(Some(1), |count| count.parse().ok()),
            "INCRBY" => arg(2).and_then(|count| count.parse().ok()),
            "HINCRBY" => arg(3).and_then(|count| count.parse().ok()),
            _ => None,
        };
        let source = target.and_then(Result::ok).map(|target| target.source);
        *lock(&session.last_error) = None;
        let traces = live.traces().filter(|_| !is_queued);
        let span = traces.map(|traces| traces.begin(Protocol::Resp, name.clone(), None));
        Some(Self { name, source, count, begun_us: service.now_us(), is_queued, span })
    }

    /// Writes the log line of the reply.
    pub(super) fn log_reply(&self, reply: &[u8], session: &Session) {
        if self.is_queued && !reply.starts_with(b"-") {
            return;
        }
        let service = &session.state.service;
        // Errors in Redis's own words are mistakes of the client.
        let error =
            reply.starts_with(b"-").then(|| lock(&session.last_error).unwrap_or(Code::BadRequest));
        // A name without a source may be a token in the wrong place.
        let source = self.source.as_deref().filter(|name| service.known(name).is_some());
        let issued = source.zip(self.count).filter(|_| error.is_none());
        let issued = issued.map(|(source, count)| Issued { source: source.to_owned(), count });
        let line = LogLine {
            protocol: Protocol::Resp,
            request: &self.name,
            issued: issued.as_ref(),
            source,
            outcome: error.map_or("ok", Code::as_str),
            micros: service.now_us().saturating_sub(self.begun_us),
            span: self.span.as_ref(),
        };
        line.log(service.live());
    }
}
