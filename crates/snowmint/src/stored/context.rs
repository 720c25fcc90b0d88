//! State that the handles of a store share.

use std::sync::Arc;

use crate::clock::HandleClock;
use crate::runtime::OwnedRuntime;

/// State shared by the handles of a store.
#[derive(Clone, Debug)]
pub(crate) struct StoreContext {
    pub(crate) clock: Arc<HandleClock>,
    pub(crate) wait_max_ms: u64,
    /// The runtime, if this crate started it. Dropped after everything that runs on it.
    pub(crate) runtime: Option<Arc<OwnedRuntime>>,
}
