//! Tests that replies over RESP to commands that came together are sent together.
//!
//! With TLS each write of the server is one record, whatever the network splits or joins
//! afterwards. So a client that counts records counts the server's writes.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rcgen::{CertificateParams, KeyPair};
use snowmint_server::{Pems, Secret, Settings, Tls};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, ReadBuf,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::common::{Server, node, server_behind, settings, soon, timer};

/// Length of a record's head: its kind, two bytes of a version, two of its length.
const HEAD_BYTES: usize = 5;
/// Kind of a record with application data.
const APPLICATION_DATA: u8 = 23;

/// A socket that counts received records.
struct Counting {
    stream: TcpStream,
    head: Vec<u8>,
    /// Missing bytes of the record's body.
    body: usize,
    records: usize,
}

impl Counting {
    fn came(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.body > 0 {
                self.body -= 1;
                continue;
            }
            self.head.push(*byte);
            if self.head.len() == HEAD_BYTES {
                self.body = usize::from(u16::from_be_bytes([self.head[3], self.head[4]]));
                self.records += usize::from(self.head[0] == APPLICATION_DATA);
                self.head.clear();
            }
        }
    }
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.came(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Returns a server with TLS, and a connector that trusts it.
async fn encrypted() -> (Server, TlsConnector) {
    encrypted_with(settings()).await
}

pub(crate) async fn encrypted_with(settings: Settings) -> (Server, TlsConnector) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let pems = Pems {
        cert: certificate.pem().into_bytes(),
        key: Secret::new(key.serialize_pem()),
        client_ca: None,
        peers_ca: None,
    };
    let tls = Tls::new(&pems).unwrap();
    let server = server_behind(Some(tls), node().await, settings, (None, timer())).await;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    (server, TlsConnector::from(Arc::new(config)))
}

pub(crate) struct Client(BufReader<TlsStream<Counting>>);

impl Client {
    pub(crate) async fn to(address: SocketAddr, connector: &TlsConnector) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let counting = Counting { stream, head: Vec::new(), body: 0, records: 0 };
        let name = address.ip().to_string().try_into().unwrap();
        Self(BufReader::new(soon(connector.connect(name, counting)).await.unwrap()))
    }

    /// Sends `requests` at once.
    pub(crate) async fn send(&mut self, requests: &str) {
        self.0.write_all(requests.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Sends `requests` at once, reads until `lines` lines contain `found_by`, and returns how
    /// often the server wrote for them.
    pub(crate) async fn writes(&mut self, requests: &str, lines: usize, found_by: &str) -> usize {
        let records = |client: &Self| client.0.get_ref().get_ref().0.records;
        let before = records(self);
        self.send(requests).await;
        let (mut found, mut line) = (0, String::new());
        while found < lines {
            line.clear();
            soon(self.0.read_line(&mut line)).await.unwrap();
            assert!(!line.is_empty(), "{found} of {lines} responses, and no more");
            found += usize::from(line.contains(found_by));
        }
        records(self) - before
    }

    /// Checks that a lone request gets a write of its own, and many in one read at most `most`
    /// writes.
    async fn batches(&mut self, request: &str, many: usize, found_by: &str, most: usize) {
        let mut alone = 0;
        for _ in 0..10 {
            alone += self.writes(request, 1, found_by).await;
        }
        assert!(alone >= 10, "{alone} writes for 10 responses, each of which was waited for");
        let writes = self.writes(&request.repeat(many), many, found_by).await;
        assert!(writes <= most, "{writes} writes for {many} responses to {request:?}");
    }
}

/// All of these fit into one read of the server, and their replies into one record.
#[tokio::test]
async fn replies_of_one_read_are_sent_together() {
    let (server, connector) = encrypted().await;
    let mut client = Client::to(server.resp, &connector).await;
    // A full tick, or a window in motion, needs a wait: earlier replies are sent before it.
    for request in ["INCR default\r\n", "INCR counters:alice\r\n", "MINT default\r\n"] {
        client.batches(request, 500, ":", 10).await;
    }
    // Commands that might wait, and need not.
    client.batches("MINT default 3\r\n", 150, "*3", 10).await;
    client.batches("GET counters:alice\r\n", 500, "$", 10).await;
    client.batches("DECODE 1 default\r\n", 20, "tick", 10).await;
    client.batches("PING\r\n", 1_000, "+PONG", 1).await;
}
