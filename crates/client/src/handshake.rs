//! Advice for failed TLS connections to servers.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription as Alert, CertificateError, Error as TlsError};

/// Returns advice for a failed connection, as far as TLS is the cause.
#[must_use]
pub fn advice(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = of_tls(error) {
            return Some(about(tls));
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

fn about(error: &TlsError) -> &'static str {
    use CertificateError as Bad;
    match error {
        // A CA of the same name, perhaps an older one, is not a trusted one.
        TlsError::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "nobody who is trusted here has signed its certificate: name who has, by SNOWMINT_CA_FILE or store.ca"
        }
        TlsError::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "its certificate has expired: renew it there; or this machine's clock is wrong"
        }
        TlsError::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "its certificate is not valid yet: is this machine's clock right?"
        }
        TlsError::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "its certificate is for other names: ask it by one of those, or have one made for this name"
        }
        TlsError::InvalidCertificate(_) => "its certificate cannot be used: have another one made",
        TlsError::InvalidMessage(_) => {
            "nobody speaks TLS there: a server without it is named by the scheme without its last s, as snowmint://"
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
        ) => {
            "it wants a certificate of this client, signed by somebody whom it trusts: SNOWMINT_CERT_FILE or \
             store.cert names it"
        }
        _ => "the two agree on no TLS: both must speak version 1.2 or 1.3",
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
    fn what_to_do_is_found_inside_of_other_errors() {
        for (error, part) in [
            (TlsError::InvalidCertificate(CertificateError::UnknownIssuer), "SNOWMINT_CA_FILE"),
            (TlsError::InvalidCertificate(CertificateError::Expired), "expired"),
            (TlsError::InvalidCertificate(CertificateError::NotValidForName), "other names"),
            (TlsError::AlertReceived(Alert::CertificateRequired), "SNOWMINT_CERT_FILE"),
        ] {
            let inside = Around(io::Error::new(io::ErrorKind::InvalidData, error));
            let advice = advice(&inside).unwrap();
            assert!(advice.contains(part), "{advice}");
        }
        assert_eq!(advice(&Around(io::ErrorKind::ConnectionRefused.into())), None);
    }
}
