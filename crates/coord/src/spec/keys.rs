//! The table of a source's keys.

use serde_json::{Map, Value};

use super::error::SpecError;
use super::key::{Key, Row, Takes};
use super::kind::Kind;
use super::source_spec::SourceSpec;
use crate::error::json;

/// Returns every key of a source.
pub fn all() -> impl DoubleEndedIterator<Item = &'static Key> {
    SourceSpec::ROWS.iter().flat_map(Row::keys)
}

/// Returns the key of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    all().find(|key| key.name == name)
}

/// Returns the first of the given keys and tables without a meaning for this kind.
pub(super) fn without_meaning(given: &Map<String, Value>, kind: Kind) -> Option<&'static str> {
    let means = |table: &str| all().any(|key| key.table() == table && key.is_for(kind));
    all().map(Key::table).find(|&table| given.contains_key(table) && !means(table))
}

/// Removes all keys that are no part of a source's identity.
pub(super) fn retain_identity(keys: &mut Map<String, Value>) {
    for key in all().filter(|key| !key.fixed) {
        match key.name.split_once('.') {
            None => drop(keys.remove(key.name)),
            Some((table, name)) => {
                if let Some(Value::Object(table)) = keys.get_mut(table) {
                    table.remove(name);
                }
            }
        }
    }
    keys.retain(|_, value| value.as_object().is_none_or(|table| !table.is_empty()));
}

/// Returns all names, for messages.
fn names() -> String {
    all().map(|key| key.name).collect::<Vec<_>>().join(", ")
}

impl SourceSpec {
    /// Sets one key by its dotted name, like the command line: `prefill.boost` to `3`.
    ///
    /// # Errors
    /// [`SpecError::UnknownKey`], or [`SpecError::Value`] when the key cannot take the text.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        let key =
            find(name).ok_or_else(|| SpecError::UnknownKey { key: name.into(), known: names() })?;
        let refused =
            |reason: String| SpecError::Value { key: key.name, value: text.into(), reason };
        let value = match key.takes {
            Takes::Word(words) if !words().contains(&text) => {
                return Err(refused(format!("it takes one of {}", words().join(", "))));
            }
            Takes::Text | Takes::Word(_) | Takes::Duration => text.into(),
            Takes::Number => text
                .parse::<u64>()
                .map_err(|_| refused("it takes a whole number of at least 0".into()))?
                .into(),
            Takes::Flag => {
                text.parse::<bool>().map_err(|_| refused("it takes true or false".into()))?.into()
            }
        };
        let mut whole = self.to_json();
        let mut table = &mut whole;
        let mut parts = key.name.split('.').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_some() {
                table = table
                    .entry(part)
                    .or_insert_with(|| Map::new().into())
                    .as_object_mut()
                    .ok_or_else(|| refused("it is not a table".into()))?;
            } else {
                table.insert(part.into(), value);
                break;
            }
        }
        *self = serde_json::from_value(whole.into()).map_err(|error| {
            let bounds = key.bounds().filter(|_| matches!(key.takes, Takes::Number));
            refused(bounds.map_or_else(|| json::reason(&error), |these| format!("take {these}")))
        })?;
        Ok(())
    }
}
