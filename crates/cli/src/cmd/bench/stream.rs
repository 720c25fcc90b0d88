//! A connection over TCP, or TLS over it: bytes out, and answers in, which are read by whoever knows their
//! form.

use snowmint_coord::{BootTimer, Timer as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::server::Server;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;
/// The longest answer that is held before it is complete.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long to wait for a server to take a connection.
const CONNECT_MS_MAX: u64 = 5_000;

#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection, and what was read and not yet used.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    input: Vec<u8>,
    used: usize,
    pub(super) output: Vec<u8>,
}

impl Stream {
    /// # Errors
    /// Why there is no connection, in words.
    pub(super) async fn open(server: &Server) -> Result<Self, String> {
        let socket = tokio::select! {
            socket = Socket::open(server) => socket,
            () = BootTimer.sleep_ms(CONNECT_MS_MAX) => {
                Err(format!("no connection within {CONNECT_MS_MAX} ms"))
            }
        }?;
        Ok(Self { socket, input: Vec::new(), used: 0, output: Vec::new() })
    }

    /// Sends what was written to `output`.
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
        let read = match &mut self.socket {
            Socket::Plain(socket) => socket.read_buf(&mut self.input).await,
            Socket::Tls(socket) => socket.read_buf(&mut self.input).await,
        };
        match read {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Socket {
    async fn open(server: &Server) -> Result<Self, String> {
        let told = |error: std::io::Error| error.to_string();
        let socket = TcpStream::connect(&server.target.address).await.map_err(told)?;
        socket.set_nodelay(true).map_err(told)?;
        let Some((connector, name)) = server.tls() else { return Ok(Self::Plain(socket)) };
        let agreed = connector.connect(name.clone(), socket).await;
        let socket = agreed.map_err(|error| match snowmint_client::advice(&error) {
            Some(advice) => format!("{error}; {advice}"),
            None => error.to_string(),
        })?;
        Ok(Self::Tls(Box::new(socket)))
    }
}
