//! Deadline of a caller that waits.

use snowmint_core::ElapsedMillis;

use super::node_context::NodeContext;
use crate::platform::timer::{Timer, within};

/// End of the time that a caller waits.
pub(super) struct Deadline<'a> {
    pub(super) timer: &'a dyn Timer,
    at: ElapsedMillis,
}

impl NodeContext {
    /// Returns the deadline of a caller that waits at most `within_ms` from now.
    pub(super) fn deadline(&self, within_ms: u64) -> Deadline<'_> {
        Deadline { timer: &*self.timer, at: self.timer.elapsed().saturating_add(within_ms) }
    }
}

impl Deadline<'_> {
    pub(super) fn left_ms(&self) -> u64 {
        self.at.since(self.timer.elapsed())
    }

    /// Waits for news, at most `recheck_ms`. Returns `false` at once when no time is left.
    pub(super) async fn wait(&self, news: impl Future<Output = ()>, recheck_ms: u64) -> bool {
        let left_ms = self.left_ms();
        if left_ms > 0 {
            within(self.timer, left_ms.min(recheck_ms), news).await;
        }
        left_ms > 0
    }
}
