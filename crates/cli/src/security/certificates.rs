//! The files of certificates.

use std::path::Path;

use snowmint_coord::private::read_trusted;
use snowmint_server::{Pems, Secret, Tls};

use super::settled::Settled;
use crate::config::{Config, TlsSection};
use crate::terminal::exit::{Failure, Outcome};

/// Certificates, and their files.
pub(super) struct Certificates {
    paths: TlsSection,
    peers_ca: String,
    tls: Tls,
    /// Last content of the files, usable or not: an unchanged content is not logged again.
    seen: Settled<Result<Pems, String>>,
}

impl Certificates {
    /// Loads the certificates of a configuration; `None` if it names none.
    pub(super) fn load(config: &Config) -> Outcome<Option<Self>> {
        let (paths, peers_ca) = (config.tls.clone(), config.peers.ca.clone());
        if !paths.is_on() {
            return Ok(None);
        }
        let pems = read(&paths, &peers_ca).map_err(Failure::usage)?;
        let tls = Tls::new(&pems).map_err(Failure::usage)?;
        Ok(Some(Self { paths, peers_ca, tls, seen: Settled::new(Ok(pems)) }))
    }

    pub(super) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Reads the files again, and uses them if they have changed and are usable. Certificate and
    /// key are two files: for a moment they may not match.
    pub(super) fn poll(&mut self) {
        let now = read(&self.paths, &self.peers_ca);
        let Some(now) = self.seen.read(now) else { return };
        match now.and_then(|pems| self.tls.replace(&pems)) {
            Ok(()) => tracing::info!(cert = self.paths.cert, "certificates reloaded"),
            Err(error) => tracing::error!("{error}; keeping the current certificates"),
        }
    }
}

fn read(paths: &TlsSection, peers_ca: &str) -> Result<Pems, String> {
    let file = |key: &str, path: &str| read_trusted(&format!("{key} {path:?}"), Path::new(path));
    let optional = |key: &str, path: &str| match path {
        "" => Ok(None),
        path => file(key, path).map(Some),
    };
    let key = String::from_utf8(file("tls.key", &paths.key)?)
        .map_err(|_| "tls.key has no PEM private key; name a file that has one".to_owned())?;
    Ok(Pems {
        cert: file("tls.cert", &paths.cert)?,
        key: Secret::new(key),
        client_ca: optional("tls.client_ca", &paths.client_ca)?,
        peers_ca: optional("peers.ca", peers_ca)?,
    })
}
