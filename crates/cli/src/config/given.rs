//! Values as they are given, each for one key and with its origin.

use std::fmt;

use snowmint_coord::catalog::check_name;
use toml::Value;

use super::secrets::{SECRET, TOKENS, has_secret};
use crate::terminal::exit::{Failure, Outcome};

/// Keys that accept a number as well as a word; their default is a word.
const NUMBER_OR_WORD: &[&str] = &["worker.number"];

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    File { path: String, line: usize },
    Environment { name: String },
    Flag { name: &'static str },
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{path}, line {line}"),
            Self::Environment { name } => write!(f, "environment variable {name}"),
            Self::Flag { name } => f.write_str(name),
        }
    }
}

/// One value for one key.
#[derive(Clone)]
pub(crate) struct Given {
    /// Key, split at its dots.
    pub(super) path: Vec<String>,
    pub(super) value: Raw,
    pub(super) origin: ValueOrigin,
}

/// Value in its written form. [`Given::shown`] shows it.
#[derive(Clone)]
pub(super) enum Raw {
    /// Typed value of a file.
    Typed(Value),
    /// Text that must be converted to the key's type.
    Text(String),
}

impl Given {
    /// Returns a value from the command line.
    pub(crate) fn flag(key: &str, name: &'static str, text: impl Into<String>) -> Self {
        Self {
            path: key.split('.').map(str::to_owned).collect(),
            value: Raw::Text(text.into()),
            origin: ValueOrigin::Flag { name },
        }
    }

    pub(super) fn key(&self) -> String {
        self.path.join(".")
    }

    /// Returns the value, if it may be shown.
    pub(super) fn shown(&self) -> String {
        let key = self.key();
        // A value in place of a table with a secret below it is not shown, either.
        if SECRET.iter().any(|secret| is_below(&key, secret) || is_below(secret, &key)) {
            return "the given value".to_owned();
        }
        match &self.value {
            Raw::Typed(Value::Table(_)) => "a table".to_owned(),
            Raw::Typed(value) => value.to_string(),
            Raw::Text(text) => format!("{text:?}"),
        }
    }

    /// Returns an error that names the place and the key, as far as the key cannot be a secret
    /// itself.
    pub(super) fn refused(&self, reason: impl fmt::Display) -> Failure {
        let (key, is_whole) = self.shown_key();
        let key = key.escape_debug();
        match &self.origin {
            origin if is_whole => Failure::usage(format!("{origin}: {key}: {reason}")),
            ValueOrigin::Environment { .. } => {
                Failure::usage(format!("environment: {key}.…: {reason}"))
            }
            origin => Failure::usage(format!("{origin}: {key}.…: {reason}")),
        }
    }

    /// Returns the key up to a possible secret, and whether that is the whole key. Below the table
    /// of tokens every name is a secret. Below other tables a text that is not a valid name may be
    /// one, as when name and value are swapped. Below a single value everything may be one.
    pub(super) fn shown_key(&self) -> (String, bool) {
        let key = self.key();
        let above = SECRET.iter().find(|secret| key != **secret && is_below(&key, secret));
        let Some(above) = above else {
            let url = self.path.iter().position(|part| part.contains("://"));
            let shown = self.path.get(..url.unwrap_or(self.path.len())).unwrap_or_default();
            return (shown.join("."), url.is_none());
        };
        let is_name = match self.path.get(above.split('.').count()..) {
            Some([number]) if *above == "disguise.keys" => number.parse::<u32>().is_ok(),
            Some([name]) if ["stores", "upstreams"].contains(above) => {
                check_name("store", name).is_ok()
            }
            _ => false,
        };
        if is_name { (key, true) } else { ((*above).to_owned(), false) }
    }

    /// Returns the key, as far as it may be shown, if its value or its name contains a secret: a
    /// URL with a password, or a token.
    pub(super) fn key_of_secret(&self) -> Option<String> {
        let key = self.key();
        let text = match &self.value {
            Raw::Typed(Value::String(text)) | Raw::Text(text) => text.as_str(),
            Raw::Typed(_) => "",
        };
        let is_secret = SECRET.iter().any(|secret| is_below(&key, secret)) && has_secret(text);
        let is_token = key != TOKENS && is_below(&key, TOKENS);
        let is_hash = self.path.last().is_some_and(|name| name.starts_with("sha256:"));
        (is_secret || is_token && !is_hash).then(|| self.shown_key().0)
    }

    /// Converts the value to the type in `schema`.
    pub(super) fn typed(&self, schema: &Value) -> Outcome<Value> {
        let wanted = match schema {
            Value::String(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Boolean(_) => "true or false",
            Value::Array(_) => "a list of texts",
            _ => "a table",
        };
        let found = match (&self.value, schema) {
            (Raw::Typed(value), _) if value.same_type(schema) => Some(value.clone()),
            (Raw::Typed(Value::Integer(number)), Value::String(_))
                if NUMBER_OR_WORD.contains(&self.key().as_str()) =>
            {
                Some(Value::String(number.to_string()))
            }
            (Raw::Text(text), Value::String(_)) => Some(Value::String(text.clone())),
            (Raw::Text(text), Value::Integer(_)) => text.parse().ok().map(Value::Integer),
            (Raw::Text(text), Value::Boolean(_)) => text.parse().ok().map(Value::Boolean),
            (Raw::Text(text), Value::Array(_)) => Some(list(text)),
            _ => None,
        };
        found.ok_or_else(|| self.refused(format_args!("expected {wanted}, not {}", self.shown())))
    }
}

/// Parses a list from a text with commas.
fn list(text: &str) -> Value {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    Value::Array(items.map(|item| Value::String(item.to_owned())).collect())
}

/// Returns whether a key is this one, or below it.
pub(crate) fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
