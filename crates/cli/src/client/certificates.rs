//! Whom a client trusts, and what it shows.

use std::sync::Arc;

use rustls::crypto::ring;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::exit::{Failure, Outcome};

/// The file of those who sign the certificates of servers; without it, those that the system trusts.
const CA_FILE: &str = "SNOWMINT_CA_FILE";
/// The file of one's own certificate and its key, for servers that ask for one.
const CERT_FILE: &str = "SNOWMINT_CERT_FILE";

/// What TLS needs, where it is spoken.
pub(super) fn of(is_spoken: bool) -> Outcome<TlsConfig> {
    let config = TlsConfig::builder();
    if !is_spoken {
        return Ok(config.build());
    }
    let roots = match file(CA_FILE)? {
        Some(items) => certificates(CA_FILE, &items)?,
        None => rustls_native_certs::load_native_certs()
            .certs
            .iter()
            .map(|certificate| Certificate::from_der(certificate).to_owned())
            .collect(),
    };
    let own = match file(CERT_FILE)? {
        None => None,
        Some(items) => {
            let chain = certificates(CERT_FILE, &items)?;
            let key = items.into_iter().find_map(|item| match item {
                PemItem::PrivateKey(key) => Some(key),
                _ => None,
            });
            let key: PrivateKey<'static> = key.ok_or_else(|| {
                Failure::usage(format!("the file of {CERT_FILE} holds no private key in PEM"))
            })?;
            Some(ClientCert::new_with_certs(&chain, key))
        }
    };
    Ok(config
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .client_cert(own)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

/// What is in the file that a variable names, if it names one.
fn file(variable: &str) -> Outcome<Option<Vec<PemItem<'static>>>> {
    let Some(path) = std::env::var(variable).ok().filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let pem = std::fs::read(&path).map_err(|error| {
        Failure::usage(format!("{variable} = {path:?} cannot be read: {error}"))
    })?;
    let items: Result<Vec<_>, _> = parse_pem(&pem).collect();
    // What cannot be read may be a key.
    items.map(Some).map_err(|_| Failure::usage(format!("{variable} = {path:?} is no PEM")))
}

fn certificates(variable: &str, items: &[PemItem<'static>]) -> Outcome<Vec<Certificate<'static>>> {
    let certificates: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate.clone()),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(Failure::usage(format!("the file of {variable} holds no certificate in PEM")));
    }
    Ok(certificates)
}
