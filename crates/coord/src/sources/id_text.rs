//! Texts of a source's IDs, and the parts of an ID.

use snowmint_core::text::{Format, Text};

use super::Source;
use super::id_batch::Decoded;
use crate::error::Result;

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
        self.inner.backing.kind().decode(self.name(), &defined, text, format)
    }
}
