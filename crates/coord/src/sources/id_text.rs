//! Texts of a source's IDs, and the parts of an ID.

use snowmint_core::UnixMillis;
use snowmint_core::text::{Format, Text};

use super::Source;
use super::id_batch::Decoded;
use crate::error::{Error, Result};
use crate::spec::{Plan, SegmentPlan};

impl Source {
    /// Returns the text of an ID: in `format`, or else in the source's own.
    ///
    /// # Errors
    /// `Invalid` when the format cannot write the ID.
    pub fn encode(&self, id: u64, format: Option<Format>) -> Result<Text> {
        self.inner.defined.load().id_codec.encode(id, format)
    }

    /// Returns the parts of an ID of this source. Numbers are read in the given format, or else in
    /// the source's own or in decimal; disguises are undone.
    ///
    /// # Errors
    /// `Invalid` with the fault in the text.
    pub fn decode(&self, text: &str, format: Option<Format>) -> Result<Decoded> {
        let defined = self.inner.defined.load();
        let number = || {
            let shown = defined.id_codec.decode(text, format)?;
            defined.id_codec.reveal(&self.inner.name, shown)
        };
        match &defined.plan {
            Plan::Snowflake(plan) => {
                let id = number()?;
                let layout = plan.layout;
                let parts = layout.unpack(id).map_err(|error| Error::invalid(error.to_string()))?;
                Ok(Decoded::Snowflake { id, parts, time: layout.start_of(parts.tick), layout })
            }
            Plan::Segment(SegmentPlan { serial: Some(serial), .. }) => {
                let number = serial.number_of(text).map_err(|reason| {
                    Error::invalid(format!(
                        "{} is not a serial of source {:?}: {reason}; check the text",
                        quoted(text),
                        self.name()
                    ))
                })?;
                let parts = serial.parts_of(number);
                Ok(Decoded::Serial { period: parts.period, number: parts.number })
            }
            Plan::Segment(_) | Plan::Counter(_) => Ok(Decoded::Number { id: number()? }),
            Plan::Uuid(_) => {
                uuid::Uuid::try_parse(text).map(|uuid| Decoded::Uuid { uuid }).map_err(|error| {
                    let text = quoted(text);
                    Error::invalid(format!("{text} is not a UUID: {error}; check the text"))
                })
            }
            Plan::Ulid => ulid::Ulid::from_string(text)
                .map(|ulid| {
                    let time = UnixMillis::new(ulid.timestamp_ms());
                    Decoded::Ulid { bits: ulid.0, time }
                })
                .map_err(|error| {
                    let text = quoted(text);
                    Error::invalid(format!("{text} is not a ULID: {error}; check the text"))
                }),
        }
    }
}

/// Returns a caller's text in quotes, cut after 80 characters.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(80).collect();
    format!("{shown:?}")
}
