//! The store of marks, and the credentials for it if servers offer it.

use std::path::Path;

use snowmint_client::Credentials;
use snowmint_coord::Error;
use snowmint_server::settings;

use super::secrets::check_place;
use crate::system::secret::{self, Hidden};
use crate::terminal::exit::{Failure, Outcome};

settings! {
    /// `[store]`
    pub(crate) struct StoreSection {
        /// URL of the store: {}. The store memory: loses everything when the process ends, and
        /// needs --ephemeral. With servers as the store: snowmint://HOST:PORT,HOST:PORT, with TLS
        /// snowmints://. Empty: sqlite:DIR/snowmint.db in server.data_dir.
        #[listing(snowmint_stores::url_forms)]
        pub(crate) url: Hidden,
        /// Namespace; isolates deployments that share a store.
        pub(crate) namespace: String = "default".into(),
        /// Attempts at a step when other writers win, in stores with a row for each key, such as
        /// redis and etcd; then the call fails (exit code 4).
        ///
        /// The error is `unavailable`, with the number of attempts. With waits of up to 64 ms, ten
        /// thousand attempts take five minutes, the longest of all waits.
        #[within(1..=10_000)]
        pub(crate) attempts_max: u32 = snowmint_stores::Settings::default().attempts_max,
        /// Whether programs may mint in their own process through this server
        /// (snowmint://HOST:PORT). They call its store over gRPC for worker numbers, windows and
        /// segments. If tokens are required, their tokens need the right join.
        ///
        /// It opens `snowmint.store.v1` (docs/how-to/mint-in-rust.md), of which each token has a
        /// share (docs/reference/access.md#programs-that-mint-in-their-own-process).
        pub(crate) offered: bool,
        /// Location of the token for servers that are used as the store: file:PATH or env:NAME,
        /// never the token itself. Empty: SNOWMINT_TOKEN, or the file that SNOWMINT_TOKEN_FILE
        /// names.
        pub(crate) token: Hidden,
        /// File (PEM) of the authorities that sign the certificates of those servers
        /// (snowmints://). Empty: the file that SNOWMINT_CA_FILE names, otherwise the authorities
        /// that the system trusts.
        pub(crate) ca: String,
        /// File (PEM) of the certificate, with its key, for servers that ask for one. Empty: the
        /// file that SNOWMINT_CERT_FILE names, otherwise none.
        pub(crate) cert: String,
    }
}

/// Returns the default store of a data directory.
pub(crate) fn default_url(data_dir: &Path) -> String {
    format!("sqlite:{}", data_dir.join("snowmint.db").display())
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
