//! A request above the limits of its parts. Its bytes are skipped and not kept, so that the reply
//! names the reason, and the connection stays open.

use snowmint_wire::resp::{
    ARGS_MAX, BULK_BYTES_MAX, Encoder, FRAME_BYTES_MAX, Protocol, ProtocolError,
};

/// Longest request that is skipped, in bytes; a longer one ends the connection.
const SKIPPED_BYTES_MAX: usize = 1024 * 1024;
/// Longest name of a command, in bytes.
const NAME_BYTES_MAX: usize = 32;
/// Longest line with a length, in bytes.
const LINE_BYTES_MAX: usize = 12;

/// A request that is skipped.
#[derive(Debug)]
pub(super) struct Oversized {
    error: ProtocolError,
    /// Name of the command, as a request by itself; empty before it is read.
    name: Vec<u8>,
    /// Arguments still to come; `None` before the head is read.
    args_left: Option<usize>,
    /// Bytes still to come of an argument and its end.
    arg_bytes_left: usize,
    /// Bytes that may follow.
    bytes_left: usize,
}

/// Result of skipping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// This many bytes; more follow.
    Part(usize),
    /// This many bytes, and the request ends.
    Whole(usize),
}

impl Oversized {
    /// Begins to skip a request with this error; `None` unless it is only too long.
    pub(super) fn new(error: ProtocolError) -> Option<Self> {
        let is_size = matches!(
            error,
            ProtocolError::ArrayLength | ProtocolError::BulkLength | ProtocolError::FrameTooLong
        );
        is_size.then(|| Self {
            error,
            name: Vec::new(),
            args_left: None,
            arg_bytes_left: 0,
            bytes_left: SKIPPED_BYTES_MAX,
        })
    }

    /// Skips what has arrived. The next call begins after the skipped bytes.
    ///
    /// # Errors
    /// The request's error, if it is no request, has no short name, or is too long to be skipped.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> Result<Skipped, ProtocolError> {
        let mut at: usize = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let taken = self.arg_bytes_left.min(rest.len());
            self.arg_bytes_left = self.arg_bytes_left.saturating_sub(taken);
            at = at.saturating_add(taken);
            match self.args_left {
                _ if self.arg_bytes_left > 0 => return Ok(Skipped::Part(at)),
                Some(0) => return Ok(Skipped::Whole(at)),
                _ => {}
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let kind = if self.args_left.is_none() { b'*' } else { b'$' };
            let Some((length, line)) = length_line(rest, kind).ok_or(self.error)? else {
                return Ok(Skipped::Part(at));
            };
            let Some(args_left) = self.args_left else {
                self.spend(line)?;
                self.args_left = Some(length);
                at = at.saturating_add(line);
                continue;
            };
            if self.name.is_empty() {
                let name = rest.get(line..).unwrap_or_default();
                if length > NAME_BYTES_MAX {
                    return Err(self.error);
                }
                let Some(name) = name.get(..length) else { return Ok(Skipped::Part(at)) };
                let mut request = Encoder::new(&mut self.name, Protocol::Resp2);
                request.array(1);
                request.bulk(name);
            }
            self.arg_bytes_left = length.saturating_add(2);
            self.spend(line.saturating_add(self.arg_bytes_left))?;
            self.args_left = Some(args_left.saturating_sub(1));
            at = at.saturating_add(line);
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(self.error)?;
        Ok(())
    }

    /// Returns the name of the command, as a request by itself.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns what is too long.
    pub(super) fn excess(&self) -> String {
        match self.error {
            ProtocolError::ArrayLength => format!("more than {ARGS_MAX} arguments"),
            ProtocolError::BulkLength => format!("an argument above {BULK_BYTES_MAX} bytes"),
            _ => format!("more than {FRAME_BYTES_MAX} bytes"),
        }
    }
}

/// Reads a line with a length, and returns both lengths: `Some(None)` when it is not complete,
/// `None` when it is no such line.
fn length_line(bytes: &[u8], kind: u8) -> Option<Option<(usize, usize)>> {
    if bytes.first().is_some_and(|first| *first != kind) {
        return None;
    }
    let Some(end) = bytes.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
        return (bytes.len() < LINE_BYTES_MAX).then_some(None);
    };
    let digits = bytes.get(1..end)?.strip_suffix(b"\r")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = str::from_utf8(digits).ok()?.parse().ok()?;
    Some(Some((length, end.saturating_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skips a request that arrives in pieces of this length; returns its name and the bytes.
    fn skipped(request: &[u8], piece: usize) -> Result<(Vec<u8>, usize), ProtocolError> {
        let mut oversized = Oversized::new(ProtocolError::BulkLength).unwrap();
        let (mut start, mut end) = (0, 0);
        loop {
            end = request.len().min(end + piece);
            match oversized.skip(&request[start..end])? {
                Skipped::Whole(bytes) => return Ok((oversized.name, start + bytes)),
                Skipped::Part(bytes) => start += bytes,
            }
        }
    }

    #[test]
    fn skips_exactly_one_request_in_pieces_of_any_length() {
        let long = "x".repeat(20_000);
        let request = format!("*3\r\n$4\r\nEVAL\r\n$20000\r\n{long}\r\n$0\r\n\r\n");
        for piece in [1, 2, 3, 7, 1_000, 100_000] {
            let (name, bytes) = skipped(format!("{request}*1").as_bytes(), piece).unwrap();
            assert_eq!((&name[..], bytes), (&b"*1\r\n$4\r\nEVAL\r\n"[..], request.len()));
        }
    }

    #[test]
    fn no_request_or_one_too_long_to_skip_is_an_error() {
        let name = "x".repeat(NAME_BYTES_MAX + 1);
        for request in [
            "*x\r\n",
            "*99999999999",
            "*2\r\n$-1\r\n",
            "*2\r\n:1\r\n",
            "*2\r\n$4\r\nEVAL\r\n$1048576\r\n",
            "*2\r\n$4\r\nEVAL\r\n$1\r\nx\r\n",
            &format!("*1\r\n${}\r\n{name}\r\n", name.len()),
        ] {
            let mut oversized = Oversized::new(ProtocolError::BulkLength).unwrap();
            let skipped = oversized.skip(request.as_bytes());
            let is_whole = matches!(skipped, Ok(Skipped::Whole(_)));
            assert_eq!(is_whole, request.contains("$1\r\nx"), "{request:.40}: {skipped:?}");
            assert!(is_whole || skipped.is_err(), "{request:.40}: {skipped:?}");
        }
        assert!(Oversized::new(ProtocolError::BulkEnd).is_none());
    }
}
