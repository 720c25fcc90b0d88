//! List of the sources of a node.

use super::source_info::Listed;
use super::state::NodeState;
use crate::model::catalog::{Catalog, SourceState};

impl NodeState {
    /// Returns all sources that are not deleted.
    pub(super) fn listed(&self, catalog: &Catalog) -> Listed {
        let mut listed = Listed { sources: Vec::new(), unreadable: Vec::new() };
        for definition in &catalog.definitions {
            if definition.state == SourceState::Deleted {
                continue;
            }
            match self.described(definition) {
                Ok(info) => listed.sources.push(info),
                Err(error) => listed.unreadable.push((definition.name.clone(), error)),
            }
        }
        listed
    }
}
