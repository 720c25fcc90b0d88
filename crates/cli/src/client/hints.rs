//! Hints for failed connections. Usually a scheme, a port or a file is wrong, which the libraries'
//! errors do not say.

use std::error::Error;
use std::io;
use std::iter::successors;

use snowmint_coord::error::chain;

/// Returns what to do about the cause of a missing response from the server at `base`, if known.
pub(super) fn of_connection(base: &str, cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let is_secure = base.starts_with("https:");
    let message = chain(cause).to_string();
    let says = |part: &str| message.contains(part);
    if says("UnknownIssuer") || says("CaUsedAsEndEntity") {
        return Some("its certificate is signed by an unknown CA: set SNOWMINT_CA_FILE");
    }
    if says("CertificateRequired") {
        return Some(
            "it requires a client certificate: set SNOWMINT_CERT_FILE to a file with it and its \
             key",
        );
    }
    // hyper does not promise stable texts.
    let http = cause.downcast_ref::<hyper::Error>();
    let is_closed = http.is_some_and(|http| {
        // The last two: before the request was sent.
        http.is_incomplete_message() || http.is_canceled() || http.is_closed()
    });
    match is_secure {
        // In TLS 1.3 the server closes after the client considers the handshake complete, and its
        // alert may be lost.
        true if is_closed || successors(Some(cause), |&cause| cause.source()).any(is_lost) => Some(
            "if it requires a client certificate, set SNOWMINT_CERT_FILE to a file with it and its \
             key",
        ),
        true if says("InvalidContentType") => {
            Some("it does not use TLS: write http://, if this is the port of HTTP")
        }
        false if http.is_some_and(hyper::Error::is_parse) => Some(
            "it does not use plain HTTP: write https:// if it uses TLS; RESP has a port of its own",
        ),
        // A server that crashes does the same.
        false if is_closed => {
            Some("if it runs, this is the port of RESP or of another service: use that of HTTP")
        }
        _ => None,
    }
}

/// Returns whether the server closed the socket.
fn is_lost(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let kind = cause.downcast_ref().map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionReset | UnexpectedEof))
}

/// Returns the hint for an unauthenticated caller.
pub(super) const fn of_unauthenticated(has_token: bool) -> &'static str {
    if has_token {
        "correct the token in SNOWMINT_TOKEN or SNOWMINT_TOKEN_FILE"
    } else {
        "set SNOWMINT_TOKEN or SNOWMINT_TOKEN_FILE"
    }
}
