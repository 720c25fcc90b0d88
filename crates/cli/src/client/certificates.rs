//! Whom a client trusts, and what it shows.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use snowmint_client::Credentials;
use ureq::tls::{Certificate, ClientCert, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::exit::{Failure, Outcome};

/// What TLS needs, where it is spoken.
pub(super) fn of(credentials: &Credentials, is_spoken: bool) -> Outcome<TlsConfig> {
    let config = TlsConfig::builder();
    if !is_spoken {
        return Ok(config.build());
    }
    let roots = match credentials.read_ca().map_err(Failure::usage)? {
        Some(pem) => certificates(&items(&pem)?),
        None => rustls_native_certs::load_native_certs()
            .certs
            .iter()
            .map(|certificate| Certificate::from_der(certificate).to_owned())
            .collect(),
    };
    let own = match credentials.read_cert().map_err(Failure::usage)? {
        None => None,
        Some(pem) => {
            let items = items(&pem)?;
            let chain = certificates(&items);
            let key = items.into_iter().find_map(|item| match item {
                PemItem::PrivateKey(key) => Some(key),
                _ => None,
            });
            key.map(|key| ClientCert::new_with_certs(&chain, key))
        }
    };
    Ok(config
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .client_cert(own)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

/// The same for those who speak over a socket of their own.
pub(crate) fn rustls_config(credentials: &Credentials) -> Outcome<ClientConfig> {
    // What cannot be read may be a key.
    let broken = |_| Failure::usage("the file of a certificate, or of a key, is broken PEM");
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
        .map_err(|error| Failure::usage(format!("TLS is not possible: {error}")))?
        .with_root_certificates(trusted);
    let Some(pem) = credentials.read_cert().map_err(Failure::usage)? else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(broken)?;
    builder
        .with_client_auth_cert(chain(&pem)?, key)
        .map_err(|error| Failure::usage(format!("this client's certificate: {error}")))
}

fn items(pem: &[u8]) -> Outcome<Vec<PemItem<'static>>> {
    let items: Result<Vec<_>, _> = parse_pem(pem).collect();
    // What cannot be read may be a key.
    items.map_err(|_| {
        Failure::usage("the file of a certificate, or of a key, is broken PEM".to_owned())
    })
}

fn certificates(items: &[PemItem<'static>]) -> Vec<Certificate<'static>> {
    let certificate = |item: &PemItem<'static>| match item {
        PemItem::Certificate(certificate) => Some(certificate.clone()),
        _ => None,
    };
    items.iter().filter_map(certificate).collect()
}
