//! The store of marks, and the credentials for it if servers offer it.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};
use snowmint_client::Credentials;
use snowmint_coord::Error;

use super::secrets::check_place;
use crate::system::secret::{self, Hidden};
use crate::terminal::exit::{Failure, Outcome};

/// `[store]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreSection {
    pub(crate) url: Hidden,
    pub(crate) namespace: String,
    #[serde(deserialize_with = "attempts_max")]
    pub(crate) attempts_max: u32,
    pub(crate) offered: bool,
    /// Place of the token, never the token itself.
    pub(crate) token: Hidden,
    pub(crate) ca: String,
    pub(crate) cert: String,
}

impl Default for StoreSection {
    fn default() -> Self {
        let attempts_max = snowmint_stores::Settings::default().attempts_max;
        Self {
            url: Hidden::default(),
            namespace: "default".into(),
            attempts_max,
            offered: false,
            token: Hidden::default(),
            ca: String::new(),
            cert: String::new(),
        }
    }
}

/// Returns the default store of a data directory.
pub(crate) fn default_url(data_dir: &Path) -> String {
    format!("sqlite:{}", data_dir.join("snowmint.db").display())
}

/// Deserializes the number of attempts. With waits of up to 64 ms, ten thousand attempts take five
/// minutes, the longest of all waits.
fn attempts_max<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let attempts_max = u32::deserialize(deserializer)?;
    if (1..=10_000).contains(&attempts_max) {
        return Ok(attempts_max);
    }
    Err(serde::de::Error::custom("allowed are 1 to 10000"))
}

impl StoreSection {
    /// Returns the credentials for servers: from these keys, else from the environment, as for
    /// every command.
    pub(crate) fn credentials(&self) -> snowmint_coord::Result<Credentials> {
        let mut credentials = Credentials::from_env().map_err(Error::invalid)?;
        credentials = match self.token.text().split_once(':') {
            None => credentials,
            // The file is read when needed, so that it can be replaced without a restart.
            Some(("file", path)) => credentials.token_file(path),
            Some(_) => {
                let token = secret::at("store.token", &self.token).map_err(Error::invalid)?;
                credentials.token(&token)
            }
        };
        if !self.ca.is_empty() {
            credentials = credentials.ca_file(&self.ca);
        }
        if !self.cert.is_empty() {
            credentials = credentials.cert_file(&self.cert);
        }
        Ok(credentials)
    }

    /// Checks conditions over several values.
    pub(super) fn check(&self) -> Outcome {
        check_place("store.token", &self.token)?;
        let shows =
            !self.token.is_empty() || [&self.ca, &self.cert].iter().any(|key| !key.is_empty());
        if shows && !snowmint_client::is_url(self.url.text()) {
            return Err(Failure::usage(
                "store.token, store.ca and store.cert need a store of servers; set store.url to \
                 snowmints://HOST:PORT",
            ));
        }
        Ok(())
    }
}
