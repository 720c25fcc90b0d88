//! What is told of each request where that is wanted: a line in the log (`log.access`), and a span.

use crate::live::Live;
use crate::meter::Protocol;
use crate::trace::{self, Span};

/// The name by which a filter of the log may keep these lines apart.
const TARGET: &str = "snowmint::access";
/// The longest part of a request that is shown.
const ASKED_CHARS_MAX: usize = 200;

/// What an answer issued; passed along with the answer by the code that knows.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) source: String,
    pub(crate) count: u64,
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) protocol: Protocol,
    /// Method and path, or command.
    pub(crate) asked: &'a str,
    pub(crate) issued: Option<&'a Issued>,
    /// What it was about, where nothing else says so.
    pub(crate) source: Option<&'a str>,
    /// `ok`, or the code of the error.
    pub(crate) outcome: &'a str,
    pub(crate) micros: u64,
    pub(crate) span: Option<&'a Span>,
}

impl Line<'_> {
    /// Writes it to the access log and the span, as far as they are on.
    pub(crate) fn tell(&self, live: &Live) {
        if live.logs_access() {
            self.write();
        }
        if let Some(span) = self.span {
            trace::end(span, self);
        }
    }

    /// What callers send cannot break a line.
    fn write(&self) {
        let Line { protocol, asked, issued, source, outcome, micros, .. } = self;
        let protocol = protocol.name();
        let asked: String =
            asked.chars().take(ASKED_CHARS_MAX).flat_map(char::escape_debug).collect();
        let source = issued.map(|it| it.source.as_str()).or(*source);
        let count = issued.map(|it| it.count);
        tracing::info!(target: TARGET, protocol, %asked, source, count, outcome, micros);
    }
}
