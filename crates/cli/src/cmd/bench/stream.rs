//! A connection over TCP or TLS. It sends bytes and buffers responses, which each protocol parses.

use std::{fmt, io};

use hyper_util::rt::TokioIo;
use snowmint_coord::{BootTimer, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::BenchServer;
use crate::client::{Socket, secured};

/// Number of bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// Longest response that is buffered before it is complete.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest wait for a server to accept a connection.
const CONNECT_MS_MAX: u64 = 5_000;

/// A connection, with the bytes read and not yet used.
pub(super) struct Stream {
    socket: TokioIo<Socket>,
    input: Vec<u8>,
    used: usize,
    pub(super) output: Vec<u8>,
}

impl Stream {
    /// # Errors
    /// Text that says why there is no connection.
    pub(super) async fn open(server: &BenchServer) -> Result<Self, String> {
        let address = &server.target.address;
        let connecting = within(&BootTimer, CONNECT_MS_MAX, connected(server));
        let Some(connected) = connecting.await else {
            let late = format_args!("it did not connect within {CONNECT_MS_MAX} ms");
            return Err(no_response(address, &late));
        };
        let socket = connected.map_err(|error| {
            snowmint_client::tls_failure(address, &error)
                .unwrap_or_else(|| no_response(address, &error))
        })?;
        Ok(Self { socket: TokioIo::new(socket), input: Vec::new(), used: 0, output: Vec::new() })
    }

    /// Sends the bytes of `output`.
    pub(super) async fn send(&mut self) -> Result<(), String> {
        let sent = match self.socket.write_all(&self.output).await {
            // TLS may have kept a part.
            Ok(()) => self.socket.flush().await,
            refused => refused,
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
        match self.socket.read_buf(&mut self.input).await {
            Ok(0) => Err("server closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the error of a server that could not be connected to.
fn no_response(address: &str, reason: &impl fmt::Display) -> String {
    format!("no response from {address}: {reason}")
}

async fn connected(server: &BenchServer) -> io::Result<Socket> {
    secured(TcpStream::connect(&server.target.address).await?, server.tls()).await
}
