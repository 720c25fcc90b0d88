//! IDs from the command line, or one a line from standard input or a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::terminal::exit::{Failure, Outcome};

/// Longest line that is read. An ID has at most 48 characters.
pub(crate) const LINE_BYTES_MAX: u64 = 4_096;

/// Lines of unknown length, read without relying on an end.
pub(crate) struct InputLines<R> {
    reader: BufReader<R>,
    name: String,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
}

/// Lines from any input.
pub(crate) type AnyLines = InputLines<Box<dyn Read>>;

/// Opens standard input for `-`, else the file.
pub(crate) fn open(path: &Path) -> Outcome<AnyLines> {
    if path.as_os_str() == "-" {
        return Ok(stdin());
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| {
        Failure::usage(format!("{name} cannot be opened: {error}; check path and permissions"))
    })?;
    Ok(InputLines::new(Box::new(file), name))
}

/// Returns the lines of standard input.
pub(crate) fn stdin() -> AnyLines {
    InputLines::new(Box::new(io::stdin()), "standard input".into())
}

impl<R: Read> InputLines<R> {
    pub(crate) fn new(reader: R, name: String) -> Self {
        Self {
            reader: BufReader::with_capacity(256 * 1024, reader),
            name,
            line: Vec::new(),
            number: 0,
            bytes: 0,
        }
    }

    /// Returns the number of lines read, including empty ones.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of bytes read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the next line has not arrived yet: a good moment to flush results.
    pub(crate) fn would_wait(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// Returns the next line that is not empty, trimmed; `None` at the end.
    pub(crate) fn next(&mut self) -> Outcome<Option<&str>> {
        Ok(self.next_numbered()?.map(|(_, line)| line))
    }

    /// Returns the same as [`InputLines::next`], with the line's number.
    pub(crate) fn next_numbered(&mut self) -> Outcome<Option<(u64, &str)>> {
        loop {
            self.line.clear();
            let mut limited = (&mut self.reader).take(LINE_BYTES_MAX);
            let read = limited.read_until(b'\n', &mut self.line).map_err(|error| {
                Failure::unavailable(format!("{} cannot be read: {error}", self.name))
            })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bytes += self.line.len() as u64;
            if self.line.len() as u64 == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
                return Err(Failure::usage(format!(
                    "line {} of {} exceeds {LINE_BYTES_MAX} bytes, so it has no ID; correct it",
                    self.number, self.name
                )));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let (name, number) = (&self.name, self.number);
        std::str::from_utf8(self.line.trim_ascii()).map(|line| Some((number, line))).map_err(|_| {
            Failure::usage(format!("line {number} of {name} is not UTF-8; write it as text"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_trimmed_and_empty_ones_are_skipped_but_counted() {
        let mut lines = InputLines::new(&b"1\r\n\n  2 \n\n3"[..], "test".into());
        assert_eq!(lines.next().unwrap(), Some("1"));
        assert_eq!(lines.next().unwrap(), Some("2"));
        assert_eq!(lines.number(), 3);
        assert_eq!(lines.next().unwrap(), Some("3"));
        assert_eq!(lines.number(), 5);
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.bytes(), 11);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let endless = io::repeat(b'7');
        let mut lines = InputLines::new(endless, "test".into());
        let Err(Failure::Explained { message, .. }) = lines.next() else {
            panic!("must be refused")
        };
        assert_eq!(message, "line 1 of test exceeds 4096 bytes, so it has no ID; correct it");
    }
}
