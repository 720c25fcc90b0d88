//! Parameters of opening a store, kept for opening its secondary stores.

use std::fmt;

use crate::settings::{ClientDeps, Settings};

/// Parameters with which the servers' store is opened.
#[derive(Clone)]
pub(super) struct OpenParams {
    pub(super) url: String,
    pub(super) namespace: String,
    pub(super) settings: Settings,
    pub(super) deps: ClientDeps,
}

/// Leaves out the URL, which may contain a token.
impl fmt::Debug for OpenParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenParams").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
