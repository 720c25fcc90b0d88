//! Encodes replies.

use crate::lines::Lines;

/// The version of RESP in which a connection gets replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Version 2, with which every connection begins.
    #[default]
    Resp2,
    /// Version 3, after `HELLO 3`.
    Resp3,
}

/// A writer that appends replies to a buffer. Types that only version 3 has are written in version
/// 2 as Redis does.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Encoder<'a> {
    /// Returns an encoder that writes to `out` in the given version.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// Returns the version written.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Writes a short text such as `OK`. Line ends, which it cannot hold, become blanks.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.line(text);
    }

    /// Writes an error: a prefix such as `ERR`, and a sentence. Line ends become blanks.
    pub fn error(&mut self, prefix: &str, message: &str) {
        self.out.push(b'-');
        self.out.extend_from_slice(prefix.as_bytes());
        self.out.push(b' ');
        self.line(message);
    }

    /// Writes an integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(value).as_bytes();
        // One check of the capacity instead of three.
        self.out.reserve(digits.len() + 3);
        self.out.push(b':');
        self.out.extend_from_slice(digits);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes an ID as an integer. An ID above `i64::MAX`, which an integer cannot hold, is written
    /// as a string.
    #[inline]
    pub fn id(&mut self, id: u64) {
        match i64::try_from(id) {
            Ok(value) => self.integer(value),
            Err(_) => self.bulk(itoa::Buffer::new().format(id).as_bytes()),
        }
    }

    /// Writes an array of IDs.
    pub fn ids(&mut self, ids: &[u64]) {
        self.array(ids.len());
        if ids.iter().all(|&id| i64::try_from(id).is_ok()) {
            return Lines::new(b":", b"\r\n").append(ids, self.out);
        }
        ids.iter().for_each(|&id| self.id(id));
    }

    /// Writes a string of any bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes a text for people, such as that of `INFO`: marked as text in version 3.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => {
                self.head(b'=', text.len().saturating_add(4));
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Writes a null.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Writes the head of an array: `len` replies follow.
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// Writes the head of a map: `pairs` times a key and a value follow. An array in version 2.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', pairs.saturating_mul(2)),
            Protocol::Resp3 => self.head(b'%', pairs),
        }
    }

    /// Writes the head of a set: `len` replies follow. An array in version 2.
    pub fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.head(b'*', len),
            Protocol::Resp3 => self.head(b'~', len),
        }
    }

    fn head(&mut self, kind: u8, len: usize) {
        self.out.push(kind);
        let mut digits = itoa::Buffer::new();
        self.out.extend_from_slice(digits.format(len).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, text: &str) {
        let blank = |byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        self.out.extend(text.bytes().map(blank));
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Encoder<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Encoder::new(&mut out, protocol));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_byte_by_byte() {
        type Write = fn(&mut Encoder<'_>);
        let cases: &[(Write, &str, &str)] = &[
            (|e| e.simple("OK"), "+OK\r\n", "+OK\r\n"),
            (|e| e.error("ERR", "no\r\n+OK"), "-ERR no  +OK\r\n", "-ERR no  +OK\r\n"),
            (|e| e.integer(-7), ":-7\r\n", ":-7\r\n"),
            (
                |e| e.id(i64::MAX.unsigned_abs()),
                ":9223372036854775807\r\n",
                ":9223372036854775807\r\n",
            ),
            (|e| e.id(1 << 63), "$19\r\n9223372036854775808\r\n", "$19\r\n9223372036854775808\r\n"),
            (|e| e.ids(&[]), "*0\r\n", "*0\r\n"),
            (|e| e.ids(&[99, 100]), "*2\r\n:99\r\n:100\r\n", "*2\r\n:99\r\n:100\r\n"),
            (
                |e| e.ids(&[1, 1 << 63]),
                "*2\r\n:1\r\n$19\r\n9223372036854775808\r\n",
                "*2\r\n:1\r\n$19\r\n9223372036854775808\r\n",
            ),
            (|e| e.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (|e| e.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (|e| e.verbatim("hi"), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
            (|e| e.null(), "$-1\r\n", "_\r\n"),
            (|e| e.array(3), "*3\r\n", "*3\r\n"),
            (|e| e.map(3), "*6\r\n", "%3\r\n"),
            (|e| e.set(2), "*2\r\n", "~2\r\n"),
        ];
        for (write, resp2, resp3) in cases {
            assert_eq!(written(Protocol::Resp2, write), *resp2);
            assert_eq!(written(Protocol::Resp3, write), *resp3);
        }
    }
}
