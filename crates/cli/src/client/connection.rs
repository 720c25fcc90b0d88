//! A connection to one server: TCP, or TLS over TCP.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::thread;

use http_body_util::Full;
use hyper::Uri;
use hyper::body::Bytes;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use snowmint_coord::{BootTimer, within};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use super::certificates::server_name;

/// Longest wait for a connection, TLS included, after the host's name is resolved.
const CONNECT_MS_MAX: u64 = 5_000;

/// Client that keeps its connections.
pub(super) type HttpClient = Client<BoxCloneSyncService<Uri, Socket, io::Error>, Full<Bytes>>;

/// An open connection.
pub(crate) type Socket = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Returns a client without connections so far.
pub(super) fn http_client(tls: Option<TlsConnector>) -> HttpClient {
    let connector = service_fn(move |server| open(server, tls.clone()));
    Client::builder(TokioExecutor::new()).build(BoxCloneSyncService::new(connector))
}

/// Returns whether this is the error of a connection that no server took.
pub(super) fn is_not_reached(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound, TimedOut};
    matches!(error.kind(), ConnectionRefused | NotFound | TimedOut)
}

/// Connects to a server.
async fn open(server: Uri, tls: Option<TlsConnector>) -> io::Result<Socket> {
    let host = server.host().unwrap_or_default();
    let port = server.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let addresses = resolved(format!("{host}:{port}")).await.map_err(|error| {
        io::Error::new(io::ErrorKind::NotFound, format!("host not found: {error}"))
    })?;
    in_time(CONNECT_MS_MAX, async {
        let socket = connected(&addresses).await?;
        let Some(tls) = &tls else { return secured(socket, None).await };
        let name = server_name(host).map_err(io::Error::other)?;
        secured(socket, Some((tls, name))).await
    })
    .await
}

/// Starts TLS on a connection, if the server speaks it.
pub(crate) async fn secured(
    socket: TcpStream,
    tls: Option<(&TlsConnector, ServerName<'static>)>,
) -> io::Result<Socket> {
    socket.set_nodelay(true)?;
    let socket = TokioIo::new(socket);
    let Some((connector, name)) = tls else { return Ok(socket.into()) };
    Ok(connector.connect(name, TokioIo::new(socket)).await?.into())
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
        match in_time(share_ms, TcpStream::connect(address)).await {
            Ok(socket) => return Ok(socket),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Runs a future with a time limit.
async fn in_time<T>(ms: u64, outcome: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    within(&BootTimer, ms, outcome).await.unwrap_or_else(|| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {ms} ms")))
    })
}
