//! What is told of a command.

use snowmint_coord::catalog::check_name;
use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use super::cmd;
use super::session::{Session, Target};
use crate::log_line::{Issued, Line};
use crate::meter::Protocol;
use crate::roster::lock;
use crate::trace::Span;

/// The longest name of a command.
const NAME_CHARS_MAX: usize = 32;

/// A command, before it is answered.
#[derive(Debug)]
pub(super) struct Asked {
    name: String,
    source: Option<String>,
    count: Option<u64>,
    begun_us: u64,
    pub(super) span: Option<Span>,
}

impl Asked {
    /// None when nobody wants to know.
    pub(super) fn of(command: &Command<'_>, session: &Session) -> Option<Self> {
        let door = &session.door;
        let (service, live) = (&door.service, door.service.live());
        if !live.is_watched() {
            return None;
        }
        // It is told of when it runs.
        if session.transaction.is_some() && cmd::waits_for_exec(command) {
            return None;
        }
        let arg = |index: usize| command.arg(index).and_then(|arg| std::str::from_utf8(arg).ok());
        let name: String = arg(0).unwrap_or_default().chars().take(NAME_CHARS_MAX).collect();
        let name = name.to_ascii_uppercase();
        let source = command.arg(1).unwrap_or_default();
        let target = match name.as_str() {
            "MINT" => Target::read(source),
            _ => Target::counter(source, &door.settings.default_counter_source),
        };
        let count = match name.as_str() {
            "INCR" => Some(1),
            "MINT" => arg(2).map_or(Some(1), |count| count.parse().ok()),
            "INCRBY" => arg(2).and_then(|count| count.parse().ok()),
            _ => None,
        };
        let source = target.ok().map(|target| target.source);
        let source = source.filter(|name| check_name("source", name).is_ok());
        *lock(&session.refusal) = None;
        let span = live.traces().map(|traces| traces.begin(Protocol::Resp, name.clone(), None));
        Some(Self { name, source, count, begun_us: service.begun_us(), span })
    }

    /// It was answered by this.
    pub(super) fn answered(&self, reply: &[u8], session: &Session) {
        let service = &session.door.service;
        // What Redis's own words refuse is wrong in itself.
        let error =
            reply.starts_with(b"-").then(|| lock(&session.refusal).unwrap_or(Code::BadRequest));
        let issued = self.source.clone().zip(self.count).filter(|_| error.is_none());
        let issued = issued.map(|(source, count)| Issued { source, count });
        let line = Line {
            protocol: Protocol::Resp,
            asked: &self.name,
            issued: issued.as_ref(),
            source: self.source.as_deref(),
            outcome: error.map_or("ok", Code::as_str),
            micros: service.begun_us().saturating_sub(self.begun_us),
            span: self.span.as_ref(),
        };
        line.tell(service.live());
    }
}
