//! Splits a line into words as `redis-cli` and Redis do: blanks separate words, quotes may enclose
//! them.

use super::protocol::{ARGS_MAX, ArgSpan, ProtocolError};

/// Splits `line` (without its line feed) into words. Quotes and escapes are resolved into `words`,
/// and `spans` has the position of each word in it.
///
/// Double quotes allow the escapes `\n \r \t \b \a` and `\xHH`; any other character after a
/// backslash stands for itself. Single quotes allow only `\'`. A closing quote ends the word.
pub(super) fn split(
    line: &[u8],
    words: &mut Vec<u8>,
    spans: &mut Vec<ArgSpan>,
) -> Result<(), ProtocolError> {
    words.clear();
    spans.clear();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        let Some(&first) = rest.first() else { return Ok(()) };
        if spans.len() == ARGS_MAX {
            return Err(ProtocolError::InlineTooLong);
        }
        let start = words.len();
        rest = match first {
            b'"' | b'\'' => quoted(rest, first, words)?,
            _ => bare(rest, words)?,
        };
        spans.push(ArgSpan { start, end: words.len() });
    }
}

/// Reads a word without quotes. A quote may open in its middle, as in Redis.
fn bare<'a>(mut rest: &'a [u8], words: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            _ if byte.is_ascii_whitespace() => break,
            b'"' | b'\'' => return quoted(rest, byte, words),
            _ => words.push(byte),
        }
        rest = after;
    }
    Ok(rest)
}

/// Reads the rest of a word from its opening quote on.
fn quoted<'a>(rest: &'a [u8], quote: u8, words: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    let mut rest = rest.get(1..).unwrap_or_default();
    loop {
        let (&byte, after) = rest.split_first().ok_or(ProtocolError::Quotes)?;
        rest = after;
        if byte == quote {
            return match rest.first() {
                Some(next) if !next.is_ascii_whitespace() => Err(ProtocolError::Quotes),
                _ => Ok(rest),
            };
        }
        if byte != b'\\' {
            words.push(byte);
            continue;
        }
        rest = match quote {
            b'"' => escape(rest, words)?,
            // In single quotes a backslash is literal, unless a quote follows it.
            _ => match rest.split_first() {
                Some((b'\'', after)) => {
                    words.push(b'\'');
                    after
                }
                _ => {
                    words.push(b'\\');
                    rest
                }
            },
        };
    }
}

/// Reads the rest of an escape after its backslash in double quotes.
fn escape<'a>(rest: &'a [u8], words: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    if let [b'x', high, low, after @ ..] = rest
        && let (Some(high), Some(low)) = (hex(*high), hex(*low))
    {
        words.push(high << 4 | low);
        return Ok(after);
    }
    let (&byte, after) = rest.split_first().ok_or(ProtocolError::Quotes)?;
    words.push(match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    });
    Ok(after)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
