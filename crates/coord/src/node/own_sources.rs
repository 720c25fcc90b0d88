//! Names of the own sources of a node: those of its configuration, and the built-in ones.

use std::collections::BTreeSet;
use std::sync::Mutex;

use arc_swap::ArcSwapOption;

use super::builtin::BUILTIN;

/// Names of the sources of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnSources {
    pub(super) names: BTreeSet<String>,
}

impl OwnSources {
    /// Collects the names that the configuration defines, and those of the built-in sources if it
    /// has these.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = String>, builtin: bool) -> Self {
        let builtin = BUILTIN.iter().filter(|_| builtin).map(|(name, _)| (*name).to_owned());
        Self { names: configured.into_iter().chain(builtin).collect() }
    }

    /// Returns whether a source is one of them.
    #[must_use]
    pub fn has(&self, source: &str) -> bool {
        self.names.contains(source)
    }
}

/// Own sources of a running node; none where every opened source is its own.
#[derive(Debug, Default)]
pub(super) struct OwnSwap {
    pub(super) own: ArcSwapOption<OwnSources>,
    /// Names of those whose first opening was announced, and is not over.
    pub(super) opening: Mutex<BTreeSet<String>>,
}
