//! Sources as they are listed.

use super::Core;
use crate::catalog::{Catalog, SourceState};
use crate::error::Error;
use crate::sources::ShareStats;
use crate::spec::SourceSpec;

/// A source as the catalog has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// Its keys, every default written out.
    pub spec: SourceSpec,
    /// Whether it may be used.
    pub state: SourceState,
    /// The catalog's version when it last changed.
    pub version: u64,
    /// The lowest number of a segment source that nobody was given; none when they are spent.
    pub next: Option<u64>,
    /// How its stores stand, of a source that has several and was opened here.
    pub shares: Vec<ShareStats>,
}

/// What the catalog has.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The sources, by name.
    pub sources: Vec<SourceInfo>,
    /// Those that this version cannot read, such as what a newer one has defined, and why.
    pub unreadable: Vec<(String, Error)>,
}

impl Core {
    /// All sources that are not deleted.
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
