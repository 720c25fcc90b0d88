//! The key `text`: the form of IDs as text.

use snowmint_core::text::{Format, UnknownFormat};

use crate::spec::error::{SpecError, value};

pub(super) fn text(given: Option<&str>) -> Result<Format, SpecError> {
    let Some(written) = given else { return Ok(Format::default()) };
    written.parse().map_err(|error: UnknownFormat| value("text", written, error.to_string()))
}
