//! Sources in the form in which they are listed.

use super::NodeState;
use crate::error::Error;
use crate::model::catalog::{Catalog, SourceState};
use crate::sources::StoreStatus;
use crate::spec::SourceSpec;

/// Source as the catalog has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Name.
    pub name: String,
    /// Keys, with every default written out.
    pub spec: SourceSpec,
    /// State, which says whether it may be used.
    pub state: SourceState,
    /// Catalog's version when the source last changed.
    pub version: u64,
    /// Lowest number of a segment source that was not handed out; none when they are spent.
    pub next: Option<u64>,
    /// Status of its stores, for a source that has several and was opened here.
    pub store_status: Vec<StoreStatus>,
}

/// Content of the catalog.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Sources, by name.
    pub sources: Vec<SourceInfo>,
    /// Sources that this version cannot read, such as those that a newer one has defined, and the
    /// errors.
    pub unreadable: Vec<(String, Error)>,
}

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
