//! Records of each request, where configured: a line in the log (`log.access`), and a span.

use opentelemetry::KeyValue;
use opentelemetry::trace::{Status, TraceContextExt as _};

use crate::observe::live::Live;
use crate::observe::meter::Protocol;
use crate::observe::trace::RequestSpan;

/// Target by which a log filter selects these lines.
const TARGET: &str = "snowmint::access";
/// Longest part of a request that is shown, in characters.
const REQUEST_CHARS_MAX: usize = 200;

/// IDs that a response issued; the handler that knows them attaches them to the response.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) source: String,
    pub(crate) count: u64,
}

/// One request and its response.
#[derive(Debug)]
pub(crate) struct LogLine<'a> {
    pub(crate) protocol: Protocol,
    /// Method and path, or command.
    pub(crate) request: &'a str,
    pub(crate) issued: Option<&'a Issued>,
    /// Source that the request named, where `issued` is absent.
    pub(crate) source: Option<&'a str>,
    /// `ok`, or the code of the error.
    pub(crate) outcome: &'a str,
    pub(crate) micros: u64,
    pub(crate) span: Option<&'a RequestSpan>,
}

impl LogLine<'_> {
    /// Writes the access log line and ends the span, where they are on.
    pub(crate) fn log(&self, live: &Live) {
        if live.logs_access() {
            self.write();
        }
        if let Some(span) = self.span {
            end(span, self);
        }
    }

    /// Escapes the request: callers cannot break a line.
    fn write(&self) {
        let LogLine { protocol, request, issued, source, outcome, micros, .. } = self;
        let protocol = protocol.name();
        let request: String =
            request.chars().take(REQUEST_CHARS_MAX).flat_map(char::escape_debug).collect();
        let source = issued.map(|it| it.source.as_str()).or(*source);
        let count = issued.map(|it| it.count);
        tracing::info!(target: TARGET, protocol, %request, source, count, outcome, micros);
    }
}

/// Ends a request's span with the result.
fn end(span: &RequestSpan, line: &LogLine<'_>) {
    let span = span.span();
    if span.is_recording() {
        if let Some(issued) = line.issued {
            span.set_attribute(KeyValue::new("snowmint.source", issued.source.clone()));
            let count = i64::try_from(issued.count).unwrap_or(i64::MAX);
            span.set_attribute(KeyValue::new("snowmint.count", count));
        }
        span.set_attribute(KeyValue::new("snowmint.outcome", line.outcome.to_owned()));
        if line.outcome != "ok" {
            span.set_status(Status::error(line.outcome.to_owned()));
        }
    }
    span.end();
}
