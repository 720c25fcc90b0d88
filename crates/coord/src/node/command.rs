//! Commands to the driver of a node, and the error for one that has ended.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::Result;
use crate::sources::SourceInner;
pub(super) use crate::sources::node_closed;

/// Command to the driver.
#[derive(Debug)]
pub(super) enum DriverCommand {
    /// Keep a snowflake source supplied; reply when it can mint.
    Attach { source: Arc<SourceInner>, reply: oneshot::Sender<Result<()>> },
    /// Announce that this process serves no sections any more, and reply when the store knows:
    /// whether there are sections that peers send callers here for.
    AnnounceStop { reply: oneshot::Sender<bool> },
    /// Relinquish the sections that peers serve, and reply when none is left.
    HandOver { reply: oneshot::Sender<()> },
    /// Close everything, and reply whether everything was released.
    Close { reply: oneshot::Sender<Result<()>> },
}
