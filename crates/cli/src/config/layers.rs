//! Layers of given values, applied one after the other. Each value has its origin, so that an error
//! can name the place.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;

use serde::Deserialize as _;
use snowmint_coord::spec::Span;
use snowmint_server::{Documented as _, SettingValues};
use toml::de::DeTable;
use toml::{Table, Value};

use super::given::{Given, Raw, ValueOrigin};
use super::secrets::TOKENS;
use super::sections::Config;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::near::near;

/// Prefix of all environment variables.
const PREFIX: &str = "SNOWMINT_";

/// Returns the values of a TOML file, in the order of their keys.
pub(super) fn of_file(text: &str, path: &str) -> Outcome<Vec<Given>> {
    let wrong = |error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Failure::usage(format!("{path}, line {line}: {}", error.message()))
    };
    let table: Table = text.parse().map_err(wrong)?;
    let places = DeTable::parse(text).map_err(wrong)?;
    let mut lines = HashMap::new();
    find_lines(text, &mut Vec::new(), places.get_ref(), &mut lines);
    let mut given = Vec::new();
    flatten(&mut Vec::new(), table, &mut |key: &[String], value| {
        let line = lines.get(key).copied().unwrap_or(1);
        let origin = ValueOrigin::File { path: path.to_owned(), line };
        given.push(Given { path: key.to_vec(), value: Raw::Typed(value), origin });
    });
    Ok(given)
}

/// Calls `leaf` with everything that is not a table, and with empty tables.
pub(super) fn flatten(
    path: &mut Vec<String>,
    table: Table,
    leaf: &mut impl FnMut(&[String], Value),
) {
    for (key, value) in table {
        path.push(key);
        match value {
            Value::Table(inner) if !inner.is_empty() => flatten(path, inner, leaf),
            value => leaf(path, value),
        }
        path.pop();
    }
}

fn find_lines(
    text: &str,
    path: &mut Vec<String>,
    table: &DeTable<'_>,
    lines: &mut HashMap<Vec<String>, usize>,
) {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        lines.insert(path.clone(), line_at(text, key.span().start));
        if let Some(inner) = value.get_ref().as_table() {
            find_lines(text, path, inner, lines);
        }
        path.pop();
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

/// Returns the values of `SNOWMINT_SECTION__KEY`. Variables without `__` do not count:
/// orchestrators make them up from a service's name (`SNOWMINT_SERVICE_HOST`).
pub(super) fn of_environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Outcome<Vec<Given>> {
    let mut given = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str() else { continue };
        let Some(key) = name.strip_prefix(PREFIX).filter(|key| key.contains("__")) else {
            continue;
        };
        let origin = ValueOrigin::Environment { name: name.to_owned() };
        let Some(value) = value.to_str() else {
            return Err(Failure::usage(format!("{origin}: value is not UTF-8; write it as text")));
        };
        let path = key.to_ascii_lowercase().split("__").map(str::to_owned).collect();
        given.push(Given { path, value: Raw::Text(value.to_owned()), origin });
    }
    // The environment has no order.
    given.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(given)
}

/// Returns the configuration with one value changed.
pub(super) fn apply(config: &Config, given: &Given) -> Outcome<Config> {
    let internal = |error: &dyn fmt::Display| {
        given.refused(format_args!("internal error: {error}; please report it"))
    };
    let mut whole = Table::try_from(config).map_err(|error| internal(&error))?;
    let Some((last, above)) = given.path.split_last() else {
        return Err(unknown(given, &whole));
    };
    let mut table = &mut whole;
    for part in above {
        match table.get_mut(part) {
            Some(Value::Table(inner)) => table = inner,
            _ => return Err(unknown(given, &defaults())),
        }
    }
    let is_open = is_open(above);
    if is_open && !given.shown_key().1 && !given.key().starts_with(TOKENS) {
        return Err(given
            .refused("invalid name; use a whole number in disguise.keys, else A-Z a-z 0-9 _ . -"));
    }
    match table.get(last) {
        // An empty section changes nothing.
        Some(Value::Table(_)) if matches!(&given.value, Raw::Typed(Value::Table(_))) => {
            return Ok(config.clone());
        }
        Some(old) => {
            let value = given.typed(old)?;
            check_bounds(given, &value)?;
            table.insert(last.clone(), value);
        }
        None if is_open => {
            let value = given.typed(&Value::String(String::new()))?;
            table.insert(last.clone(), value);
        }
        None => return Err(unknown(given, &defaults())),
    }
    Config::deserialize(whole).map_err(|error| invalid(given, error.message()))
}

/// Checks a value against the bounds at its field. Its type is checked when it is read.
fn check_bounds(given: &Given, value: &Value) -> Outcome {
    let rows = Config::takes();
    let row = given.path.iter().try_fold((&rows, None), |(takes, _), part| {
        let SettingValues::Section(rows) = takes else { return None };
        let row = rows.iter().find(|row| row.key == part)?;
        Some((&row.takes, Some(row)))
    });
    let Some((takes, Some(row))) = row else { return Ok(()) };
    let number = match (takes, value) {
        (SettingValues::Number(_), Value::Integer(number)) => Some((*number).into()),
        (SettingValues::Duration, Value::String(text)) => {
            text.parse().ok().map(|span: Span| span.ms().into())
        }
        _ => None,
    };
    number.map_or(Ok(()), |number| row.check(number)).map_err(|reason| invalid(given, &reason))
}

fn invalid(given: &Given, reason: &str) -> Failure {
    given.refused(format_args!("{} is invalid: {reason}", given.shown()))
}

/// Returns every key with its default.
pub(crate) fn defaults() -> Table {
    // Plain data with text keys always becomes a table.
    Table::try_from(Config::default()).unwrap_or_default()
}

/// Returns whether a table has keys of the operator's own, each with a text value: by default, it
/// has none.
fn is_open(path: &[String]) -> bool {
    let defaults = defaults();
    let table = path.iter().try_fold(&defaults, |table, part| table.get(part)?.as_table());
    table.is_some_and(Table::is_empty)
}

/// Returns every key of a table, with dots.
pub(crate) fn keys(table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    flatten(&mut Vec::new(), table.clone(), &mut |path: &[String], _| keys.push(path.join(".")));
    keys
}

fn unknown(given: &Given, defaults: &Table) -> Failure {
    let key = given.key();
    match near(&key, keys(defaults)).first() {
        Some(known) => given.refused(format_args!("unknown key; did you mean {known}?")),
        None => given.refused("unknown key; `snowmint config` prints all keys"),
    }
}
