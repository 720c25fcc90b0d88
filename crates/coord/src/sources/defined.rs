//! Definition of a source, parsed.

use std::sync::OnceLock;

use snowmint_core::text::Format;

use super::id_batch::Decoded;
use super::id_codec::{IdCodec, quoted};
use crate::error::{Error, Result};
use crate::model::catalog::SourceState;
use crate::spec::{Plan, SegmentPlan, SourceSpec};

/// Current definition of a source.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) spec: SourceSpec,
    pub(crate) plan: Plan,
    pub(crate) id_codec: IdCodec,
    pub(crate) state: SourceState,
    pub(crate) version: u64,
    /// Definition as canonical JSON, made on first use.
    pub(crate) text: OnceLock<String>,
}

impl Defined {
    /// Returns the parts of an ID that is a number, or a serial made of one.
    ///
    /// # Errors
    /// `Invalid` with the fault in the text.
    pub(super) fn decode_number(
        &self,
        name: &str,
        text: &str,
        format: Option<Format>,
    ) -> Result<Decoded> {
        let number = || self.id_codec.reveal(name, self.id_codec.decode(name, text, format)?);
        match &self.plan {
            Plan::Snowflake(plan) => {
                let id = number()?;
                let layout = plan.layout;
                let parts = layout.unpack(id).map_err(|error| {
                    let text = quoted(text);
                    Error::invalid(format!("invalid ID {text} of source {name:?}: {error}"))
                })?;
                Ok(Decoded::Snowflake { id, parts, time: layout.start_of(parts.tick), layout })
            }
            Plan::Segment(SegmentPlan { serial: Some(serial), .. }) => {
                let number = serial.number_of(text).map_err(|reason| {
                    Error::invalid(format!(
                        "{} is not a serial of source {name:?}: {reason}; check the text",
                        quoted(text)
                    ))
                })?;
                let parts = serial.parts_of(number);
                Ok(Decoded::Serial { period: parts.period, number: parts.number })
            }
            _ => Ok(Decoded::Number { id: number()? }),
        }
    }
}
