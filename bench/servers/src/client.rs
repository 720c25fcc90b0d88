//! Connections to a server, and counting over RESP with pipelined requests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

/// Requests per pipelined batch.
const PIPELINE: usize = 512;

/// Returns a connection to the server on this port.
///
/// # Panics
/// When none listens.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// A client over RESP.
pub struct Client(BufReader<TcpStream>);

impl Client {
    /// Connects to the server on this port.
    ///
    /// # Panics
    /// When none listens.
    pub fn to(port: u16) -> Self {
        Self(BufReader::with_capacity(1 << 16, connect(port)))
    }

    /// Sends `INCR` for each key and collects the numbers, without errors.
    ///
    /// # Panics
    /// When the server closes the connection.
    pub fn incr<K: AsRef<str>>(
        &mut self,
        mut keys: impl Iterator<Item = K>,
        numbers: &mut Vec<u64>,
    ) {
        let (mut request, mut line) = (Vec::new(), String::new());
        loop {
            request.clear();
            let mut count = 0;
            for key in keys.by_ref().take(PIPELINE) {
                let key = key.as_ref();
                write!(request, "*2\r\n$4\r\nINCR\r\n${}\r\n{key}\r\n", key.len()).expect("memory");
                count += 1;
            }
            if count == 0 {
                return;
            }
            self.0.get_mut().write_all(&request).expect("the server reads");
            for _ in 0..count {
                line.clear();
                self.0.read_line(&mut line).expect("a reply of the server");
                if let Some(number) = line.strip_prefix(':') {
                    numbers.push(number.trim().parse().expect("a number"));
                }
            }
        }
    }
}
