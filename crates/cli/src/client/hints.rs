//! Hints for failed connections. Usually a scheme, a port or a file is wrong, which the libraries'
//! errors do not say.

use std::error::Error;
use std::io;
use std::iter::successors;

use snowmint_coord::error::chain;

/// Returns what to do about the cause of a missing response from the server at `base`, if known.
pub(super) fn of_connection(base: &str, cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let is_secure = base.starts_with("https:");
    let said = chain(cause).to_string();
    let says = |part: &str| said.contains(part);
    if says("UnknownIssuer") || says("CaUsedAsEndEntity") {
        return Some(
            "nobody whom this machine trusts has signed its certificate: name the file of who did in \
             SNOWMINT_CA_FILE",
        );
    }
    if says("CertificateRequired") {
        return Some(
            "it asks for a certificate of this client: name the file with it and its key in SNOWMINT_CERT_FILE",
        );
    }
    // hyper does not promise stable texts.
    let http = cause.downcast_ref::<hyper::Error>();
    let is_closed = http.is_some_and(hyper::Error::is_incomplete_message);
    match is_secure {
        // In TLS 1.3 the server closes after the client considers the handshake complete, and its
        // alert may be lost.
        true if is_closed || successors(Some(cause), |&cause| cause.source()).any(is_lost) => Some(
            "if it asks for a certificate of this client, name the file with it and its key in \
             SNOWMINT_CERT_FILE",
        ),
        true if says("InvalidContentType") => {
            Some("nobody speaks TLS there: write http://, if this is the port of HTTP")
        }
        false if http.is_some_and(hyper::Error::is_parse) => Some(
            "nobody speaks plain HTTP there: write https:// if it speaks TLS; RESP has a port of its own, which \
             is not this command's",
        ),
        // A server that crashes does the same.
        false if is_closed => {
            Some("if it runs, this is the port of RESP or of another service: take that of HTTP")
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
pub(super) const fn of_stranger(has_token: bool) -> &'static str {
    if has_token {
        "the token of SNOWMINT_TOKEN or SNOWMINT_TOKEN_FILE is none of its own"
    } else {
        "give a token in SNOWMINT_TOKEN, or the file with it in SNOWMINT_TOKEN_FILE"
    }
}
