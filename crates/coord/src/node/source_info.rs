//! Sources as the catalog has them.

use crate::error::{Error, Result};
use crate::model::catalog::{Catalog, Definition, SourceState};
use crate::sources::StoreStatus;
use crate::spec::{Plan, SourceSpec};

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

/// Catalog, as a running node reads it.
#[derive(Debug)]
pub(super) struct ReadCatalog {
    pub(super) catalog: Catalog,
    /// Error for sources below numbers that the node had seen issued before the read.
    pub(super) below: Option<Error>,
}

pub(super) fn read_spec(definition: &Definition) -> Result<SourceSpec> {
    SourceSpec::from_stored(&definition.spec).map_err(|error| {
        Error::unsupported(format!(
            "source {:?} in the catalog has a definition for another version: {error}; update this \
             program",
            definition.name
        ))
    })
}

pub(super) fn info(definition: &Definition) -> Result<SourceInfo> {
    let mut spec = read_spec(definition)?;
    spec.enabled = Some(definition.state == SourceState::Enabled);
    let next = match spec.check() {
        Ok(Plan::Segment(plan)) if plan.stores.is_empty() => {
            plan.stripe.next(definition.segment.mark.get())
        }
        _ => None,
    };
    Ok(SourceInfo {
        name: definition.name.clone(),
        spec,
        state: definition.state,
        version: definition.version,
        next,
        store_status: Vec::new(),
    })
}
