//! Permissions, encryption, and the authentication of peers.

use super::secrets::check_place;
use super::sections::Config;
use crate::terminal::exit::{Failure, Outcome};

/// Checks conditions over several values of these sections.
pub(super) fn check(config: &Config) -> Outcome {
    let Config { tokens, tls, peers, .. } = config;
    let refused = |reason: &str| Err(Failure::usage(reason));
    check_place("peers.token", &peers.token)?;
    if !peers.token.is_empty() && tokens.file.is_empty() {
        return refused("peers.token needs tokens.file; set it, too");
    }
    if tls.cert.is_empty() != tls.key.is_empty() {
        return refused("tls.cert and tls.key belong together; set both or none");
    }
    let needs_tls = !tls.client_ca.is_empty() || !peers.ca.is_empty();
    if needs_tls && !tls.is_on() {
        return refused("tls.client_ca and peers.ca need TLS; set tls.cert and tls.key, too");
    }
    Ok(())
}
