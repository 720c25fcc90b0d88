//! Parsing of a URL: the servers, and the way to connect to them.

use redis::{ClientTlsConfig, TlsCertificates};
use rustls::crypto::CryptoProvider;
use snowmint_coord::{Error, Result};

use crate::tls::Files;

/// URL parameter by which an operator accepts a server with any settings.
pub(super) const PARAMETER: &str = "persistence=any";

/// Address of Redis. It has no `Debug`, which would show a password.
#[derive(Clone)]
pub(crate) struct Address {
    pub(super) servers: Servers,
    /// With TLS: trusted authorities, and our own certificate.
    pub(super) certificates: Option<TlsCertificates>,
    /// Whether each run of the server counts as another store.
    pub(super) by_run: bool,
}

/// One server, or some servers of a cluster, each by a URL that the driver knows.
#[derive(Clone)]
pub(super) enum Servers {
    One(String),
    Cluster(Vec<String>),
}

impl Address {
    /// Parses `SCHEME://USER:PASSWORD@HOST:PORT/DATABASE?NAME=VALUE&…`; for a cluster, more servers
    /// follow after commas. The driver checks the part before the question mark.
    ///
    /// # Errors
    /// `Invalid`, without text that may be a password; `Unsupported` when this process has no
    /// cryptography provider for TLS.
    pub(crate) fn read(url: &str, label: &str) -> Result<Self> {
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, place) = place.split_once("://").unwrap_or((place, ""));
        let secure = scheme.starts_with("rediss");
        let (mut by_run, mut files) = (false, Vec::new());
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                _ if parameter == PARAMETER => by_run = true,
                Some((name, file)) if secure && name != "persistence" => files.push((name, file)),
                _ => {
                    return Err(Error::invalid(format!(
                        "{label}: unknown URL parameter; use {PARAMETER}, and with rediss: ca, \
                         cert and key"
                    )));
                }
            }
        }
        let certificates = if secure { Some(certificates(scheme, &files, label)?) } else { None };
        let one = if secure { "rediss" } else { "redis" };
        let servers = if scheme.ends_with("-cluster") {
            let (user, servers) = match place.rsplit_once('@') {
                Some((user, servers)) => (format!("{user}@"), servers),
                None => (String::new(), place),
            };
            let servers = servers.split(',').map(|server| format!("{one}://{user}{server}"));
            Servers::Cluster(servers.collect())
        } else {
            Servers::One(format!("{one}://{place}"))
        };
        Ok(Self { servers, certificates, by_run })
    }
}

#[cfg(feature = "legacy")]
impl Address {
    /// Returns the address of another server at `HOST:PORT`, with the settings of the first.
    pub(super) fn another(&self, place: &str) -> Self {
        let first = match &self.servers {
            Servers::One(url) => url.as_str(),
            Servers::Cluster(urls) => urls.first().map_or("", String::as_str),
        };
        let (scheme, rest) = first.split_once("://").unwrap_or(("redis", ""));
        let user = rest.rsplit_once('@').map_or_else(String::new, |(user, _)| format!("{user}@"));
        let servers = Servers::One(format!("{scheme}://{user}{place}"));
        Self { servers, certificates: self.certificates.clone(), by_run: self.by_run }
    }
}

fn certificates(scheme: &str, files: &[(&str, &str)], label: &str) -> Result<TlsCertificates> {
    let Files { ca, identity } = Files::read(scheme, files.iter().copied())?;
    // The driver uses the provider of the whole process. Without one it would set one, or panic if
    // it had two to choose from: the program must make that choice.
    if CryptoProvider::get_default().is_none() {
        return Err(Error::unsupported(format!(
            "{label}: TLS to Redis needs a process-wide rustls provider; call \
             rustls::crypto::ring::default_provider().install_default() at start"
        )));
    }
    let client_tls =
        identity.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
    Ok(TlsCertificates { client_tls, root_cert: ca })
}
