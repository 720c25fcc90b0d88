//! The line in the log for a command.

use snowmint_coord::catalog::check_name;
use snowmint_wire::resp::Command;

use crate::log_line::{Issued, Line};
use crate::meter::Protocol;
use crate::service::Service;

/// The longest name of a command.
const NAME_CHARS_MAX: usize = 32;

/// A command, before it is answered.
#[derive(Debug)]
pub(super) struct Asked {
    name: String,
    issues: Option<Issued>,
    begun_us: u64,
}

impl Asked {
    /// None when nobody wants lines.
    pub(super) fn of(command: &Command<'_>, service: &Service) -> Option<Self> {
        if !service.live().logs_access() {
            return None;
        }
        let arg = |index: usize| command.arg(index).and_then(|arg| std::str::from_utf8(arg).ok());
        let name: String = arg(0).unwrap_or_default().chars().take(NAME_CHARS_MAX).collect();
        let name = name.to_ascii_uppercase();
        let count = match name.as_str() {
            "INCR" => Some(1),
            "MINT" => arg(2).map_or(Some(1), |count| count.parse().ok()),
            "INCRBY" => arg(2).and_then(|count| count.parse().ok()),
            _ => None,
        };
        let source = arg(1).map(|arg| arg.split_once(':').map_or(arg, |(source, _)| source));
        let source = source.filter(|name| check_name("source", name).is_ok());
        let issues =
            source.zip(count).map(|(source, count)| Issued { source: source.to_owned(), count });
        Some(Self { name, issues, begun_us: service.begun_us() })
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
        };
        line.write();
    }
}
