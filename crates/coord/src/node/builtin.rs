//! Built-in sources.

use super::Node;
use crate::error::{ErrorKind, Result};
use crate::spec::{Kind, SourceSpec};

/// Name of the built-in snowflake source.
pub const BUILTIN_DEFAULT: &str = "default";
/// Name of the built-in segment source.
pub const BUILTIN_NUMBERS: &str = "numbers";
/// Name of the built-in counter source.
pub const BUILTIN_COUNTERS: &str = "counters";
/// Built-in sources, each with its kind.
pub(super) const BUILTIN: [(&str, Kind); 3] = [
    (BUILTIN_DEFAULT, Kind::Snowflake),
    (BUILTIN_NUMBERS, Kind::Segment),
    (BUILTIN_COUNTERS, Kind::Counter),
];

impl Node {
    /// Defines the built-in sources, if the settings ask for them. [`Node::open`] calls this; if
    /// the node waits for a recovery, the caller of `open` must call it later.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn define_builtin(&self) -> Result<()> {
        if !self.core().settings.builtin {
            return Ok(());
        }
        for (name, kind) in BUILTIN {
            match self.define(name, &SourceSpec::of(kind)).await {
                // An operator has redefined or deleted it: the operator's definition stands.
                Err(error) if matches!(error.kind(), ErrorKind::Conflict) => {}
                // An earlier process has defined them.
                Err(error) if self.core().does_without(&error) => return Ok(()),
                defined => drop(defined?),
            }
        }
        Ok(())
    }
}
