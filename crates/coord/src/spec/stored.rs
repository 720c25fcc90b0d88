//! Stored text of a source's keys: definitions and identities in the catalog, and the journal's
//! copies of definitions.
//!
//! It is the users' JSON, except that the key `upstream` is stored as `origin`: stored texts keep
//! the name with which they were first written.
//! [`catalog`](crate::model::catalog) translates.

use serde_json::{Map, Value};

use super::error::SpecError;
use super::source_spec::SourceSpec;
use crate::error::json;
use crate::model::catalog::stored_key::{name_for_store, name_for_users};

impl SourceSpec {
    /// Parses a stored text.
    ///
    /// # Errors
    /// [`SpecError::Unreadable`], with the parser's message.
    pub fn from_stored(text: &str) -> Result<Self, SpecError> {
        let unreadable =
            |error: serde_json::Error| SpecError::Unreadable { reason: json::reason(&error) };
        let mut keys: Map<String, Value> = serde_json::from_str(text).map_err(unreadable)?;
        name_for_users(&mut keys);
        serde_json::from_value(keys.into()).map_err(unreadable)
    }

    /// Returns the keys that are set as a stored text: JSON with sorted keys.
    #[must_use]
    pub fn to_stored(&self) -> String {
        text_of(self.to_json())
    }
}

/// Returns keys as a stored text.
pub(super) fn text_of(mut keys: Map<String, Value>) -> String {
    name_for_store(&mut keys);
    Value::from(keys).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::catalog::NewDefinition;
    use crate::model::catalog::stored_key::{STORED_UPSTREAM, UPSTREAM};

    #[test]
    fn upstream_is_stored_as_origin() {
        let spec = SourceSpec::from_json(r#"{"kind":"segment","upstream":"leaf:orders"}"#).unwrap();
        assert_eq!(spec.to_stored(), r#"{"kind":"segment","origin":"leaf:orders"}"#);
        let new = NewDefinition::of("orders", &spec).unwrap();
        for text in [&new.spec, &new.identity] {
            assert!(text.contains(r#""origin":"leaf:orders""#), "{text}");
            assert!(!text.contains(UPSTREAM), "{text}");
        }
        let stored = SourceSpec::from_stored(&new.spec).unwrap();
        assert_eq!(stored.upstream.as_deref(), Some("leaf:orders"));
        assert_eq!(stored.to_json().get(UPSTREAM), Some(&Value::from("leaf:orders")));
        assert_eq!(stored.identity().unwrap(), new.identity);
    }

    #[test]
    fn stored_name_is_no_key_for_users() {
        let text = r#"{"kind":"segment","origin":"leaf:orders"}"#;
        let error = SourceSpec::from_json(text).unwrap_err();
        assert!(error.to_string().contains("unknown field \"origin\""), "{error}");
        assert!(SourceSpec::default().set(STORED_UPSTREAM, "leaf:orders").is_err());
    }
}
