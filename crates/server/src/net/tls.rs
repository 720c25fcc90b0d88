//! TLS: certificates that are replaced while the server runs.
//!
//! Each connection takes the certificate that is current when it opens, and keeps it. This module
//! decides as little as possible: the library chooses versions and ciphers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use axum::http::HeaderMap;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::access::{Access, Caller, CertificateNames, Secret};
use crate::clients::tracker::TrackedConnection;
use crate::net::shutdown::stopping;
use crate::net::stream::Stream;

/// Certificates and keys, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pems {
    /// This server's certificate, and those between it and the root.
    pub cert: Vec<u8>,
    /// Key of the certificate.
    pub key: Secret,
    /// CA of the clients' certificates; `None`: clients need no certificate.
    pub client_ca: Option<Vec<u8>>,
    /// CA of the peers' certificates; `None`: the CAs that the system trusts.
    pub peers_ca: Option<Vec<u8>>,
}

/// Encryption of connections. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<TlsInner>);

struct TlsInner {
    now: ArcSwap<Configs>,
    /// Number of replacements.
    generation: AtomicU64,
}

struct Configs {
    http: Arc<ServerConfig>,
    resp: Arc<ServerConfig>,
    peers: ClientConfig,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Creates TLS with these certificates.
    ///
    /// # Errors
    /// The certificate or key that is invalid, and why.
    pub fn new(pems: &Pems) -> Result<Self, String> {
        let now = ArcSwap::from_pointee(Configs::new(pems)?);
        Ok(Self(Arc::new(TlsInner { now, generation: AtomicU64::new(0) })))
    }

    /// Uses these certificates from now on. Open connections keep theirs.
    ///
    /// # Errors
    /// Those of [`Tls::new`]; nothing has changed then.
    pub fn replace(&self, pems: &Pems) -> Result<(), String> {
        self.0.now.store(Arc::new(Configs::new(pems)?));
        self.0.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Returns a number that changes whenever the certificates change.
    pub(crate) fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    pub(crate) fn http(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.now.load().http))
    }

    pub(crate) fn resp(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.now.load().resp))
    }

    /// Returns the configuration for calls to peers.
    pub(crate) fn peers(&self) -> ClientConfig {
        self.0.now.load().peers.clone()
    }
}

impl Configs {
    fn new(pems: &Pems) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let http = server(pems, &provider, &[b"h2", b"http/1.1"])?;
        let resp = server(pems, &provider, &[])?;
        Ok(Self { http, resp, peers: client(pems, provider)? })
    }
}

fn server(
    pems: &Pems,
    provider: &Arc<CryptoProvider>,
    protocols: &[&[u8]],
) -> Result<Arc<ServerConfig>, String> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(error_for("TLS"))?;
    let builder = match &pems.client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = Arc::new(roots("tls.client_ca", ca)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
            builder.with_client_cert_verifier(verifier.build().map_err(error_for("tls.client_ca"))?)
        }
    };
    let (chain, key) = own(pems)?;
    let mut config =
        builder.with_single_cert(chain, key).map_err(error_for("tls.cert and tls.key"))?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    if pems.client_ca.is_some() {
        // A resumed session shows no certificate, which may have expired since.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Arc::new(config))
}

fn client(pems: &Pems, provider: Arc<CryptoProvider>) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(error_for("TLS"))?;
    let roots = match &pems.peers_ca {
        Some(ca) => roots("peers.ca", ca)?,
        None => {
            let mut roots = RootCertStore::empty();
            // Unusable certificates are skipped: there may be no peers at all.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
    };
    let builder = builder.with_root_certificates(roots);
    // Sent to peers that require one: servers are clients of each other.
    let (chain, key) = own(pems)?;
    builder.with_client_auth_cert(chain, key).map_err(error_for("tls.cert and tls.key"))
}

/// Returns a client that trusts no server: a server without certificates reaches no peer that
/// requires them.
pub(crate) fn no_tls() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    #[allow(clippy::unwrap_used, reason = "the provider has all versions: it cannot fail")]
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

fn own(pems: &Pems) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    // The unreadable bytes may be the key: the message must not contain them.
    let key = PrivateKeyDer::from_pem_slice(pems.key.text().as_bytes())
        .map_err(|_| "tls.key has no PEM private key; name a file that has one".to_owned())?;
    Ok((certificates("tls.cert", &pems.cert)?, key))
}

fn certificates(key: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!("{key} has no PEM certificate; name a file that has one")),
    }
}

fn roots(key: &str, pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(key, pem)? {
        roots.add(certificate).map_err(error_for(key))?;
    }
    Ok(roots)
}

/// Returns the names of the first certificate in a file, as tokens write them, in the order of the
/// lookup. `file` names the file in errors.
///
/// # Errors
/// When the file contains no certificate.
pub fn certificate_names(file: &str, pem: &[u8]) -> Result<Vec<String>, String> {
    let certificates = certificates(file, pem)?;
    let own = certificates.first().map(|own| CertificateNames::of(own));
    Ok(own.unwrap_or_default().iter().map(str::to_owned).collect())
}

fn error_for<E: fmt::Display>(key: &str) -> impl Fn(E) -> String {
    move |error| format!("{key}: {error}")
}

/// The other end of a connection, before the first byte.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(crate) connection: Arc<TrackedConnection>,
    /// Names in the client's certificate.
    pub(crate) names: CertificateNames,
}

impl ConnectionInfo {
    /// Identifies the caller that sends these headers, where access is controlled.
    pub(crate) fn caller(&self, access: Option<&Access>, headers: &HeaderMap) -> Caller {
        match access {
            Some(access) => access.caller_of(headers, &self.names, &self.connection),
            None => Caller::unrestricted().over(&self.connection),
        }
    }
}

/// Beginning of a connection: plain or with a TLS handshake.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionOpening {
    Plain,
    Tls(Tls, Side),
}

/// Protocol inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Http,
    Resp,
}

impl ConnectionOpening {
    pub(crate) fn new(tls: Option<&Tls>, side: Side) -> Self {
        tls.map_or(Self::Plain, |tls| Self::Tls(tls.clone(), side))
    }

    /// Opens the connection; returns `None` when the handshake fails or the server stops.
    pub(crate) async fn open(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        closing: &mut watch::Receiver<bool>,
    ) -> Option<Stream> {
        let acceptor = match self {
            Self::Plain => return Some(stream.into()),
            Self::Tls(tls, Side::Http) => tls.http(),
            Self::Tls(tls, Side::Resp) => tls.resp(),
        };
        // Boxed: the future is large and short-lived.
        let agreed = Box::pin(acceptor.accept(stream));
        tokio::select! {
            agreed = agreed => match agreed {
                Ok(stream) => Some(stream.into()),
                Err(error) => {
                    tracing::debug!(%peer, %error, "TLS handshake failed");
                    None
                }
            },
            () = stopping(closing) => None,
        }
    }

    /// Returns the message for a rejected connection: empty where it would have to be encrypted.
    pub(crate) const fn rejection(&self, plain: &'static [u8]) -> &'static [u8] {
        match self {
            Self::Plain => plain,
            Self::Tls(..) => &[],
        }
    }
}
