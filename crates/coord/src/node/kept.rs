//! The definitions of sources that the journal keeps: what may be minted before the store was met must
//! be known without it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Core, Node};
use crate::catalog::{Definition, SourceState};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::KeptSource;
use crate::segment::SegmentRow;
use crate::sources::SourceInner;
use crate::spec::SourceSpec;

/// Whether the store gave no answer at all.
pub(super) fn is_away(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable { .. })
}

/// What the journal keeps of a source; none of one that may not be used.
pub(super) fn kept(source: &SourceInner) -> Option<(String, KeptSource)> {
    let defined = source.defined.load();
    (defined.state == SourceState::Enabled).then(|| {
        let text = || serde_json::Value::from(defined.spec.to_json()).to_string();
        let spec = defined.text.get_or_init(text).clone();
        (source.name.clone(), KeptSource { spec, version: defined.version })
    })
}

/// The definitions of an earlier process, until the store was met.
#[derive(Debug, Default)]
pub(super) struct KeptSources(Mutex<BTreeMap<String, KeptSource>>);

impl KeptSources {
    pub(super) fn new(sources: BTreeMap<String, KeptSource>) -> Self {
        Self(Mutex::new(sources))
    }

    fn sources(&self) -> BTreeMap<String, KeptSource> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The catalog knows better.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn definition(&self, name: &str) -> Option<Definition> {
        let KeptSource { spec, version } = self.sources().remove(name)?;
        // One that is not for this version says so when it is taken up.
        let identity = SourceSpec::from_json(&spec).ok().and_then(|spec| spec.identity().ok());
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

impl Core {
    /// The definition of a source, a deleted one too: the journal's, where the store does not answer and
    /// was not met yet.
    pub(super) async fn find(&self, name: &str) -> Result<Definition> {
        match self.lookup.find((&*self.around, &*self.reads), name).await {
            Err(error) if is_away(&error) => self.kept.definition(name).ok_or(error),
            found => found,
        }
    }

    /// Whether an error is no reason to stop: the store is away, and an earlier process knew it.
    pub(super) fn does_without(&self, error: &Error) -> bool {
        is_away(error) && !self.kept.sources().is_empty()
    }
}

impl Node {
    /// The sources that can be minted from although the store has not been met, where that is allowed
    /// ([`NodeSettings::start_without_store`](super::NodeSettings::start_without_store)).
    #[must_use]
    pub fn kept_sources(&self) -> Vec<String> {
        self.core().kept.sources().into_keys().collect()
    }
}
