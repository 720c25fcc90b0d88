//! Changes of a source's keys, as a JSON merge patch (RFC 7396).

use serde_json::{Map, Value};
use snowmint_coord::SourceSpec;
use snowmint_coord::spec::SpecError;

use super::spec_of;
use crate::error::Error;

/// Merges changes: a null removes a key, a table is merged key by key, anything else replaces.
pub(super) fn merge(keys: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, change) in changes {
        match (keys.get_mut(name), change) {
            (_, Value::Null) => {
                keys.remove(name);
            }
            (Some(Value::Object(table)), Value::Object(changes)) => merge(table, changes),
            _ => {
                keys.insert(name.clone(), change.clone());
            }
        }
    }
}

/// Returns the source that altered keys describe. The catalog writes every default out, so a change
/// of policy leaves keys of the old one behind, which the caller did not ask for.
pub(super) fn without_leftovers(
    mut keys: Map<String, Value>,
    changes: &Map<String, Value>,
) -> Result<SourceSpec, Error> {
    loop {
        let spec = spec_of(keys.clone())?;
        match spec.check() {
            Err(SpecError::Needs { key, .. })
                if !is_set(changes, key) && remove_key(&mut keys, key) => {}
            _ => return Ok(spec),
        }
    }
}

fn is_set(keys: &Map<String, Value>, name: &str) -> bool {
    match name.split_once('.') {
        None => keys.contains_key(name),
        Some((table, rest)) => {
            keys.get(table).and_then(Value::as_object).is_some_and(|table| is_set(table, rest))
        }
    }
}

/// Removes a key; returns whether it was present.
fn remove_key(keys: &mut Map<String, Value>, name: &str) -> bool {
    match name.split_once('.') {
        None => keys.remove(name).is_some(),
        Some((table, rest)) => keys
            .get_mut(table)
            .and_then(Value::as_object_mut)
            .is_some_and(|table| remove_key(table, rest)),
    }
}
