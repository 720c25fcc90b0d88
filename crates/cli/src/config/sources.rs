//! `[sources.NAME]`: the keys of source definitions, checked by their common table.

use std::collections::BTreeMap;

use snowmint_coord::catalog::check_name;
use snowmint_coord::spec::{SourceSpec, Takes, keys};
use toml::Value;

use super::given::{Given, Raw};
use super::secrets::has_secret;
use super::sections::Defined;
use crate::terminal::exit::Outcome;

/// Adds a value that belongs to a source; returns false for any other value.
pub(super) fn accept(given: &Given, defined: &mut BTreeMap<String, Defined>) -> Outcome<bool> {
    let [section, name, key @ ..] = given.path.as_slice() else { return Ok(false) };
    if section != "sources" || (key.is_empty() && !is_table(&given.value)) {
        return Ok(false);
    }
    if let Err(kind) = check_name("source", name) {
        return Err(given.refused(kind));
    }
    let source = defined
        .entry(name.clone())
        .or_insert_with(|| Defined { spec: SourceSpec::default(), origin: given.origin.clone() });
    // An empty table is a source with every default.
    if is_table(&given.value) && (key.is_empty() || is_table_key(key)) {
        return Ok(true);
    }
    let key = key.join(".");
    let text = as_text(given, &key)?;
    if has_secret(&text) {
        let place = "URL with a password; put it in [stores] or [upstreams], and name it here";
        return Err(given.refused(place));
    }
    source.spec.set(&key, &text).map_err(|error| given.refused(error))?;
    Ok(true)
}

fn is_table(value: &Raw) -> bool {
    matches!(value, Raw::Typed(Value::Table(_)))
}

/// Returns whether a key begins with this one and a dot.
fn is_table_key(key: &[String]) -> bool {
    let start = format!("{}.", key.join("."));
    keys::all().any(|key| key.name.starts_with(&start))
}

/// Returns the value as the text that `SourceSpec::set` accepts, if it has the key's type.
fn as_text(given: &Given, key: &str) -> Outcome<String> {
    let value = match &given.value {
        Raw::Text(text) => return Ok(text.clone()),
        Raw::Typed(value) => value,
    };
    let takes = keys::find(key).map(|key| key.takes);
    let wanted = match (takes, value) {
        (Some(Takes::Text | Takes::Word(_) | Takes::Duration), Value::String(text)) => {
            return Ok(text.clone());
        }
        (Some(Takes::Number), Value::Integer(number)) => return Ok(number.to_string()),
        (Some(Takes::Flag), Value::Boolean(flag)) => return Ok(flag.to_string()),
        // The table itself has the better error for an unknown key.
        (None, _) => return Ok(given.shown()),
        (Some(Takes::Text | Takes::Word(_) | Takes::Duration), _) => "a text in quotes",
        (Some(Takes::Number), _) => "a whole number",
        (Some(Takes::Flag), _) => "true or false",
    };
    Err(given.refused(format_args!("expected {wanted}, not {}", given.shown())))
}
