//! One line in the log for each request, where that is wanted: `log.access`.

use crate::meter::Protocol;

/// The name by which a filter of the log may keep these lines apart.
const TARGET: &str = "snowmint::access";
/// The longest part of a request that is shown.
const ASKED_CHARS_MAX: usize = 200;

/// What an answer issued: told by whoever knows, with the answer.
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
    /// `ok`, or the code of the error.
    pub(crate) outcome: &'a str,
    pub(crate) micros: u64,
}

impl Line<'_> {
    /// Writes it. What callers send cannot break a line.
    pub(crate) fn write(&self) {
        let Line { protocol, asked, issued, outcome, micros } = self;
        let protocol = protocol.name();
        let asked: String =
            asked.chars().take(ASKED_CHARS_MAX).flat_map(char::escape_debug).collect();
        let (source, count) = (issued.map(|it| it.source.as_str()), issued.map(|it| it.count));
        tracing::info!(target: TARGET, protocol, %asked, source, count, outcome, micros);
    }
}
