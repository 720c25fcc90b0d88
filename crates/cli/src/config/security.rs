//! Who may ask, and how servers know each other.

use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Outcome};

/// `[tokens]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TokensSection {
    pub(crate) file: String,
    pub(crate) open_metrics: bool,
}

/// `[peers]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PeersSection {
    /// Where it is, never the token itself.
    pub(crate) token: String,
}

impl PeersSection {
    pub(super) fn check(&self, tokens: &TokensSection) -> Outcome {
        let is_place = ["file:", "env:"].iter().any(|scheme| self.token.starts_with(scheme));
        if !self.token.is_empty() && !is_place {
            // What stands there may be the token.
            return Err(Failure::usage(
                "peers.token says where the token is: write file:PATH or env:NAME",
            ));
        }
        if !self.token.is_empty() && tokens.file.is_empty() {
            return Err(Failure::usage(
                "peers.token is for servers that ask for tokens: say tokens.file, too",
            ));
        }
        Ok(())
    }
}
