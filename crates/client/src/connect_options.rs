//! Connection options: TLS, trusted certificates, credentials and time limits.

use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};

use crate::credentials::Credentials;
use crate::servers_url::bearer;

/// Options that all servers of a URL share. Its `Debug` would show the token: it has none.
pub(crate) struct ConnectOptions {
    pub(crate) tls: bool,
    /// Token of the URL, which takes precedence over that of the credentials.
    pub(crate) token: Option<String>,
    pub(crate) credentials: Credentials,
    /// Time limit for a connection in milliseconds, with all calls until its store is described.
    pub(crate) connect_ms: u64,
}

impl ConnectOptions {
    /// Returns the time limit for all addresses of a server together. They are tried one after the
    /// other, each with an equal share of it. Without this limit, the first unresponsive address
    /// takes the whole time. The rest is for the calls after an address accepted the connection.
    pub(crate) fn reach(&self) -> Duration {
        Duration::from_millis(self.connect_ms / 4 * 3)
    }

    /// Returns the current value of the `authorization` header.
    ///
    /// # Errors
    /// The token cannot be read or sent; the text gives the reason.
    pub(crate) fn bearer(&self) -> Result<Option<MetadataValue<Ascii>>, String> {
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None => self.credentials.read_token()?,
        };
        let value = |token: String| {
            bearer(&token).ok_or_else(|| "token has invalid characters; correct it".to_owned())
        };
        token.map(value).transpose()
    }
}
