//! Differences between two configurations, by key.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
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

    /// Copies the values of `new` for these changes.
    pub(crate) fn adopt(&mut self, new: &Self, changes: &[ChangedKey]) {
        let (Ok(mut mine), Ok(theirs)) = (Table::try_from(&*self), Table::try_from(new)) else {
            return;
        };
        for ChangedKey { key, .. } in changes {
            match key.strip_prefix("sources.").filter(|rest| *rest != "builtin") {
                Some(key) => adopt_source(&mut self.defined, &new.defined, key),
                None => {
                    let path: Vec<&str> = key.split('.').collect();
                    copy(&mut mine, &theirs, &path);
                }
            }
        }
        if let Ok(merged) = Self::deserialize(mine) {
            *self = Self { defined: std::mem::take(&mut self.defined), ..merged };
        }
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

/// Copies the sources that a key may belong to.
fn adopt_source(
    mine: &mut BTreeMap<String, Defined>,
    theirs: &BTreeMap<String, Defined>,
    key: &str,
) {
    let names: Vec<String> =
        mine.keys().chain(theirs.keys()).filter(|name| is_below(key, name)).cloned().collect();
    for name in names {
        match theirs.get(&name) {
            Some(defined) => mine.insert(name, defined.clone()),
            None => mine.remove(&name),
        };
    }
}

fn copy(mine: &mut Table, theirs: &Table, path: &[&str]) {
    match path {
        [] => {}
        [last] => match theirs.get(*last) {
            Some(value) => {
                mine.insert((*last).to_owned(), value.clone());
            }
            None => {
                mine.remove(*last);
            }
        },
        [first, rest @ ..] => {
            if let (Some(Value::Table(mine)), Some(Value::Table(theirs))) =
                (mine.get_mut(*first), theirs.get(*first))
            {
                copy(mine, theirs, rest);
            }
        }
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

    #[test]
    fn adopted_changes_no_longer_differ() {
        let mut now = config(&[("sources.a.kind", "segment"), ("sources.b.kind", "uuid")]);
        let new = config(&[
            ("limits.batch_max", "7"),
            ("disguise.keys.1", "env:X"),
            ("sources.a.kind", "segment"),
            ("sources.a.step.min", "9"),
            ("sources.c.kind", "ulid"),
            ("log.filter", "debug"),
        ]);
        let (log, others): (Vec<_>, Vec<_>) =
            now.changes(&new).into_iter().partition(|change| change.key == "log.filter");
        now.adopt(&new, &others);
        assert_eq!(now.changes(&new), log);
        now.adopt(&new, &log);
        assert_eq!((now.changes(&new), now.limits.batch_max), (Vec::new(), 7));
    }
}
