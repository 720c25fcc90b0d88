//! End of a node, and of the resources that it used.

use tokio::sync::oneshot;

use super::command::{DriverCommand, node_closed};
use super::state::Node;
use crate::error::{Error, Result};
use crate::platform::timer::within;

/// Default time within which an ending process gives everything back.
pub const END_MS: u64 = 10_000;

impl Node {
    /// Announces that this process stops, and serves no sections of counters and no global order
    /// from now on. It keeps what it holds until [`hand_over`](Self::hand_over). Returns once the
    /// store knows; false for a process that serves no peer, which has nothing to hand over.
    ///
    /// # Errors
    /// `Closed` after a close.
    pub async fn announce_stop(&self) -> Result<bool> {
        let (reply, received) = oneshot::channel();
        self.send(DriverCommand::AnnounceStop { reply }).await?;
        received.await.map_err(|_| node_closed())
    }

    /// Relinquishes the sections of counters and the global orders that peers serve, after
    /// [`announce_stop`](Self::announce_stop). Returns once none is left; a process that serves
    /// alone keeps them.
    ///
    /// # Errors
    /// `Closed` after a close.
    pub async fn hand_over(&self) -> Result<()> {
        let (reply, received) = oneshot::channel();
        self.send(DriverCommand::HandOver { reply }).await?;
        received.await.map_err(|_| node_closed())
    }

    /// Records a peer's notice that the members have changed, and returns once this node has listed
    /// them, or after `wait_ms`: a node that has not joined does not list them. Without sections it
    /// needs no list.
    pub async fn members_changed(&self, wait_ms: u64) {
        let ctx = &self.core().ctx;
        if ctx.sections.are_used() {
            let listed = async {
                ctx.sections.members_changed().await;
                Ok(())
            };
            // The list follows when it can.
            let _ = ctx.with_deadline(wait_ms, listed).await;
        }
    }

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
        let closed = within(&**timer, within_ms, self.close()).await.ok_or_else(late)?;
        let left_ms = within_ms.saturating_sub(timer.elapsed().since(begun));
        let store = within(&**timer, left_ms, self.store().close()).await.unwrap_or_else(|| {
            tracing::warn!("store connections not closed in time");
            Ok(())
        });
        closed.and(store)
    }
}
