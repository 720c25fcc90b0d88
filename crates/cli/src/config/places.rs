//! Origins of values, for errors that are raised after all values were read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::given::{Given, ValueOrigin};
use crate::terminal::exit::Failure;

/// Origin of each given value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Origin by key; of several, the one that counts.
    origins: BTreeMap<String, ValueOrigin>,
    /// The configuration file, if there is one.
    file: Option<PathBuf>,
    /// Keys with a secret in the file, whether or not they count.
    secrets: BTreeSet<String>,
}

/// Equal values are equal configurations, wherever they come from.
impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Places {}

impl Places {
    pub(super) fn note(&mut self, given: &Given) {
        self.origins.insert(given.key(), given.origin.clone());
        if matches!(given.origin, ValueOrigin::File { .. }) {
            self.secrets.extend(given.key_of_secret());
        }
    }

    pub(super) fn in_file(&mut self, file: Option<&Path>) {
        self.file = file.map(Path::to_owned);
    }

    /// Returns the configuration file, and the keys with a secret in it.
    pub(crate) fn file(&self) -> Option<(&Path, Vec<&str>)> {
        Some((self.file.as_deref()?, self.secrets.iter().map(String::as_str).collect()))
    }

    /// Adds the origin of a value to the error about it. The message of such an error begins with
    /// the key.
    pub(crate) fn located(&self, failure: Failure) -> Failure {
        match self.origins.get(&key_of(failure.message())) {
            Some(origin) => failure.after(&origin.to_string()),
            None => failure,
        }
    }
}

/// Returns the key at the start of a message.
fn key_of(message: &str) -> String {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '"');
    let end = message.find(|c| !is_of_key(c)).unwrap_or(message.len());
    message.get(..end).unwrap_or_default().replace('"', "")
}

#[cfg(test)]
mod tests {
    use super::super::layers;
    use super::*;

    #[test]
    fn secrets_in_a_file_are_known_by_their_keys() {
        let text = "
            [store]
            url = 'postgres://u:p@h/d'
            [stores]
            east = 'mysql://u:p@h/d'
            west = 'file:/x'
            [upstreams]
            leaf = 'leaf+mysql://u:p@h/d'
            old = 'leaf+mysql://u@h/d'
            [peers]
            token = 'file:/x'
            [compat.tinyid.tokens]
            0123456789abcdef = '*'
            'sha256:00' = '*'
            [limits]
            batch_max = 7
        ";
        let known = |text: &str| {
            let mut places = Places::default();
            assert_eq!(places.file(), None);
            places.in_file(Some(Path::new("f")));
            layers::of_file(text, "f").unwrap().iter().for_each(|given| places.note(given));
            // A secret from a flag does not count as one in the file.
            places.note(&Given::flag("store.url", "--store", "redis://:p@h"));
            let (path, secrets) = places.file().unwrap();
            assert_eq!(path, Path::new("f"));
            secrets.join(" ")
        };
        assert_eq!(known(text), "compat.tinyid.tokens store.url stores.east upstreams.leaf");
        assert_eq!(known("[compat.tinyid.tokens]\n'sha256:00' = '*'\n"), "");
        assert_eq!(known(""), "");
    }

    #[test]
    fn a_message_begins_with_its_key() {
        for (message, key) in [
            ("server.http = \"x\" is no address", "server.http"),
            ("stores.a-b: it is not a URL", "stores.a-b"),
            ("tls.cert and tls.key belong together", "tls.cert"),
            ("compat.leaf.keys.\"a\": source", "compat.leaf.keys.a"),
            ("the store is not available", "the"),
            ("", ""),
        ] {
            assert_eq!(key_of(message), key, "{message}");
        }
    }
}
