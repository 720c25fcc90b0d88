//! Resumed TLS sessions, which present no certificate.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, Stream};

use super::certificates::{Authority, Signed};
use super::put;
use super::tls::serve;
use crate::server::{Folder, TIMEOUT};

#[test]
fn a_client_shows_its_certificate_with_each_connection() {
    for must_show in [false, true] {
        let folder = Folder::new(&format!("resumed-{must_show}"));
        let (authority, clients) = (Authority::new(), Authority::new());
        authority.put_into(&folder, "ca.pem");
        let client_ca = put(&folder, "clients.pem", &clients.pem());
        let client_ca = format!("client_ca = {client_ca:?}\n");
        let server = serve(&folder, &[if must_show { &client_ca } else { "" }]);
        for version in [&TLS12, &TLS13] {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider);
            let config = config.with_protocol_versions(&[version]).unwrap();
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
            let Signed { cert, key } = clients.sign();
            let cert = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            let config = config.with_root_certificates(roots);
            let config = Arc::new(config.with_client_auth_cert(vec![cert], key).unwrap());
            let first = [(); 2].map(|()| handshake(&server.http, &config));
            let again = if must_show { HandshakeKind::Full } else { HandshakeKind::Resumed };
            assert_eq!(first, [HandshakeKind::Full, again], "{version:?}");
        }
        assert_eq!(server.stop(), 0);
    }
}

/// Returns the kind of handshake for a request.
fn handshake(address: &str, config: &Arc<ClientConfig>) -> HandshakeKind {
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut stream = Stream::new(&mut tls, &mut socket);
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut response = Vec::new();
    // The connection may end without TLS's closing message.
    let _ = stream.read_to_end(&mut response);
    assert!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
    tls.handshake_kind().unwrap()
}
