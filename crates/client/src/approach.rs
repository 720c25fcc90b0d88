//! How servers are approached: whether over TLS, whom the client trusts, and what it shows.

use tonic::metadata::{Ascii, MetadataValue};

use crate::credentials::Credentials;
use crate::place::bearer;

/// The same for all servers of a URL. Its `Debug` would show the token: there is none.
pub(crate) struct Approach {
    pub(crate) tls: bool,
    /// The token of the URL, which goes before that of the credentials.
    pub(crate) token: Option<String>,
    pub(crate) credentials: Credentials,
}

impl Approach {
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
