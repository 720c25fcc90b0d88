//! The loaded target, and its protocol.

use std::fmt;
use std::str::FromStr;

use crate::client::authority;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    Http,
    Resp,
    Grpc,
}

/// A server, and its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) speaks: Speaks,
    /// Whether TLS is used.
    pub(super) tls: bool,
    /// `host:port`.
    pub(super) address: String,
}

impl Default for Target {
    fn default() -> Self {
        Self { speaks: Speaks::Http, tls: false, address: crate::client::DEFAULT_SERVER.to_owned() }
    }
}

impl Speaks {
    /// Returns the schemes without TLS and with it.
    const fn schemes(self) -> [&'static str; 2] {
        match self {
            Self::Http => ["http", "https"],
            Self::Resp => ["redis", "rediss"],
            Self::Grpc => ["grpc", "grpcs"],
        }
    }

    /// Returns the default port of `serve`.
    const fn port(self) -> u16 {
        match self {
            Self::Http | Self::Grpc => 7700,
            Self::Resp => 7701,
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms = "write http://host:port, redis://host:port or grpc://host:port, and with TLS https://, \
                     rediss:// or grpcs://";
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let all = [Speaks::Http, Speaks::Resp, Speaks::Grpc];
        let found = all.into_iter().find_map(|speaks| {
            let tls = speaks.schemes().iter().position(|&known| known == scheme)?;
            Some((speaks, tls == 1))
        });
        let Some((speaks, tls)) = found else {
            return Err(format!("unknown scheme {scheme:?}; {forms}"));
        };
        let invalid = || format!("invalid server address; {forms}");
        let server = authority(rest).ok_or_else(invalid)?;
        let port = server.port_u16().unwrap_or_else(|| speaks.port());
        let host = server.host();
        Ok(Self { speaks, tls, address: format!("{host}:{port}") })
    }
}

impl Target {
    /// Returns a hint for a server that does not speak this protocol.
    pub(super) fn astray(&self) -> String {
        let [plain, tls] = self.speaks.schemes();
        let (requested, without) = if self.tls { (tls, "with") } else { (plain, "without") };
        let other = if self.tls { plain } else { tls };
        format!(
            "{requested}:// is {without} TLS; check the port (HTTP and gRPC 7700, RESP 7701), or write \
             {other}://"
        )
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [plain, tls] = self.speaks.schemes();
        write!(f, "{}://{}", if self.tls { tls } else { plain }, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_with_their_protocol() {
        for (text, shown) in [
            ("http://ids.example", "http://ids.example:7700"),
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("redis://localhost", "redis://localhost:7701"),
            ("redis://localhost:6379/", "redis://localhost:6379"),
            ("grpc://[::1]:7700", "grpc://[::1]:7700"),
            ("https://ids.example", "https://ids.example:7700"),
            ("rediss://ids.example", "rediss://ids.example:7701"),
            ("grpcs://[::1]", "grpcs://[::1]:7700"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown, "{text}");
        }
        for (text, part) in [
            ("ftp://a:1", "unknown scheme"),
            ("redis://user:secret@a:1", "invalid server address"),
            ("http://a:1/path", "invalid server address"),
            ("http://", "invalid server address"),
            ("a:99999", "invalid server address"),
            ("", "invalid server address"),
        ] {
            let message = text.parse::<Target>().unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
