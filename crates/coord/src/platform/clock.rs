//! The clock and the observer of a node.

use std::sync::Arc;

use snowmint_core::{Observer, Pause};

/// The clock that a node's generators read.
pub type NodeClock = Arc<dyn Pause + Send + Sync>;
/// Receiver of clock steps.
pub type NodeObserver = Arc<dyn Observer + Send + Sync>;
