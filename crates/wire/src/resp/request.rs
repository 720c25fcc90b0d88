//! Parses requests from borrowed bytes.

use std::fmt;

use super::inline;
use super::protocol::{
    ARGS_MAX, ArgSpan, BULK_BYTES_MAX, FRAME_BYTES_MAX, INLINE_BYTES_MAX, ProtocolError,
};

/// Capacity of an idle parser: arguments, and bytes of a request written as a line.
const SPANS_KEPT: usize = 16;
const WORDS_KEPT: usize = 256;

/// More digits than any accepted length has; leading zeros are rejected.
const LENGTH_DIGITS_MAX: usize = 10;

/// A parser of requests, one after the other, without I/O, and without an allocation for each.
///
/// **Resumable:** the parsed part of an unfinished request is kept, so that bytes arriving one at a
/// time cost no more than all at once. **Bounded:** every declared length is checked before it is
/// used. **Flat:** requests do not nest; an array inside an array is an error.
///
/// After a [`ProtocolError`] the next request's start is unknown: reply with the error and close.
#[derive(Debug, Default)]
pub struct Parser {
    /// The arguments found so far.
    spans: Vec<ArgSpan>,
    /// The words of an inline request, quotes resolved.
    words: Vec<u8>,
    /// Bytes of the request that are parsed already.
    at: usize,
    /// Arguments still missing; 0 while the head has not been read.
    args_left: usize,
}

/// The result of [`Parser::next`].
#[derive(Debug)]
pub enum Next<'a> {
    /// A whole request.
    Command {
        /// The arguments. A blank line or an empty array requests nothing, and has none.
        command: Command<'a>,
        /// Length of the request in bytes. The next request begins after it.
        bytes: usize,
    },
    /// The request is not complete.
    Incomplete,
}

/// A whole request: its arguments, borrowed.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    bytes: &'a [u8],
    spans: &'a [ArgSpan],
}

impl<'a> Command<'a> {
    /// Returns the number of arguments, including the name.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether the request has no arguments, and so requests nothing.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns an argument; 0 is the name of the command.
    #[inline]
    #[must_use]
    pub fn arg(&self, index: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(index)?;
        self.bytes.get(span.start..span.end)
    }

    /// Returns the arguments in order, the name first.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        // The spans were cut from these bytes.
        self.spans.iter().map(move |span| bytes.get(span.start..span.end).unwrap_or_default())
    }
}

impl fmt::Debug for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.args().map(|arg| arg.escape_ascii().to_string())).finish()
    }
}

/// The result of reading a length line.
enum LengthLine {
    /// A number, and the index after its CR LF.
    Number { value: usize, after: usize },
    /// A negative number, and the index after its CR LF.
    Negative { after: usize },
    /// The line is incomplete.
    Unfinished,
    /// The line is not a number, or too long for an accepted one.
    Wrong,
}

impl Parser {
    /// Returns a parser at the beginning of a request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one request from `frame`, which begins at the start of the request. After
    /// [`Next::Incomplete`], pass the same bytes with more behind them.
    ///
    /// # Errors
    /// [`ProtocolError`] when the bytes cannot become a request, however many follow.
    #[inline]
    pub fn next<'a>(&'a mut self, frame: &'a [u8]) -> Result<Next<'a>, ProtocolError> {
        if self.args_left == 0 {
            match frame.first() {
                None => return Ok(Next::Incomplete),
                Some(b'*') => {}
                Some(_) => return self.inline(frame),
            }
            self.spans.clear();
            match number(frame, 1) {
                LengthLine::Number { value: 0, after } | LengthLine::Negative { after } => {
                    return Ok(self.finish(frame, after));
                }
                LengthLine::Number { value, after } if value <= ARGS_MAX => {
                    self.args_left = value;
                    self.at = after;
                }
                LengthLine::Unfinished => return Ok(Next::Incomplete),
                LengthLine::Number { .. } | LengthLine::Wrong => {
                    return Err(ProtocolError::ArrayLength);
                }
            }
        }
        if self.bulks(frame)? { Ok(self.finish(frame, self.at)) } else { Ok(Next::Incomplete) }
    }

    /// Releases the memory of long requests, between two requests: an idle client keeps no more
    /// than a client with short requests.
    pub fn rest(&mut self) {
        if self.args_left == 0 {
            self.spans.clear();
            self.spans.shrink_to(SPANS_KEPT);
            self.words.clear();
            self.words.shrink_to(WORDS_KEPT);
        }
    }

