//! Standard output: results, and nothing else.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write as _};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use serde::Serialize;
use snowmint_coord::label::{Visible, is_control};

use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::table::Table;

/// Standard output, buffered. Call [`Output::flush`] before the command ends: a drop would lose
/// errors of writes.
pub(crate) struct Output {
    inner: BufWriter<StdoutLock<'static>>,
    /// Line under construction.
    line: String,
    /// Width of the terminal, if it is one.
    width: Option<usize>,
    is_coloured: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        // The size of another stream's terminal says nothing about a pipe.
        let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout));
        let width = size.flatten().map(|(width, _)| width.0.into());
        // Knows NO_COLOR, CLICOLOR_FORCE and terminals without colour.
        let is_coloured = AutoStream::choice(&stdout) != ColorChoice::Never;
        let inner = BufWriter::with_capacity(64 * 1024, stdout.lock());
        Self { inner, line: String::new(), width, is_coloured }
    }

    /// Returns the width of the terminal, if it is one.
    pub(crate) const fn width(&self) -> Option<usize> {
        self.width
    }

    /// Writes one line of any origin: control characters and line ends are made visible.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Outcome {
        self.line.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.line, "{line}");
        writeln!(self.inner, "{}", Visible(&self.line)).map_err(failure)
    }

    /// Writes an indented line with the name and the value of a field, if it has a value.
    pub(crate) fn field(&mut self, name: &str, value: Option<impl fmt::Display>) -> Outcome {
        value.map_or(Ok(()), |value| self.line(format_args!("  {name:<9} {value}")))
    }

    /// Writes one line like [`Output::line`], which begins with a text in a style.
    pub(crate) fn styled(&mut self, style: Style, first: &str, rest: &str) -> Outcome {
        if !self.is_coloured {
            return self.line(format_args!("{first}{rest}"));
        }
        let (first, rest) = (Visible(first), Visible(rest));
        writeln!(self.inner, "{style}{first}{style:#}{rest}").map_err(failure)
    }

    /// Writes a table: as wide as the terminal at most, and whole for a program.
    pub(crate) fn table(&mut self, table: &Table) -> Outcome {
        let (head, rows) = table.lines(self.width);
        self.styled(Style::new().bold(), &head, "")?;
        rows.iter().try_for_each(|row| self.line(row))
    }

    /// Writes one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Outcome {
        let json = json(value)?;
        writeln!(self.inner, "{json}").map_err(failure)
    }

    /// Writes lines unchanged: they are this program's own, without foreign text.
    pub(crate) fn text(&mut self, text: &str) -> Outcome {
        self.inner.write_all(text.as_bytes()).map_err(failure)
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.inner.flush().map_err(failure)
    }
}

/// Prints results: for machines a line of JSON for each, for people what `text` writes.
pub(crate) fn print<T: Serialize>(
    json: bool,
    results: impl IntoIterator<Item = T>,
    text: impl FnOnce(&mut Output) -> Outcome,
) -> Outcome {
    let mut out = Output::new();
    if json {
        results.into_iter().try_for_each(|result| out.json(&result))?;
    } else {
        text(&mut out)?;
    }
    out.flush()
}

/// Returns a value as JSON without raw control characters: JSON itself escapes fewer.
pub(crate) fn json(value: &impl Serialize) -> Outcome<String> {
    let mut json = serde_json::to_string(value).map_err(Failure::internal)?;
    if json.contains(is_control) {
        // They occur only in texts, and none is beyond 16 bits.
        let written = json.chars().map(|c| match is_control(c) {
            true => format!("\\u{:04x}", u32::from(c)),
            false => c.to_string(),
        });
        json = written.collect();
    }
    Ok(json)
}

#[allow(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::ClosedPipe;
    }
    Failure::unavailable(format!("standard output cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_control_characters() {
        let text = "a\n\u{1b}\u{7f}\u{9b}\u{202e}b";
        let json = json(&text).unwrap();
        assert_eq!(json, r#""a\n\u001b\u007f\u009b\u202eb""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
