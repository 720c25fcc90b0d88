//! Sentences for failed TLS connections to servers.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription as Alert, CertificateError, Error as TlsError};

/// Returns the sentence for a failed connection to the server at `address`, if TLS is the cause.
#[must_use]
pub fn tls_failure(address: &str, error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = of_tls(error) {
            return Some(sentence(address, tls));
        }
        next = error.source();
    }
    None
}

fn of_tls<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a TlsError> {
    // An `io::Error` holds its reason inside, and does not return it as its source.
    let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.downcast_ref().or_else(|| inside?.downcast_ref())
}

fn sentence(address: &str, error: &TlsError) -> String {
    use CertificateError as Bad;
    match error {
        // A CA of the same name, perhaps an older one, is not a trusted one.
        TlsError::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => format!(
            "server {address}: certificate signed by an unknown CA; set SNOWMINT_CA_FILE or \
             store.ca"
        ),
        TlsError::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => format!(
            "server {address}: certificate expired; renew it, or correct this machine's clock"
        ),
        TlsError::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            format!("server {address}: certificate not valid yet; check this machine's clock")
        }
        TlsError::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            format!(
                "server {address}: certificate is for another name; use a name in it, or issue it \
                 for this name"
            )
        }
        TlsError::InvalidCertificate(bad) => {
            format!("server {address}: certificate is invalid ({bad:?}); issue another")
        }
        TlsError::InvalidMessage(_) => format!(
            "server {address} does not use TLS; write the scheme without its last s, as snowmint://"
        ),
        TlsError::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::HandshakeFailure
            | Alert::AccessDenied
            | Alert::DecryptError,
        ) => format!(
            "server {address} requires a client certificate it trusts; set SNOWMINT_CERT_FILE or \
             store.cert"
        ),
        _ => format!("TLS with server {address} failed: {error}; use TLS 1.2 or 1.3 on both sides"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Around(io::Error);

    impl std::fmt::Display for Around {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("transport")
        }
    }

    impl StdError for Around {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn advice_is_found_inside_nested_errors() {
        for (error, part) in [
            (TlsError::InvalidCertificate(CertificateError::UnknownIssuer), "SNOWMINT_CA_FILE"),
            (TlsError::InvalidCertificate(CertificateError::Expired), "expired"),
            (TlsError::InvalidCertificate(CertificateError::NotValidForName), "another name"),
            (TlsError::AlertReceived(Alert::CertificateRequired), "SNOWMINT_CERT_FILE"),
        ] {
            let inside = Around(io::Error::new(io::ErrorKind::InvalidData, error));
            let message = tls_failure("here:1", &inside).unwrap();
            assert!(message.contains(part) && message.contains("here:1"), "{message}");
        }
        assert_eq!(tls_failure("here:1", &Around(io::ErrorKind::ConnectionRefused.into())), None);
    }
}