    /// Reads the missing arguments. Returns whether all are complete.
    #[inline]
    fn bulks(&mut self, frame: &[u8]) -> Result<bool, ProtocolError> {
        let (mut at, mut args_left) = (self.at, self.args_left);
        while args_left > 0 {
            match frame.get(at) {
                None => break,
                Some(b'$') => {}
                Some(&got) => return Err(ProtocolError::NotABulk { got }),
            }
            let (start, end) = match number(frame, at.saturating_add(1)) {
                // Both are far below the range of usize: the sum cannot overflow.
                LengthLine::Number { value, after } if value <= BULK_BYTES_MAX => {
                    (after, after + value)
                }
                LengthLine::Unfinished => break,
                LengthLine::Number { .. } | LengthLine::Negative { .. } | LengthLine::Wrong => {
                    return Err(ProtocolError::BulkLength);
                }
            };
            let after = end.saturating_add(2);
            if after > FRAME_BYTES_MAX {
                return Err(ProtocolError::FrameTooLong);
            }
            match frame.get(end..after) {
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::BulkEnd),
                None => break,
            }
            self.spans.push(ArgSpan { start, end });
            args_left = args_left.saturating_sub(1);
            at = after;
        }
        self.at = at;
        self.args_left = args_left;
        Ok(args_left == 0)
    }

    #[inline]
    fn finish<'a>(&'a mut self, frame: &'a [u8], bytes: usize) -> Next<'a> {
        self.at = 0;
        Next::Command { command: Command { bytes: frame, spans: &self.spans }, bytes }
    }

    /// Reads a request as a person types it: words on a line.
    #[cold]
    fn inline<'a>(&'a mut self, frame: &'a [u8]) -> Result<Next<'a>, ProtocolError> {
        let unseen = frame.get(self.at..).unwrap_or_default();
        let Some(found) = unseen.iter().position(|&byte| byte == b'\n') else {
            if frame.len() > INLINE_BYTES_MAX {
                return Err(ProtocolError::InlineTooLong);
            }
            self.at = frame.len();
            return Ok(Next::Incomplete);
        };
        let end = self.at.saturating_add(found);
        self.at = 0;
        if end > INLINE_BYTES_MAX {
            return Err(ProtocolError::InlineTooLong);
        }
        inline::split(frame.get(..end).unwrap_or_default(), &mut self.words, &mut self.spans)?;
        Ok(Next::Command {
            command: Command { bytes: &self.words, spans: &self.spans },
            bytes: end.saturating_add(1),
        })
    }
}

/// Reads a length and its CR LF, beginning at `from`.
#[inline]
fn number(frame: &[u8], from: usize) -> LengthLine {
    // Nearly every length has one digit.
    if let Some(&[digit @ b'0'..=b'9', b'\r', b'\n']) = frame.get(from..from.saturating_add(3)) {
        let after = from.saturating_add(3);
        return LengthLine::Number { value: usize::from(digit - b'0'), after };
    }
    longer_number(frame, from)
}

/// Reads like [`number`], without its short cut.
fn longer_number(frame: &[u8], from: usize) -> LengthLine {
    let mut at = from;
    let mut value: usize = 0;
    while let Some(&byte) = frame.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return number_end(frame, from, at, value);
        }
        if at.wrapping_sub(from) >= LENGTH_DIGITS_MAX {
            return LengthLine::Wrong;
        }
        // Ten digits may pass 32 bits: saturated, they are still beyond every limit.
        value = value.saturating_mul(10).saturating_add(usize::from(digit));
        at = at.wrapping_add(1);
    }
    LengthLine::Unfinished
}

/// Finishes [`longer_number`] after the digits.
#[inline]
fn number_end(frame: &[u8], from: usize, at: usize, value: usize) -> LengthLine {
    let digits = at.wrapping_sub(from);
    if digits == 0 {
        return negative(frame, from);
    }
    if digits > 1 && frame.get(from) == Some(&b'0') {
        return LengthLine::Wrong;
    }
    match (frame.get(at), frame.get(at.wrapping_add(1))) {
        (Some(b'\r'), Some(b'\n')) => LengthLine::Number { value, after: at.wrapping_add(2) },
        (Some(b'\r'), None) => LengthLine::Unfinished,
        _ => LengthLine::Wrong,
    }
}

/// Reads a negative number such as `-1`: "no array" to Redis, which ignores it.
#[cold]
fn negative(frame: &[u8], from: usize) -> LengthLine {
    if frame.get(from) != Some(&b'-') {
        return LengthLine::Wrong;
    }
    match number_of(frame, from.saturating_add(1)) {
        LengthLine::Number { value, after } if value > 0 => LengthLine::Negative { after },
        LengthLine::Unfinished => LengthLine::Unfinished,
        _ => LengthLine::Wrong,
    }
}

/// Reads like [`number`], but without a sign, so that `--1` does not recurse.
fn number_of(frame: &[u8], from: usize) -> LengthLine {
    if frame.get(from) == Some(&b'-') { LengthLine::Wrong } else { number(frame, from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_at_rest_keeps_nothing_of_long_requests() {
        let mut parser = Parser::new();
        let mut long = b"*1000\r\n".to_vec();
        (0..1_000).for_each(|_| long.extend_from_slice(b"$1\r\nx\r\n"));
        assert!(matches!(parser.next(&long), Ok(Next::Command { .. })));
        let mut line = b"x".repeat(5_000);
        line.push(b'\n');
        assert!(matches!(parser.next(&line), Ok(Next::Command { .. })));
        assert!(parser.spans.capacity() >= 1_000 && parser.words.capacity() >= 5_000);
        parser.rest();
        assert!(parser.spans.capacity() <= SPANS_KEPT && parser.words.capacity() <= WORDS_KEPT);
        // The parsed part of a request is not lost.
        let (part, whole) = (&b"*2\r\n$1\r\nx\r\n"[..], &b"*2\r\n$1\r\nx\r\n$1\r\ny\r\n"[..]);
        assert!(matches!(parser.next(part), Ok(Next::Incomplete)));
        parser.rest();
        let both = parser.next(whole);
        assert!(matches!(both, Ok(Next::Command { command, .. }) if command.len() == 2));
    }
}
