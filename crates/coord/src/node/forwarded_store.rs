//! A node's store as its server gives it to programs.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::{Result, Verb, VerbKind};
use crate::sources::NodeContext;
use crate::store::{Store, StoreCall, StoreReply};

/// A store whose callers get nothing while this node knows that servers further on have missed a
/// rollback. A store of this node's own is put in doubt, and rejects such calls itself.
pub(super) struct ForwardedStore {
    store: Arc<dyn Store>,
    ctx: Arc<NodeContext>,
}

impl ForwardedStore {
    pub(super) fn of(ctx: &Arc<NodeContext>) -> Self {
        Self { store: Arc::clone(&ctx.store), ctx: Arc::clone(ctx) }
    }

    fn check(&self, verb: Verb) -> Result<()> {
        // A member that cannot renew its presence learns of the doubt.
        let is_bound = verb.kind() == VerbKind::Grant || matches!(verb, Verb::Join | Verb::Renew);
        if is_bound && self.store.owner_client().is_some() {
            self.ctx.doubts.check()?;
        }
        Ok(())
    }
}

crate::opaque_debug!(ForwardedStore: store);

impl Store for ForwardedStore {
    crate::as_inner!(store);

    fn call<'a>(&'a self, call: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
        Box::pin(async move {
            self.check(call.verb())?;
            self.store.call(call).await
        })
    }
}
