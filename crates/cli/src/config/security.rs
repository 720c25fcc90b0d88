//! Permissions, encryption, and the authentication of peers.

use serde::{Deserialize, Serialize};

use super::Config;
use crate::system::secret::Hidden;
use crate::terminal::exit::{Failure, Outcome};

/// `[tokens]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TokensSection {
    pub(crate) file: String,
    pub(crate) open_metrics: bool,
}

/// `[tls]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSection {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) client_ca: String,
}

impl TlsSection {
    /// Returns whether TLS is used.
    pub(crate) fn is_on(&self) -> bool {
        !self.cert.is_empty()
    }
}

/// `[peers]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PeersSection {
    /// Place of the token, never the token itself.
    pub(crate) token: Hidden,
    pub(crate) ca: String,
}

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

/// Checks that a key names the place of a token, or is empty.
pub(super) fn check_place(key: &str, place: &Hidden) -> Outcome {
    if place.is_empty() || place.is_place() {
        return Ok(());
    }
    // The value may be the token itself.
    Err(Failure::usage(format!("{key} is not the place of a token; write file:PATH or env:NAME")))
}
