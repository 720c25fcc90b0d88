//! Differences between two texts about a source, for error messages.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::stored_key::name_for_users;

/// Differences between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Keys with different values, in order, such as `step.size`. Empty where the texts are not
    /// JSON objects or differ only in form.
    pub(crate) keys: Vec<String>,
    /// The stored text's values of these keys; the whole text where `keys` is empty.
    pub(crate) stored: String,
    /// The same of the other text.
    pub(crate) wanted: String,
}

impl Differences {
    pub(crate) fn between(stored: &str, wanted: &str) -> Self {
        let (old, new) = (values(stored), values(wanted));
        let all: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let keys = all.into_iter().filter(|key| old.get(*key) != new.get(*key));
        let mut keys: Vec<String> = keys.cloned().collect();
        if keys.iter().any(|key| key == KIND) {
            // A source of another kind has entirely different keys.
            keys = vec![KIND.to_owned()];
        }
        if keys.is_empty() {
            return Self { keys, stored: stored.to_owned(), wanted: wanted.to_owned() };
        }
        Self { stored: values_text(&keys, &old), wanted: values_text(&keys, &new), keys }
    }
}

/// Key that decides which other keys exist.
const KIND: &str = "kind";

/// Formats the values of some keys in a text.
fn values_text(keys: &[String], values: &BTreeMap<String, String>) -> String {
    let parts = keys.iter().map(|key| match values.get(key) {
        Some(value) => format!("{key} = {value}"),
        None => format!("no {key}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns whether a text has the key.
pub(crate) fn has_key(text: &str, key: &str) -> bool {
    values(text).contains_key(key)
}

/// Returns all keys of a text with their values, by the names that users know; keys in tables as
/// `table.key`.
fn values(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if let Ok(Value::Object(mut table)) = serde_json::from_str(text) {
        name_for_users(&mut table);
        gather("", table, &mut all);
    }
    all
}

fn gather(before: &str, table: Map<String, Value>, all: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = format!("{before}{key}");
        match value {
            Value::Object(table) => gather(&format!("{key}."), table, all),
            value => {
                all.insert(key, value.to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_keys_are_shown_with_both_values() {
        for (stored, wanted, keys, differing) in [
            (r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#, "b", ["b = 2", "b = 3"]),
            (
                r#"{"s":{"x":"p","y":1}}"#,
                r#"{"s":{"x":"q","y":1}}"#,
                "s.x",
                [r#"s.x = "p""#, r#"s.x = "q""#],
            ),
            (r#"{"a":1}"#, r#"{"b":null}"#, "a b", ["a = 1, no b", "no a, b = null"]),
            (
                r#"{"kind":"x","a":1}"#,
                r#"{"kind":"y"}"#,
                "kind",
                [r#"kind = "x""#, r#"kind = "y""#],
            ),
            // A stored key is shown by the name that users know.
            (r#"{"origin":"a:b"}"#, "{}", "upstream", [r#"upstream = "a:b""#, "no upstream"]),
            // Texts without distinguishable keys, or unreadable ones.
            ("{}", "{} ", "", ["{}", "{} "]),
            ("a", "b", "", ["a", "b"]),
            ("[1]", "[2]", "", ["[1]", "[2]"]),
        ] {
            let Differences { keys: found, stored: old, wanted: new } =
                Differences::between(stored, wanted);
            assert_eq!((found.join(" ").as_str(), [old.as_str(), new.as_str()]), (keys, differing));
        }
    }
}
