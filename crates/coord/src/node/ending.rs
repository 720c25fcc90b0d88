//! End of a node, and of the resources that it used.

use super::state::Node;
use crate::error::{Error, Result};

/// Default time within which an ending process gives everything back.
pub const END_MS: u64 = 10_000;

impl Node {
    /// [Closes](Self::close) the node, and then its store's connections, within `within_ms`
    /// whatever the store and the disk do. Anything still open then ends with the process.
    ///
    /// # Errors
    /// Those of [`close`](Self::close); `Unavailable` when it takes longer.
    pub async fn end(&self, within_ms: u64) -> Result<()> {
        let timer = &self.core().ctx.timer;
        let begun = timer.elapsed();
        let late = || {
            Error::unavailable(format!(
                "release did not finish within {within_ms} ms; worker numbers become free when \
                 this member's presence expires"
            ))
        };
        let closed = tokio::select! {
            biased;
            closed = self.close() => closed,
            () = timer.sleep_ms(within_ms) => return Err(late()),
        };
        let left_ms = within_ms.saturating_sub(timer.elapsed().since(begun));
        let store = tokio::select! {
            biased;
            store = self.store().close() => store,
            () = timer.sleep_ms(left_ms) => {
                tracing::warn!("store connections not closed in time");
                Ok(())
            }
        };
        closed.and(store)
    }
}
