//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};

use super::put;
use crate::server::Folder;

/// Somebody who signs certificates.
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

    /// A certificate for this machine, as a server and as a client.
    pub(super) fn sign(&self) -> Signed {
        self.sign_for(&["localhost", "127.0.0.1"], 2100)
    }

    /// The same for these names, until a year.
    pub(super) fn sign_for(&self, names: &[&str], until_year: i32) -> Signed {
        // With the name of its issuer it would look as if it had signed itself.
        self.sign_as("somebody", names, until_year)
    }

    /// The same with this common name; the others are hosts, addresses and URIs.
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

    /// Writes a new certificate of a server into `cert.pem` and `key.pem`, and who signed it.
    pub(super) fn put_into(&self, folder: &Folder, ca: &str) -> [String; 3] {
        self.put_signed(folder, ca, &self.sign())
    }

    /// The same with a certificate that was made.
    pub(super) fn put_signed(&self, folder: &Folder, ca: &str, signed: &Signed) -> [String; 3] {
        let Signed { cert, key } = signed;
        [put(folder, "cert.pem", cert), put(folder, "key.pem", key), put(folder, ca, &self.pem())]
    }
}
