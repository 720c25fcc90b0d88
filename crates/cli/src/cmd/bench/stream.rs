//! A connection over TCP: bytes out, and answers in, which are read by whoever knows their form.

use snowmint_coord::{BootTimer, Timer as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// The longest answer that is held before it is complete.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long to wait for a server to take a connection.
const CONNECT_MS_MAX: u64 = 5_000;

/// A connection, and what was read and not yet used.
#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    input: Vec<u8>,
    used: usize,
    pub(super) output: Vec<u8>,
}

impl Stream {
    /// # Errors
    /// Why there is no connection, in words.
    pub(super) async fn open(address: &str) -> Result<Self, String> {
        let socket = tokio::select! {
            socket = TcpStream::connect(address) => socket.map_err(|error| error.to_string()),
            () = BootTimer.sleep_ms(CONNECT_MS_MAX) => {
                Err(format!("no connection within {CONNECT_MS_MAX} ms"))
            }
        }?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { socket, input: Vec::new(), used: 0, output: Vec::new() })
    }

    /// Sends what was written to `output`.
    pub(super) async fn send(&mut self) -> Result<(), String> {
        let sent = self.socket.write_all(&self.output).await;
        self.output.clear();
        sent.map_err(|error| error.to_string())
    }

    /// What was read and not used yet.
    pub(super) fn unused(&self) -> &[u8] {
        self.input.get(self.used..).unwrap_or_default()
    }

    /// The first bytes of it are used now.
    pub(super) fn use_up(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes).min(self.input.len());
    }

    /// Waits for more bytes.
    pub(super) async fn read(&mut self) -> Result<(), String> {
        self.input.drain(..self.used);
        self.used = 0;
        if self.input.len() > ANSWER_BYTES_MAX {
            return Err(format!("an answer is longer than {ANSWER_BYTES_MAX} bytes"));
        }
        self.input.reserve(READ_BYTES);
        match self.socket.read_buf(&mut self.input).await {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
