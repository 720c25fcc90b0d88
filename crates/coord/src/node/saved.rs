//! Definitions of sources that the journal keeps, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind};
use crate::journal::SavedDefinition;
use crate::model::catalog::{Definition, SourceState};
use crate::model::segment::SegmentRow;
use crate::sources::SourceInner;
use crate::spec::SourceSpec;

/// Returns whether the store did not respond at all.
pub(super) fn is_away(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable)
}

/// Returns the journal's entries for sources. It may have no room for all, and own sources come
/// first.
pub(super) fn own_first<'a>(
    sources: impl Iterator<Item = &'a Arc<SourceInner>>,
    is_own: impl Fn(&str) -> bool,
) -> Vec<(String, SavedDefinition)> {
    let mut saved: Vec<_> = sources.filter_map(|source| saved_definition(source)).collect();
    saved.sort_by_key(|(name, _)| !is_own(name));
    saved
}

/// Returns the journal's entry for a source; none for a source that may not be used.
fn saved_definition(source: &SourceInner) -> Option<(String, SavedDefinition)> {
    let defined = source.defined.load();
    (defined.state == SourceState::Enabled).then(|| {
        let text = || defined.spec.to_stored();
        let spec = defined.text.get_or_init(text).clone();
        (source.name.clone(), SavedDefinition { spec, version: defined.version })
    })
}

/// Definitions from an earlier process, until the store is reached.
#[derive(Debug, Default)]
pub(super) struct SavedDefinitions(Mutex<BTreeMap<String, SavedDefinition>>);

impl SavedDefinitions {
    pub(super) fn new(sources: BTreeMap<String, SavedDefinition>) -> Self {
        Self(Mutex::new(sources))
    }

    pub(super) fn sources(&self) -> BTreeMap<String, SavedDefinition> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the definitions: the catalog is newer.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn definition(&self, name: &str) -> Option<Definition> {
        let SavedDefinition { spec, version } = self.sources().remove(name)?;
        // A definition that is not for this version gives an error when it is used.
        let identity = SourceSpec::from_stored(&spec).ok().and_then(|spec| spec.identity().ok());
        Some(Definition {
            name: name.into(),
            identity: identity.unwrap_or_default(),
            spec,
            version,
            state: SourceState::Enabled,
            segment: SegmentRow::NEW,
        })
    }
}
