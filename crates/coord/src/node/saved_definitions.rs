//! Definitions of sources that the journal keeps, for offline minting before the store is reached.

use super::saved::is_away;
use super::state::{Node, NodeState};
use crate::error::{Error, ErrorKind, Result};
use crate::model::catalog::Definition;

impl NodeState {
    /// Returns the definition of a source, also of a deleted one. It is the journal's if the store
    /// does not respond and was not reached yet. In a store in doubt, none is missing for sure.
    pub(super) async fn find(&self, name: &str) -> Result<Definition> {
        match self.lookup.find((&*self.ctx, &*self.reads), name).await {
            Err(error) if is_away(&error) => self.saved_definitions.definition(name).ok_or(error),
            // A store that lost writes may have lost the definition.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {
                self.ctx.doubts.check()?;
                Err(error)
            }
            found => found,
        }
    }

    /// Returns whether an error can be ignored: the store is unavailable, and an earlier process
    /// knew its sources.
    pub(super) fn does_without(&self, error: &Error) -> bool {
        is_away(error) && !self.saved_definitions.sources().is_empty()
    }
}

impl Node {
    /// Returns the sources that can be minted from although the store was not reached yet, where
    /// that is allowed
    /// ([`NodeSettings::start_without_store`](super::NodeSettings::start_without_store)).
    #[must_use]
    pub fn saved_sources(&self) -> Vec<String> {
        self.core().saved_definitions.sources().into_keys().collect()
    }
}
