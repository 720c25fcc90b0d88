//! Secrets: values that are never printed, and the places that hold them.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use snowmint_coord::private::read_trusted;

/// Replacement for a secret in output.
pub(crate) const NOT_SHOWN: &str = "(not shown)";
/// Prefix of every token, so that scanners for leaked secrets find it.
pub(crate) const TOKEN_PREFIX: &str = "smt_";
/// Shortest foreign token: `token hash` rejects shorter ones.
const TOKEN_CHARS_MIN: usize = 32;

/// Returns whether a text in the wrong place may be a token. A path never counts as one, so that
/// errors can name it.
pub(crate) fn may_be_token(text: &str) -> bool {
    text.contains(TOKEN_PREFIX) || text.len() >= TOKEN_CHARS_MIN && !text.contains(['/', ' '])
}

/// A secret, the place of one, or a value that contains one; a value in a wrong form may be any of
/// these. It has no `Display`, and its `Debug` does not show it. Its serialized form is used only
/// to merge the layers of the configuration.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Hidden(String);

impl Hidden {
    /// Returns the text itself, for its user.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the file that it names, if any.
    pub(crate) fn file(&self) -> Option<&str> {
        self.0.strip_prefix("file:")
    }

    /// Returns whether it names a place, and is not a secret itself.
    pub(crate) fn is_place(&self) -> bool {
        ["file:", "env:"].iter().any(|scheme| self.0.starts_with(scheme))
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Hidden {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromStr for Hidden {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.into())
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NOT_SHOWN)
    }
}

/// Reads the secret at `file:PATH` or `env:NAME`; `key` names it in errors. They show neither the
/// secret nor the place, which may be a secret in a wrong form.
pub(crate) fn at(key: &str, place: &Hidden) -> Result<String, String> {
    match place.text().split_once(':') {
        Some(("file", path)) => {
            let file = format!("file of {key}");
            String::from_utf8(read_trusted(&file, Path::new(path))?)
                .map_err(|_| format!("{file} is not UTF-8; write it as text"))
        }
        Some(("env", name)) => std::env::var(name).map_err(|_| {
            format!("environment variable of {key} is not set, or is not UTF-8; set it")
        }),
        _ => Err(format!("{key} does not name the place of a secret; write file:PATH or env:NAME")),
    }
}

#[cfg(test)]
mod tests {
    use snowmint_server::Secret;

    use super::*;
    use crate::config::Config;

    #[test]
    fn debug_output_shows_no_secret() {
        const SECRET: &str = "0123456789abcdef0123456789abcdef";
        let hidden: Hidden = SECRET.into();
        assert_eq!(format!("{hidden:?} {:?}", Some(&hidden)), "(not shown) Some((not shown))");
        let named = || [("1".to_owned(), hidden.clone())].into();
        let mut config = Config { stores: named(), upstreams: named(), ..Config::default() };
        config.disguise.keys = named();
        config.store.url = hidden.clone();
        config.store.token = hidden.clone();
        config.peers.token = hidden.clone();
        config.traces.endpoint = hidden.clone();
        config.compat.tinyid.tokens = [(Secret::new(SECRET), "*".to_owned())].into();
        for shown in [format!("{config:?}"), format!("{config:#?}")] {
            assert!(!shown.contains(SECRET), "{shown}");
            assert_eq!(shown.matches(NOT_SHOWN).count(), 7, "{shown}");
        }
    }
}
