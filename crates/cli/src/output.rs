//! Standard output: results, and nothing else.

use std::fmt;
use std::io::{self, BufWriter, StdoutLock, Write as _};

use serde::Serialize;

use crate::exit::{Failure, Outcome};

/// Standard output, buffered. [`Output::flush`] before the command ends: errors of a write must
/// not get lost in a drop.
pub(crate) struct Output {
    inner: BufWriter<StdoutLock<'static>>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { inner: BufWriter::with_capacity(64 * 1024, io::stdout().lock()) }
    }

    /// One line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Outcome {
        writeln!(self.inner, "{line}").map_err(failure)
    }

    /// One line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Outcome {
        let json = serde_json::to_string(value)
            .map_err(|error| Failure::unavailable(format!("internal error: {error}")))?;
        self.line(json)
    }

    /// Lines as they are.
    pub(crate) fn text(&mut self, text: &str) -> Outcome {
        self.inner.write_all(text.as_bytes()).map_err(failure)
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.inner.flush().map_err(failure)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::ClosedPipe;
    }
    Failure::unavailable(format!("standard output cannot be written: {error}"))
}
