//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};

use super::put;
use crate::server::Folder;

/// A certificate authority.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
pub(super) struct Signed {
    pub(super) cert: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for this machine, valid for servers and clients.
    pub(super) fn sign(&self) -> Signed {
        self.sign_for(&["localhost", "127.0.0.1"], 2100)
    }

    /// Signs one for these names, valid until a year.
    pub(super) fn sign_for(&self, names: &[&str], until_year: i32) -> Signed {
        // With its issuer's name, it would look self-signed.
        self.sign_as("unnamed", names, until_year)
    }

    /// Signs one with this common name; the other names are hosts, addresses and URIs.
    pub(super) fn sign_as(&self, common: &str, names: &[&str], until_year: i32) -> Signed {
        let names = names.iter().map(|name| (*name).to_owned());
        let (uris, names): (Vec<_>, Vec<_>) = names.partition(|name| name.contains("://"));
        let mut params = CertificateParams::new(names).unwrap();
        let uris = uris.into_iter().map(|uri| SanType::URI(uri.try_into().unwrap()));
        params.subject_alt_names.extend(uris);
        params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap().pem();
        Signed { cert, key: key.serialize_pem() }
    }

    /// Writes a new server certificate into `cert.pem` and `key.pem`, and the authority's
    /// certificate.
    pub(super) fn put_into(&self, folder: &Folder, ca: &str) -> [String; 3] {
        self.put_signed(folder, ca, &self.sign())
    }

    /// Writes an existing certificate in the same way.
    pub(super) fn put_signed(&self, folder: &Folder, ca: &str, signed: &Signed) -> [String; 3] {
        let Signed { cert, key } = signed;
        [put(folder, "cert.pem", cert), put(folder, "key.pem", key), put(folder, ca, &self.pem())]
    }
}
