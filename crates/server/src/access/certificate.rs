//! What a client's certificate calls its owner, and how tokens name that.
//!
//! Whether a certificate is to be believed is decided before, by those who sign certificates of clients
//! (`tls.client_ca`).

use std::sync::Arc;

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::service::shown;

/// What names begin with, the more special first: they are looked for in this order.
const KINDS: [&str; 4] = ["URI=", "DNS=", "EMAIL=", "CN="];

/// The names in a certificate, as tokens write them: `CN=orders-service`, `URI=spiffe://example/orders`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Option<Arc<[String]>>);

impl Names {
    /// Those of a certificate. One that cannot be read calls nobody anything.
    pub(crate) fn of(der: &[u8]) -> Self {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Self::default() };
        let mut names = Vec::new();
        if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
            for name in &alternative.value.general_names {
                match name {
                    GeneralName::URI(uri) => names.push(format!("URI={uri}")),
                    GeneralName::DNSName(host) => names.push(format!("DNS={host}")),
                    GeneralName::RFC822Name(address) => names.push(format!("EMAIL={address}")),
                    _ => {}
                }
            }
        }
        let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        names.extend(common.map(|name| format!("CN={name}")));
        names.sort_by_key(|name| KINDS.iter().position(|kind| name.starts_with(kind)));
        Self((!names.is_empty()).then(|| names.into()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|names| names.iter()).map(String::as_str)
    }
}

/// Checks a name that a token is to stand for.
pub(super) fn check(name: &str) -> Result<(), String> {
    let named = KINDS.iter().find_map(|kind| name.strip_prefix(kind));
    if named.is_some_and(|rest| !rest.is_empty() && rest.trim() == rest) {
        return Ok(());
    }
    Err(format!(
        "{} is no name of a certificate: write CN=NAME, DNS=HOST, URI=URI or EMAIL=ADDRESS, as it stands \
         in the certificate",
        shown(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_with_their_kind() {
        for name in ["CN=a b", "DNS=orders.internal", "URI=spiffe://x/y", "EMAIL=a@b"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in ["", "CN=", "CN= a", "orders", "cn=a", "IP=10.0.0.1"] {
            assert!(check(name).is_err(), "{name}");
        }
        assert_eq!(Names::of(b"no certificate").iter().count(), 0);
    }
}
