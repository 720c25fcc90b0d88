//! A connection over TCP or TLS. It sends bytes and buffers responses, which each protocol parses.

use snowmint_coord::{BootTimer, Timer as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::server::BenchServer;

/// Number of bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// Longest response that is buffered before it is complete.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest wait for a server to accept a connection.
const CONNECT_MS_MAX: u64 = 5_000;

#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection, with the bytes read and not yet used.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    input: Vec<u8>,
    used: usize,
    pub(super) output: Vec<u8>,
}

impl Stream {
    /// # Errors
    /// Text that says why there is no connection.
    pub(super) async fn open(server: &BenchServer) -> Result<Self, String> {
        let socket = tokio::select! {
            socket = Socket::open(server) => socket,
            () = BootTimer.sleep_ms(CONNECT_MS_MAX) => {
                Err(format!("server did not connect within {CONNECT_MS_MAX} ms"))
            }
        }?;
        Ok(Self { socket, input: Vec::new(), used: 0, output: Vec::new() })
    }

    /// Sends the bytes of `output`.
    pub(super) async fn send(&mut self) -> Result<(), String> {
        let sent = match &mut self.socket {
            Socket::Plain(socket) => socket.write_all(&self.output).await,
            Socket::Tls(socket) => match socket.write_all(&self.output).await {
                Ok(()) => socket.flush().await,
                refused => refused,
            },
        };
        self.output.clear();
        sent.map_err(|error| error.to_string())
    }

    /// Returns the bytes read and not yet used.
    pub(super) fn unused(&self) -> &[u8] {
        self.input.get(self.used..).unwrap_or_default()
    }

    /// Marks the first bytes as used.
    pub(super) fn use_up(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes).min(self.input.len());
    }

    /// Waits for more bytes.
    pub(super) async fn read(&mut self) -> Result<(), String> {
        self.input.drain(..self.used);
        self.used = 0;
        if self.input.len() > RESPONSE_BYTES_MAX {
            return Err(format!("response exceeds {RESPONSE_BYTES_MAX} bytes"));
        }
        self.input.reserve(READ_BYTES);
        let read = match &mut self.socket {
            Socket::Plain(socket) => socket.read_buf(&mut self.input).await,
            Socket::Tls(socket) => socket.read_buf(&mut self.input).await,
        };
        match read {
            Ok(0) => Err("server closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Socket {
    async fn open(server: &BenchServer) -> Result<Self, String> {
        let to_text = |error: std::io::Error| error.to_string();
        let socket = TcpStream::connect(&server.target.address).await.map_err(to_text)?;
        socket.set_nodelay(true).map_err(to_text)?;
        let Some((connector, name)) = server.tls() else { return Ok(Self::Plain(socket)) };
        let agreed = connector.connect(name.clone(), socket).await;
        let socket = agreed.map_err(|error| {
            snowmint_client::tls_failure(&server.target.address, &error)
                .unwrap_or_else(|| error.to_string())
        })?;
        Ok(Self::Tls(Box::new(socket)))
    }
}
