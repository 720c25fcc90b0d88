//! A connection to one server: TCP, or TLS over TCP.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::thread;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::uri::Authority;
use hyper_util::rt::TokioIo;
use snowmint_coord::{BootTimer, Timer as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;

use super::certificates::server_name;

/// Longest wait for a connection, TLS included, after the host's name is resolved.
const CONNECT_MS_MAX: u64 = 5_000;

/// An open connection, for one request at a time.
pub(super) type HttpConnection = SendRequest<Full<Bytes>>;

type Cause = Box<dyn Error + Send + Sync>;

/// Cause of a missing response, by what the request may have done.
pub(super) enum NoResponse {
    /// No server took the connection, so the request had no effect.
    NotReached(Cause),
    /// The request may have had an effect.
    Failed(Cause),
    /// The request may have had an effect, and a part of the response came.
    BrokenOff(Cause),
}

/// Connects to a server.
pub(super) async fn open(
    server: &Authority,
    tls: Option<&TlsConnector>,
) -> Result<HttpConnection, NoResponse> {
    let port = server.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let addresses = resolved(format!("{}:{port}", server.host()))
        .await
        .map_err(|error| NoResponse::NotReached(format!("host not found: {error}").into()))?;
    let opened = within(CONNECT_MS_MAX, async {
        let socket = connected(&addresses).await?;
        socket.set_nodelay(true)?;
        let Some(tls) = tls else { return started(socket).await };
        let name = server_name(server.host()).map_err(io::Error::other)?;
        started(tls.connect(name, socket).await?).await
    });
    opened.await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::TimedOut => {
            NoResponse::NotReached(error.into())
        }
        _ => NoResponse::Failed(error.into()),
    })
}

/// Resolves `host:port` on a thread that belongs to no runtime: a runtime's end waits for its
/// lookups, and a lookup may hang.
async fn resolved(place: String) -> io::Result<Vec<SocketAddr>> {
    let (sender, receiver) = oneshot::channel();
    let look_up = move || {
        let _ = sender.send(place.to_socket_addrs().map(Iterator::collect));
    };
    thread::Builder::new().spawn(look_up)?;
    receiver.await.map_err(io::Error::other)?
}

/// Connects to the first address that accepts; each address gets an equal part of the time.
async fn connected(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let share_ms = CONNECT_MS_MAX / u64::try_from(addresses.len()).unwrap_or(1).max(1);
    let mut refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    for address in addresses {
        match within(share_ms, TcpStream::connect(address)).await {
            Ok(socket) => return Ok(socket),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Starts HTTP on a socket; the runtime drives the connection.
async fn started<S>(socket: S) -> io::Result<HttpConnection>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (connection, driver) = handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
    // The request in flight returns its error.
    tokio::spawn(async { drop(driver.await) });
    Ok(connection)
}

/// Runs a future with a time limit.
async fn within<T>(ms: u64, outcome: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::select! {
        biased;
        outcome = outcome => outcome,
        () = BootTimer.sleep_ms(ms) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {ms} ms")))
        }
    }
}
