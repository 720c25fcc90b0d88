//! How servers are approached: whether over TLS, whom the client trusts, what it shows, and how long it waits.

use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};

use crate::credentials::Credentials;
use crate::place::bearer;

/// The same for all servers of a URL. Its `Debug` would show the token: there is none.
pub(crate) struct Approach {
    pub(crate) tls: bool,
    /// The token of the URL, which goes before that of the credentials.
    pub(crate) token: Option<String>,
    pub(crate) credentials: Credentials,
    /// How long a connection may take, with all that is said until its store is described.
    pub(crate) connect_ms: u64,
}

impl Approach {
    /// How long the addresses of a server may take, all together: they are tried one after the other, with an
    /// equal share of it each. Without it, the first that is silent takes the time of all. The rest is for what
    /// is said when one of them has taken the connection.
    pub(crate) fn reach(&self) -> Duration {
        Duration::from_millis(self.connect_ms / 4 * 3)
    }

    /// What `authorization` says now.
    ///
    /// # Errors
    /// Why it cannot be said.
    pub(crate) fn bearer(&self) -> Result<Option<MetadataValue<Ascii>>, String> {
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None => self.credentials.read_token()?,
        };
        let said = |token: String| {
            bearer(&token).ok_or_else(|| "the token has characters that no token has".to_owned())
        };
        token.map(said).transpose()
    }
}
