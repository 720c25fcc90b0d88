//! Requests and responses as bytes, for loads that no existing program generates.

use std::io::Read as _;
use std::net::TcpStream;

/// A request for one ID of `wide`, over one of two protocols.
#[derive(Clone, Copy)]
pub enum Talk {
    Http,
    Resp,
}

impl Talk {
    pub const ALL: [Self; 2] = [Self::Http, Self::Resp];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Resp => "RESP",
        }
    }

    /// Returns the bytes of a request for one ID.
    pub const fn request(self) -> &'static [u8] {
        match self {
            Self::Http => b"GET /v1/ids/wide HTTP/1.1\r\nHost: localhost\r\n\r\n",
            Self::Resp => b"*2\r\n$4\r\nINCR\r\n$4\r\nwide\r\n",
        }
    }

    /// Returns the ID of the first complete response and the response's length; `None` when it is
    /// incomplete.
    ///
    /// # Panics
    /// When the response is an error.
    pub fn read(self, bytes: &[u8]) -> Option<(u64, usize)> {
        match self {
            Self::Http => {
                let head = find(bytes, b"\r\n\r\n")? + 4;
                let text = std::str::from_utf8(&bytes[..head]).expect("a head is text");
                let all = || String::from_utf8_lossy(bytes);
                assert!(text.starts_with("HTTP/1.1 200 "), "{}", all());
                let (_, length) = text.split_once("content-length: ").expect("a content length");
                let length: usize = length[..length.find('\r')?].parse().expect("a length");
                let body = bytes.get(head..head + length)?;
                Some((digits(body), head + length))
            }
            Self::Resp => {
                let end = find(bytes, b"\r\n")?;
                assert_eq!(bytes[0], b':', "{}", String::from_utf8_lossy(&bytes[..end]));
                Some((digits(&bytes[1..end]), end + 2))
            }
        }
    }

    /// Removes every complete response from the front of `bytes`; passes each ID to `each`.
    pub fn read_ids_from(self, bytes: &mut Vec<u8>, mut each: impl FnMut(u64)) {
        let mut at = 0;
        while let Some((id, length)) = self.read(&bytes[at..]) {
            each(id);
            at += length;
        }
        bytes.drain(..at);
    }
}

/// Waits for bytes, and appends them.
///
/// # Panics
/// When there are none.
pub fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let mut more = [0; 16 * 1024];
    let length = stream.read(&mut more).expect("a response of the server");
    assert_ne!(length, 0, "the server hung up");
    bytes.extend_from_slice(&more[..length]);
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Returns the only number in `bytes`.
fn digits(bytes: &[u8]) -> u64 {
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
