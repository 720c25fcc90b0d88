//! The servers that own counters and global-order sources, as sources of this node call them: the
//! only way to an [`OwnerClient`], so no call passes a store in doubt by.

use std::sync::Arc;

use super::deadline::Deadline;
use super::node_context::NodeContext;
use crate::error::Result;
use crate::store::owner_client::OwnerClient;

/// Owners of what this node's store leaves to servers. They may know less than this node: a server
/// that opened a restored store has no sign of the loss, and would give lost numbers once more.
pub(super) struct Owners {
    client: Arc<dyn OwnerClient>,
    ctx: Arc<NodeContext>,
}

impl Owners {
    /// Returns the owners that the store names; `None` where this node can be one.
    pub(super) fn of(ctx: &Arc<NodeContext>) -> Option<Self> {
        let client = ctx.store.owner_client()?;
        Some(Self { client, ctx: Arc::clone(ctx) })
    }

    /// Returns the end of a time that begins now.
    pub(super) fn deadline(&self, within_ms: u64) -> Deadline<'_> {
        self.ctx.deadline(within_ms)
    }

    /// Makes a call, which takes at most `within_ms`.
    ///
    /// # Errors
    /// Those of the call; a doubt about the store that is open before it or after it; `Unavailable`
    /// when the node rejoined the store meanwhile.
    pub(super) async fn ask<'a, T, F: Future<Output = Result<T>> + Send + 'a>(
        &'a self,
        within_ms: u64,
        call: impl FnOnce(&'a dyn OwnerClient) -> F,
    ) -> Result<T> {
        let called = self.ctx.with_deadline(within_ms, call(&*self.client));
        self.ctx.doubts.in_one_history(called).await
    }

    /// Returns the open doubt about the store as an error.
    pub(super) fn check(&self) -> Result<()> {
        self.ctx.doubts.check()
    }
}

crate::opaque_debug!(Owners: client);
