//! Settings and errors that opening needs, whatever the store.

use snowmint_coord::catalog::check_name;
use snowmint_coord::{Error, Result};

/// Settings of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most attempts of a step when other writers win; at least 1, default 64. Applies to
    /// stores with a row for each key, such as Redis and etcd; the others queue writers.
    pub attempts_max: u32,
    /// Whether opening makes a missing store and brings its tables to the newest version; default
    /// true. If false, opening writes nothing, and a missing store is `NotFound`.
    pub create_if_missing: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { attempts_max: 64, create_if_missing: true }
    }
}

pub(crate) fn check_namespace(namespace: &str) -> Result<()> {
    check_name("namespace", namespace)?;
    Ok(())
}

/// Returns the URL without user, password and parameters, with or without slashes after the scheme.
/// The plain address of a server stays unchanged.
#[must_use]
pub fn shown(url: &str) -> String {
    let after_scheme = url.find(':').map_or(0, |colon| colon + 1);
    let (scheme, rest) = url.split_at(after_scheme);
    if scheme == "sqlite:" {
        return url.to_owned();
    }
    let (slashes, rest) = rest.strip_prefix("//").map_or(("", rest), |rest| ("//", rest));
    let (location, parameters) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    // The `@` ends a password with a question mark, or is part of a parameter: the text does not
    // show which.
    if parameters.contains('@') {
        return format!("{scheme}{slashes}(not shown)");
    }
    let hosts = location.rsplit_once('@').map_or(location, |(_, hosts)| hosts);
    format!("{scheme}{slashes}{hosts}")
}

/// Returns the error for a store that does not exist yet and must not be made.
pub(crate) fn not_made(label: &str) -> Error {
    Error::not_found(format!("{label} has no store yet; start a server once to create it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_urls_have_no_secrets() {
        for (url, expected) in [
            ("mysql://root:pass@word@db:3306/ids?ssl-key=x", "mysql://db:3306/ids"),
            ("mysql:me:secret@host/ids", "mysql:host/ids"),
            ("postgres://db/ids", "postgres://db/ids"),
            ("postgres://db/ids?password=secret", "postgres://db/ids"),
            ("postgres:db/ids?password=secret", "postgres:db/ids"),
            ("postgres://db/ids?password=secret@word", "postgres://(not shown)"),
            ("redis://:p@ss@host", "redis://host"),
            ("redis://:p?ss@host", "redis://(not shown)"),
            ("redis://:p#ss@host", "redis://(not shown)"),
            ("snowmints://token@a:1,b:2", "snowmints://a:1,b:2"),
            ("sqlite:///a@b/ids.db", "sqlite:///a@b/ids.db"),
            ("sqlite:/a/b.db", "sqlite:/a/b.db"),
            ("memory:", "memory:"),
            ("10.0.0.1:7700", "10.0.0.1:7700"),
            ("[::1]:7700", "[::1]:7700"),
            ("", ""),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}
