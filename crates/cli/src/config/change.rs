//! Differences between two configurations, by key.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use toml::{Table, Value};

use super::given::is_below;
use super::layers::flatten;
use super::secrets::SECRET;
use super::sections::{Config, Defined};
use crate::system::secret::NOT_SHOWN;

/// A key with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedKey {
    pub(crate) key: String,
    /// Values in their written form; secrets are not shown.
    pub(crate) old: String,
    pub(crate) new: String,
}

impl Config {
    /// Returns the differences to `new`, in the order of the keys.
    pub(crate) fn changes(&self, new: &Self) -> Vec<ChangedKey> {
        let in_both =
            |name: &String| self.defined.contains_key(name) && new.defined.contains_key(name);
        let (old, new) = (self.values(in_both), new.values(in_both));
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let mut changes: Vec<ChangedKey> = Vec::new();
        for key in keys.into_iter().filter(|key| old.get(*key) != new.get(*key)) {
            let shown = |value: Option<&String>| value.cloned().unwrap_or_else(|| "none".into());
            let secret = SECRET.iter().find(|secret| is_below(key, secret));
            let change = match secret {
                Some(secret) => ChangedKey {
                    key: (*secret).to_owned(),
                    old: NOT_SHOWN.into(),
                    new: NOT_SHOWN.into(),
                },
                None => ChangedKey {
                    key: key.clone(),
                    old: shown(old.get(key)),
                    new: shown(new.get(key)),
                },
            };
            if changes.last() != Some(&change) {
                changes.push(change);
            }
        }
        changes
    }

    /// Returns every value in its written form, by its key. Sources that satisfy `apart` have a
    /// value for each key; other sources are one value.
    fn values(&self, apart: impl Fn(&String) -> bool) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        let table = Table::try_from(self).unwrap_or_default();
        flatten(&mut Vec::new(), table, &mut |path: &[String], value| {
            let empty = matches!(&value, Value::Table(table) if table.is_empty());
            if !empty {
                values.insert(path.join("."), value.to_string());
            }
        });
        for (name, Defined { spec, .. }) in &self.defined {
            let (key, spec) = (format!("sources.{name}"), Json::Object(spec.to_json()));
            if apart(name) {
                leaves(&key, &spec, &mut values);
            } else {
                values.insert(key, spec.to_string());
            }
        }
        values
    }
}

fn leaves(key: &str, value: &Json, values: &mut BTreeMap<String, String>) {
    match value {
        Json::Object(fields) => {
            for (name, value) in fields {
                leaves(&format!("{key}.{name}"), value, values);
            }
        }
        value => {
            values.insert(key.to_owned(), value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::given::Given;

    fn config(given: &[(&'static str, &str)]) -> Config {
        let given = given.iter().map(|(key, value)| Given::flag(key, key, *value)).collect();
        Config::load(None, given).unwrap()
    }

    #[test]
    fn changes_show_both_values_but_no_secrets() {
        let old = config(&[
            ("store.url", "postgres://user:secret@a/b"),
            ("sources.b.step.min", "5"),
            ("sources.b.kind", "segment"),
        ]);
        let new = config(&[
            ("store.url", "postgres://user:other@a/b"),
            ("limits.batch_max", "7"),
            ("compat.tinyid.tokens.secret", "*"),
            ("compat.tinyid.tokens.other", "*"),
        ]);
        let shown: Vec<_> = old
            .changes(&new)
            .into_iter()
            .map(|ChangedKey { key, old, new }| format!("{key}: {old} -> {new}"))
            .collect();
        assert_eq!(
            shown,
            [
                "compat.tinyid.tokens: (not shown) -> (not shown)",
                "limits.batch_max: 100000 -> 7",
                r#"sources.b: {"kind":"segment","step":{"min":5}} -> none"#,
                "store.url: (not shown) -> (not shown)",
            ]
        );
        assert!(old.changes(&old).is_empty());
    }
}
