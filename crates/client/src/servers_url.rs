//! URLs of servers.

use snowmint_coord::{Error, Result};
use tonic::metadata::{Ascii, MetadataValue};

/// Scheme of servers' URLs.
pub const SCHEME: &str = "snowmint";
/// Scheme of servers' URLs with TLS.
pub const SCHEME_TLS: &str = "snowmints";

const FORM: &str = "snowmint://HOST:PORT,HOST:PORT, or with TLS snowmints://HOST:PORT,HOST:PORT";
/// Port of a server that a URL names without one.
pub const PORT: u16 = 7700;

/// Addresses of servers, and the token for them. Its `Debug` would show the token: it has none.
pub(crate) struct ServersUrl {
    /// Whether the servers speak TLS.
    pub(crate) tls: bool,
    /// `host:port` of each server.
    pub(crate) servers: Vec<String>,
    /// Token in the URL, if any.
    pub(crate) token: Option<String>,
}

/// Returns the `authorization` value for this token; `None` when no header can hold it.
pub(crate) fn bearer(token: &str) -> Option<MetadataValue<Ascii>> {
    let mut bearer: MetadataValue<Ascii> = format!("Bearer {token}").parse().ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

impl ServersUrl {
    /// Reads `snowmint://TOKEN@HOST:PORT,HOST:PORT`, and `snowmints://`.
    ///
    /// # Errors
    /// `Invalid`, which shows no token.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let tls = match scheme {
            SCHEME => false,
            SCHEME_TLS => true,
            _ => {
                let message =
                    format!("URL has no scheme {SCHEME}:// or {SCHEME_TLS}://; write {FORM}");
                return Err(Error::invalid(message));
            }
        };
        let (token, rest) = match rest.rsplit_once('@') {
            Some((token, rest)) => (Some(token.to_owned()), rest),
            None => (None, rest),
        };
        match token.as_deref() {
            Some("") => {
                return Err(Error::invalid(format!("URL has an empty token; write {FORM}")));
            }
            Some(token) if bearer(token).is_none() => {
                let message = format!("URL has a token with invalid characters; write {FORM}");
                return Err(Error::invalid(message));
            }
            _ => {}
        }
        let mut servers: Vec<String> = Vec::new();
        for server in rest.trim_end_matches('/').split(',') {
            if server.is_empty() || server.contains([' ', '/', '?', '#']) {
                let message = format!("URL has a server that is not HOST:PORT; write {FORM}");
                return Err(Error::invalid(message));
            }
            let has_port = server.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
            let server = if has_port { server.into() } else { format!("{server}:{PORT}") };
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        Ok(Self { tls, servers, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_servers_and_a_token() {
        let servers_url = ServersUrl::parse("snowmint://a,b:1,[::1],[::2]:3,a:7700/").unwrap();
        assert_eq!(servers_url.servers, ["a:7700", "b:1", "[::1]:7700", "[::2]:3"], "each once");
        assert!(servers_url.token.is_none() && !servers_url.tls);
        let servers_url = ServersUrl::parse("snowmints://secret@a").unwrap();
        assert_eq!(servers_url.servers, ["a:7700"]);
        assert!(servers_url.tls);
        let bearer = bearer(&servers_url.token.unwrap()).unwrap();
        assert_eq!(bearer.to_str().unwrap(), "Bearer secret");
        assert!(!format!("{bearer:?}").contains("secret"));
    }

    #[test]
    fn url_error_never_shows_the_token() {
        for url in [
            "snowmint:a",
            "snowmint//a",
            "https://a",
            "snowmint://",
            "snowmint://a,,b",
            "snowmint://secret@",
            "snowmint://@a",
            "snowmint://secret@a b",
            "snowmint://a/path/b",
            "snowmint://secret\n@a",
        ] {
            let Err(error) = ServersUrl::parse(url) else { panic!("{url}") };
            assert_eq!(error.kind().code(), "invalid");
            assert!(error.to_string().contains(FORM), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
