//! Certificates that a client trusts and presents.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use snowmint_client::Credentials;

use crate::terminal::exit::{Failure, Outcome};

/// Builds the TLS configuration from credentials.
pub(crate) fn rustls_config(credentials: &Credentials) -> Outcome<ClientConfig> {
    // The unreadable text may be a key, so the error does not quote it.
    let broken = |_| Failure::usage("certificate or key file has invalid PEM; name another file");
    let chain = |pem: &[u8]| -> Outcome<Vec<CertificateDer<'static>>> {
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(broken)
    };
    let roots = match credentials.read_ca().map_err(Failure::usage)? {
        Some(pem) => chain(&pem)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(roots);
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::usage(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(trusted);
    let Some(pem) = credentials.read_cert().map_err(Failure::usage)? else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(broken)?;
    builder
        .with_client_auth_cert(chain(&pem)?, key)
        .map_err(|error| Failure::usage(format!("client certificate cannot be used: {error}")))
}

/// Returns the host of a URL as certificates name it: an IPv6 address without brackets.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, InvalidDnsNameError> {
    ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
}
