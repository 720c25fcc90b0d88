//! What is told of a command.

use snowmint_coord::catalog::check_name;
use snowmint_wire::resp::Command;

use super::Door;
use super::session::Target;
use crate::log_line::{Issued, Line};
use crate::meter::Protocol;
use crate::service::Service;
use crate::trace::Span;

/// The longest name of a command.
const NAME_CHARS_MAX: usize = 32;

/// A command, before it is answered.
#[derive(Debug)]
pub(super) struct Asked {
    name: String,
    issues: Option<Issued>,
    begun_us: u64,
    pub(super) span: Option<Span>,
}

impl Asked {
    /// None when nobody wants to know.
    pub(super) fn of(command: &Command<'_>, door: &Door) -> Option<Self> {
        let (service, live) = (&door.service, door.service.live());
        if !live.is_watched() {
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
        let issues = source.zip(count).map(|(source, count)| Issued { source, count });
        let span = live.traces().map(|traces| traces.begin(Protocol::Resp, name.clone(), None));
        Some(Self { name, issues, begun_us: service.begun_us(), span })
    }

    /// It was answered by this.
    pub(super) fn answered(self, reply: &[u8], service: &Service) {
        let error = reply.strip_prefix(b"-").map(|error| {
            let end = error.iter().position(u8::is_ascii_whitespace).unwrap_or(error.len());
            String::from_utf8_lossy(error.get(..end).unwrap_or_default())
        });
        let line = Line {
            protocol: Protocol::Resp,
            asked: &self.name,
            issued: self.issues.as_ref().filter(|_| error.is_none()),
            outcome: error.as_deref().unwrap_or("ok"),
            micros: service.begun_us().saturating_sub(self.begun_us),
            span: self.span.as_ref(),
        };
        line.tell(service.live());
    }
}
