//! Names in a client's certificate, and their form in tokens.
//!
//! The trust in a certificate is decided before: TLS rejects every certificate without a signature
//! of `tls.client_ca`. Names are compared as a whole: neither side has patterns.

use std::fmt;
use std::sync::Arc;

use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};

use crate::error::shown;

/// `id-at-commonName` (RFC 5280, appendix A.1).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Kinds of names that count, the more specific first: the lookup follows this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NameKind {
    Uri,
    Dns,
    Email,
    Common,
}

impl NameKind {
    const ALL: [Self; 4] = [Self::Uri, Self::Dns, Self::Email, Self::Common];

    /// Returns the prefix of the kind in tokens.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Uri => "URI=",
            Self::Dns => "DNS=",
            Self::Email => "EMAIL=",
            Self::Common => "CN=",
        }
    }

    /// Returns the form of a name for comparison: hosts in lower case, since their case has no
    /// meaning (RFC 5280, 7.2 and 7.5), all else unchanged.
    fn compared(self, name: &str) -> String {
        let prefix = self.prefix();
        match (self, name.rsplit_once('@')) {
            (Self::Dns, _) => format!("{prefix}{}", name.to_ascii_lowercase()),
            (Self::Email, Some((person, host))) => {
                format!("{prefix}{person}@{}", host.to_ascii_lowercase())
            }
            _ => format!("{prefix}{name}"),
        }
    }
}

/// Names in a certificate, in the form of tokens: `CN=orders-service`,
/// `URI=spiffe://example/orders`.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateNames(Option<Arc<[String]>>);

impl CertificateNames {
    /// Returns the names of a certificate; an unreadable certificate has none.
    pub(crate) fn of(der: &[u8]) -> Self {
        let names = names(der).unwrap_or_default();
        Self((!names.is_empty()).then(|| names.into()))
    }

    /// Returns the names in the order of the lookup.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|names| names.iter()).map(String::as_str)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Display for CertificateNames {
    /// Writes the names for the owner of the certificate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 4;
        for (n, name) in self.iter().take(SHOWN_MAX).enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{}", shown(name))?;
        }
        match self.iter().count().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn names(der: &[u8]) -> Option<Vec<String>> {
    let certificate = Certificate::from_der(der).ok()?;
    let certificate = certificate.tbs_certificate();
    // With one unreadable part, the meaning of the rest is unknown.
    let alternative = certificate.get_extension::<SubjectAltName>().ok()?;
    let alternative = alternative.iter().flat_map(|(_, names)| &names.0);
    let mut names: Vec<_> = alternative
        .filter_map(|name| match name {
            GeneralName::UniformResourceIdentifier(uri) => Some((NameKind::Uri, uri.to_string())),
            GeneralName::DnsName(host) => Some((NameKind::Dns, host.to_string())),
            GeneralName::Rfc822Name(address) => Some((NameKind::Email, address.to_string())),
            _ => None,
        })
        .collect();
    // The last common name is the most specific; those before it may be folders with many entries.
    let common = certificate.subject().iter().filter(|named| named.oid == COMMON_NAME).last();
    names.extend(common.and_then(text).map(|name| (NameKind::Common, name)));
    names.sort_by_key(|(kind, _)| *kind);
    Some(names.into_iter().map(|(kind, name)| kind.compared(&name)).collect())
}

/// Returns the text of an attribute, in one of the two forms that RFC 5280 (4.1.2.4) lets
/// authorities use.
fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    match attribute.value.decode_as().ok()? {
        DirectoryString::PrintableString(text) => Some(text.to_string()),
        DirectoryString::Utf8String(text) => Some(text),
        DirectoryString::TeletexString(_) | DirectoryString::BmpString(_) => None,
    }
}

/// Returns the comparison form of a name that maps to a token.
pub(super) fn name(text: &str) -> Result<Arc<str>, String> {
    let named = |kind: NameKind| Some((kind, text.strip_prefix(kind.prefix())?));
    match NameKind::ALL.into_iter().find_map(named) {
        Some((_, name)) if name.contains('*') => Err(format!(
            "certificate name {} is a pattern, but names are compared whole; write each by itself",
            shown(text)
        )),
        Some((kind, name)) if !name.is_empty() && name.trim() == name => {
            Ok(kind.compared(name).into())
        }
        _ => Err(format!(
            "{} is not a certificate name; write URI=URI, DNS=HOST, EMAIL=ADDRESS or CN=NAME, as \
             `snowmint token names` prints them",
            shown(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    fn signed(params: &CertificateParams) -> Vec<String> {
        let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec();
        CertificateNames::of(&der).iter().map(str::to_owned).collect()
    }

    #[test]
    fn tokens_write_names_with_their_kind() {
        for (text, compared) in [
            ("CN=A b", "CN=A b"),
            ("DNS=Orders.Internal", "DNS=orders.internal"),
            ("URI=spiffe://X/Y", "URI=spiffe://X/Y"),
            ("EMAIL=Ada@Example.org", "EMAIL=Ada@example.org"),
            ("CN=CN=a", "CN=CN=a"),
        ] {
            assert_eq!(name(text).as_deref(), Ok(compared), "{text}");
        }
        for text in ["", "CN=", "CN= a", "orders", "cn=a", "IP=10.0.0.1", "DNS=*.internal", "CN=*"]
        {
            let error = name(text).unwrap_err();
            assert!(error.contains(text), "{text}: {error}");
        }
    }

    #[test]
    fn names_are_looked_for_in_the_order_of_their_kinds() {
        let mut params =
            CertificateParams::new(["B.internal".into(), "a.internal".into()]).unwrap();
        let more = [
            SanType::Rfc822Name("Ada@Example.org".try_into().unwrap()),
            SanType::IpAddress([10, 0, 0, 1].into()),
            SanType::URI("spiffe://x/Y".try_into().unwrap()),
        ];
        params.subject_alt_names.extend(more);
        params.distinguished_name.push(DnType::OrganizationName, "CN=boss");
        params.distinguished_name.push(DnType::CommonName, "Orders");
        let names = [
            "URI=spiffe://x/Y",
            "DNS=b.internal",
            "DNS=a.internal",
            "EMAIL=Ada@example.org",
            "CN=Orders",
        ];
        assert_eq!(signed(&params), names);
    }

    #[test]
    fn of_several_common_names_the_most_special_counts() {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        // The same kind by its number: the library keeps only one of each kind.
        params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 3]), "Users");
        params.distinguished_name.push(DnType::CommonName, "ada");
        assert_eq!(signed(&params), ["CN=ada"]);
    }

    #[test]
    fn unreadable_certificate_has_no_names() {
        assert!(CertificateNames::of(b"no certificate").is_empty());
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        assert_eq!(signed(&params), Vec::<String>::new());
        params.distinguished_name.push(DnType::CommonName, "orders");
        assert_eq!(signed(&params), ["CN=orders"]);
        // With broken alternative names, the other names of the certificate do not count either.
        let broken =
            rcgen::CustomExtension::from_oid_content(&[2, 5, 29, 17], b"\x02\x01\x01".to_vec());
        params.custom_extensions.push(broken);
        assert_eq!(signed(&params), Vec::<String>::new());
    }

    #[test]
    fn not_all_names_of_a_long_list_are_repeated() {
        let hosts: Vec<_> = (0..6).map(|n| format!("h{n}.internal")).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let der = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let shown_names = CertificateNames::of(der.der()).to_string();
        assert!(
            shown_names.starts_with("\"DNS=h0.internal\", ")
                && shown_names.ends_with(" and 2 more"),
            "{shown_names}"
        );
    }
}
