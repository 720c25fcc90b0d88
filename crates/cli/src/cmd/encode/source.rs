//! The layout and the text form of a source, which a server knows.

use serde::Serialize;
use serde_json::Value;
use snowmint_coord::spec::{Hides, Plan, SourceSpec};
use snowmint_core::Layout;
use snowmint_core::text::Format;
use snowmint_wire::error::Code;
use snowmint_wire::http::SourceBody;

use crate::client::{ApiClient, segment};
use crate::terminal::exit::{Failure, Outcome};

/// Form of a source's IDs.
pub(super) struct SourceForm {
    pub(super) layout: Layout,
    format: Format,
}

impl SourceForm {
    /// Asks a server for a source.
    pub(super) fn of(name: &str, server: &str) -> Outcome<Self> {
        let client = ApiClient::new(server)?;
        let body: SourceBody = client.get(&format!("/v1/sources/{}", segment(name)))?;
        Self::of_keys(name, &Value::Object(body.keys))
    }

    fn of_keys(name: &str, keys: &Value) -> Outcome<Self> {
        let spec = SourceSpec::from_json(&keys.to_string()).and_then(|spec| spec.check());
        let plan = spec.map_err(|error| {
            Failure::coded(
                Code::Unsupported,
                format!("source {name:?} cannot be read: {error}; update this program"),
            )
        })?;
        let Plan::Snowflake(plan) = plan else {
            let kind = keys.get("kind").and_then(Value::as_str).unwrap_or_default();
            return Err(Failure::usage(format!(
                "source {name:?} has kind {kind}, whose IDs are in no layout; name a source of \
                 kind snowflake"
            )));
        };
        // A disguise of the bits below the time keeps each ID in the range of its time.
        if plan.disguise.is_some_and(|disguise| disguise.hides != Hides::BelowTime) {
            return Err(Failure::usage(format!(
                "source {name:?} disguises its IDs, so no range holds those of a time; decode IDs \
                 to filter them (snowmint decode --source {name})"
            )));
        }
        Ok(Self { layout: plan.layout, format: plan.text })
    }

    /// Returns the name of the text form, and both ends of a range in it; `None` for the decimal
    /// form of the range itself.
    pub(super) fn texts(&self, lowest: u64, highest: u64) -> Outcome<Option<TextRange>> {
        if self.format == Format::default() {
            return Ok(None);
        }
        let text = |id| {
            let text = self.format.encode(id, Some(&self.layout));
            text.map(|text| text.as_str().to_owned()).map_err(Failure::internal)
        };
        Ok(Some(TextRange {
            format: self.format.name(),
            lowest_text: text(lowest)?,
            highest_text: text(highest)?,
            texts_sort: matches!(self.format, Format::Padded(_) | Format::FriendlyPadded),
        }))
    }
}

/// A range in a text form.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct TextRange {
    pub(super) format: &'static str,
    pub(super) lowest_text: String,
    pub(super) highest_text: String,
    /// Whether texts of this form sort as their numbers do, so that a column of texts can be
    /// compared with these.
    pub(super) texts_sort: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(keys: &Value) -> Outcome<SourceForm> {
        SourceForm::of_keys("orders", keys)
    }

    #[test]
    fn source_gives_layout_and_text_form() {
        let padded = form(&json!({ "layout": "discord", "text": "base62-padded" })).unwrap();
        assert_eq!(padded.layout, Layout::DISCORD);
        let range = padded.texts(61, 62).unwrap().unwrap();
        assert_eq!((range.format, range.texts_sort), ("base62-padded", true));
        assert!(
            range.lowest_text.ends_with("0z") && range.highest_text.ends_with("10"),
            "{range:?}"
        );
        let short = form(&json!({ "text": "base62" })).unwrap().texts(61, 62).unwrap().unwrap();
        assert_eq!((short.lowest_text.as_str(), short.texts_sort), ("z", false));
        assert_eq!(form(&json!({})).unwrap().texts(61, 62).unwrap(), None);
    }

    #[test]
    fn source_without_order_by_time_is_rejected() {
        let disguise = |mode: &str| json!({ "disguise": { "mode": mode, "key": 1 } });
        for (keys, part) in [
            (json!({ "kind": "segment" }), "kind segment"),
            (json!({ "kind": "newer" }), "update this program"),
            (disguise("full"), "snowmint decode --source orders"),
        ] {
            let Err(Failure::Explained { message, .. }) = form(&keys) else { panic!("{part}") };
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(form(&disguise("ordered")).is_ok());
    }
}
