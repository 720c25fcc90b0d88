//! The one key whose name in stored texts differs from the users' name: stored texts keep the name
//! with which they were first written. This is the only place that translates.

use serde_json::{Map, Value};

/// The users' name of the key, and its name in stored texts.
pub(crate) const UPSTREAM: &str = "upstream";
pub(crate) const STORED_UPSTREAM: &str = "origin";

/// Gives the keys of a stored text the names that users know.
pub(crate) fn name_for_users(keys: &mut Map<String, Value>) {
    rename(keys, STORED_UPSTREAM, UPSTREAM);
}

/// Gives the keys that users know the names of a stored text.
pub(crate) fn name_for_store(keys: &mut Map<String, Value>) {
    rename(keys, UPSTREAM, STORED_UPSTREAM);
}

fn rename(keys: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = keys.remove(from) {
        keys.insert(to.to_owned(), value);
    }
}
