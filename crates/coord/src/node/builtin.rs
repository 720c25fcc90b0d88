//! The sources that are there without being defined.

use super::Node;
use crate::error::{ErrorKind, Result};
use crate::spec::{Kind, SourceSpec};

/// The name of the snowflake source that is there without being defined.
pub const BUILTIN_DEFAULT: &str = "default";
/// The name of the segment source that is there without being defined.
pub const BUILTIN_NUMBERS: &str = "numbers";
/// The name of the counter source that is there without being defined.
pub const BUILTIN_COUNTERS: &str = "counters";

impl Node {
    /// Defines the sources that are there without being defined, if the node is to have them. [`Node::open`] does so;
    /// where that waited for a recovery, it is left to whoever opened it.
    ///
    /// # Errors
    /// As the store says.
    pub async fn define_builtin(&self) -> Result<()> {
        if !self.core().settings.builtin {
            return Ok(());
        }
        let builtin = [
            (BUILTIN_DEFAULT, Kind::Snowflake),
            (BUILTIN_NUMBERS, Kind::Segment),
            (BUILTIN_COUNTERS, Kind::Counter),
        ];
        for (name, kind) in builtin {
            match self.define(name, &SourceSpec::of(kind)).await {
                // Somebody has made it into something else, or deleted it: theirs stands.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {}
                // An earlier process has defined them.
                Err(error) if self.core().does_without(&error) => return Ok(()),
                defined => drop(defined?),
            }
        }
        Ok(())
    }
}
