//! Slots that nothing mints from any more, and with a release that the store has not acknowledged.

use std::sync::Arc;

use snowmint_core::Clock;

use super::super::join::{self, LeakedSlot};
use super::state::{Completion, Driver};
use crate::machine::Now;
use crate::model::lease::Release;

/// Wait before a release without a result is sent again.
const RETRY_MS: u64 = 500;

impl Driver {
    /// Returns the milliseconds until the next poll.
    pub(super) fn next_release_ms(&self, now: Now) -> Option<u64> {
        self.pending_releases
            .next_poll_ms(now)
            .filter(|_| self.journal_writer.is_on_disk(self.pending_releases.after_write))
    }

    /// Adds releases of these slots.
    pub(super) fn add_releases(&mut self, releases: Vec<Release>) {
        if !releases.is_empty() {
            self.pending_releases.add(releases);
            self.pending_releases.after_write = self.journal_writer.next_write();
            self.leaks.doubt(self.core.ctx.timer.elapsed());
        }
    }

    /// Adds leaked slots, which the store holds for this node and no lease tracks.
    pub(super) fn add_leaked(&mut self, leaks: Vec<Release>) {
        if !leaks.is_empty() {
            // Skipped if there is no randomness: it will be found again.
            self.pending_releases
                .leaks
                .extend(leaks.into_iter().filter_map(|seen| LeakedSlot::new(seen).ok()));
            self.leaks.doubt(self.core.ctx.timer.elapsed());
        }
    }

    pub(super) fn poll_releases(&mut self, now: Now) {
        if self.next_release_ms(now) != Some(0) {
            return;
        }
        self.pending_releases.busy = true;
        self.pending_releases.retry_at_ms = now.elapsed.get().saturating_add(RETRY_MS);
        let core = Arc::clone(&self.core);
        let (releases, leaks) =
            (self.pending_releases.releases.clone(), self.pending_releases.leaks.clone());
        self.tasks.spawn(async move {
            let ctx = &core.ctx;
            let mut done = Vec::new();
            // The other releases would wait for the same store.
            for release in releases {
                let wall = ctx.clock.unix_ms();
                if !join::release_once(ctx, &release, wall).await {
                    return Completion::Released(done);
                }
                done.push(release);
            }
            for leaked in leaks {
                let wall = ctx.clock.unix_ms();
                if !join::release_leaked(ctx, &leaked, wall).await {
                    break;
                }
                done.push(leaked.seen);
            }
            Completion::Released(done)
        });
    }
}
