//! Sentences for failed TLS connections to servers.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription as Alert, CertificateError, Error as TlsError};

/// Returns the sentence for a failed connection to the server at `address`, if TLS is the cause.
#[must_use]
pub fn tls_failure(address: &str, error: &(dyn StdError + 'static)) -> Option<String> {
    Some(format!("{} (server {address})", tls_sentence(error)?))
}

/// Returns the same sentence without the address.
pub(crate) fn tls_sentence(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = of_tls(error) {
            return Some(sentence(tls));
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

fn sentence(error: &TlsError) -> String {
    use CertificateError as Bad;
    match error {
        // A CA of the same name, perhaps an older one, is not a trusted one.
        TlsError::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "certificate of the server is signed by an unknown CA; set SNOWMINT_CA_FILE or store.ca"
                .to_owned()
        }
        TlsError::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "certificate of the server expired; renew it, or correct this machine's clock"
                .to_owned()
        }
        TlsError::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "certificate of the server is not valid yet; check this machine's clock".to_owned()
        }
        TlsError::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "certificate of the server is for another name; use a name in it, or issue it for \
             this name"
                .to_owned()
        }
        TlsError::InvalidCertificate(bad) => {
            format!("certificate of the server is invalid ({bad:?}); issue another")
        }
        TlsError::InvalidMessage(_) => {
            "server does not use TLS; write the scheme without its last s, as snowmint://"
                .to_owned()
        }
        TlsError::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::HandshakeFailure
            | Alert::AccessDenied
            | Alert::DecryptError,
        ) => "server requires a client certificate it trusts; set SNOWMINT_CERT_FILE or store.cert"
            .to_owned(),
        _ => format!("TLS with the server failed: {error}; use TLS 1.2 or 1.3 on both sides"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct WrappedError(io::Error);

    impl std::fmt::Display for WrappedError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("transport")
        }
    }

    impl StdError for WrappedError {
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
            let inside = WrappedError(io::Error::new(io::ErrorKind::InvalidData, error));
            let message = tls_failure("here:1", &inside).unwrap();
            assert!(message.contains(part) && message.contains("here:1"), "{message}");
            assert!(!tls_sentence(&inside).unwrap().contains("here:1"));
        }
        assert_eq!(
            tls_failure("here:1", &WrappedError(io::ErrorKind::ConnectionRefused.into())),
            None
        );
    }
}
