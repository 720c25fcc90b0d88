//! Where values came from, for refusals that are made after all of them were read.

use std::collections::BTreeMap;

use super::layers::{Given, Origin};
use crate::exit::Failure;

/// The place of each value that was given, by its key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<String, Origin>);

/// The same values are the same configuration, wherever they stand.
impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Places {}

impl Places {
    pub(super) fn note(&mut self, given: &Given) {
        self.0.insert(given.key(), given.origin.clone());
    }

    /// Adds to a refusal of a value where the value came from. Such a message begins with the key.
    pub(crate) fn located(&self, failure: Failure) -> Failure {
        let origin = match &failure {
            Failure::Said { message, .. } => self.0.get(&key_of(message)),
            Failure::ClosedPipe | Failure::SaidNo => None,
        };
        match origin {
            Some(origin) => failure.after(&origin.to_string()),
            None => failure,
        }
    }
}

/// The key that a message begins with.
fn key_of(message: &str) -> String {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '"');
    let end = message.find(|c| !is_of_key(c)).unwrap_or(message.len());
    message.get(..end).unwrap_or_default().replace('"', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_with_its_key() {
        for (message, key) in [
            ("server.http = \"x\" is no address", "server.http"),
            ("stores.a-b: it is no URL", "stores.a-b"),
            ("tls.cert and tls.key belong together", "tls.cert"),
            ("compat.leaf.keys.\"a\": source", "compat.leaf.keys.a"),
            ("the store is not available", "the"),
            ("", ""),
        ] {
            assert_eq!(key_of(message), key, "{message}");
        }
    }
}
