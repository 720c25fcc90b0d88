//! The loaded server: its connections, and the credentials for it.

use std::sync::Arc;

use hyper::header::HeaderValue;
use rustls::pki_types::ServerName;
use snowmint_client::Credentials;
use tokio_rustls::TlsConnector;

use super::target::Target;
use crate::client::{bearer, rustls_config, server_name};
use crate::terminal::exit::{Failure, Outcome};

/// A server, with the token and the certificates of the environment.
#[derive(Clone)]
pub(super) struct BenchServer {
    pub(super) target: Target,
    pub(super) credentials: Credentials,
    /// TLS connector, and the server name to verify.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Value of the `authorization` header.
    bearer: Option<HeaderValue>,
}

impl BenchServer {
    pub(super) fn new(target: Target) -> Outcome<Self> {
        let credentials = Credentials::from_env().map_err(Failure::usage)?;
        let bearer = bearer(&credentials)?;
        let tls = target.tls.then(|| {
            let config = rustls_config(&credentials)?;
            let host = target.address.rsplit_once(':').map_or("", |(host, _)| host);
            let name = server_name(host).map_err(|error| {
                Failure::usage(format!("{target}: host is not a name for certificates: {error}"))
            })?;
            Ok::<_, Failure>((TlsConnector::from(Arc::new(config)), name))
        });
        Ok(Self { tls: tls.transpose()?, target, credentials, bearer })
    }

    pub(super) fn tls(&self) -> Option<(&TlsConnector, ServerName<'static>)> {
        self.tls.as_ref().map(|(connector, name)| (connector, name.clone()))
    }

    /// Returns the value of the `authorization` header as text.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.bearer.as_ref()?.to_str().ok()
    }

    /// Returns the token alone.
    pub(super) fn token(&self) -> Option<&str> {
        self.bearer()?.strip_prefix("Bearer ")
    }
}
