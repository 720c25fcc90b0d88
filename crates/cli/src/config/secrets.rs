//! Keys, values and places of secrets.

use crate::system::secret::Hidden;
use crate::terminal::exit::{Failure, Outcome};

/// Keys with secret values, and tables with secret keys and values; also those where a value in a
/// wrong form may be a secret.
pub(super) const SECRET: &[&str] = &[
    "store.url",
    "store.token",
    "stores",
    "upstreams",
    "peers.token",
    "traces.endpoint",
    "disguise.keys",
    TOKENS,
];

/// Table with names that are secrets themselves.
pub(super) const TOKENS: &str = "compat.tinyid.tokens";

/// Returns whether a URL contains a password: after a colon before the last @ of the host part, or
/// in a parameter. For servers, the text before the @ is a token.
pub(super) fn has_secret(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (_, parameters) = rest.split_once('?').unwrap_or_default();
    let password =
        |parameter: &str| parameter.strip_prefix("password=").is_some_and(|it| !it.is_empty());
    if parameters.split('&').any(password) {
        return true;
    }
    let hosts = rest.split('/').next().unwrap_or_default();
    let (user, _) = hosts.rsplit_once('@').unwrap_or_default();
    if snowmint_client::is_url(url) {
        return !user.is_empty();
    }
    user.split_once(':').is_some_and(|(_, password)| !password.is_empty())
}

/// Checks that a key names the place of a token, or is empty.
pub(super) fn check_place(key: &str, place: &Hidden) -> Outcome {
    if place.is_empty() || place.is_place() {
        return Ok(());
    }
    // The value may be the token itself.
    Err(Failure::usage(format!("{key} is not the place of a token; write file:PATH or env:NAME")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn passwords_of_urls() {
        for url in [
            "postgres://u:p@h/d",
            "postgres://h/d?sslmode=require&password=p",
            "redis://:p@h",
            "etcd://u:p@a:1,b:2/x",
            "snowmints://t@h",
        ] {
            assert!(super::has_secret(url), "{url}");
        }
        for url in [
            "sqlite:a@b:c",
            "postgres://u@h:5432/d",
            "mysql://h:3306/a:b@c",
            "postgres://h/d?password=&sslmode=require",
            "redis://u:@h",
            "memory:",
            "snowmint://h:7700,i:7700",
        ] {
            assert!(!super::has_secret(url), "{url}");
        }
    }
}
