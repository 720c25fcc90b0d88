//! Slots that nothing mints from any more, and with a release that the store has not acknowledged.

use std::sync::Arc;

use snowmint_core::Clock;

use super::super::entry::{self, Stray};
use super::{Done, Driver};
use crate::lease::Release;
use crate::machine::Now;

/// Wait before an unanswered release is sent again.
const RETRY_MS: u64 = 500;

/// Releases that the store has not acknowledged. They are sent until it has, or until the node
/// ends: a slot that is not given up stays held for as long as this node lives.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) releases: Vec<Release>,
    /// Leaked slots, which nothing was ever minted from, at the marks that the store has.
    strays: Vec<Stray>,
    /// Number of the journal write that must be on disk before a release is sent: a process that
    /// starts without the store must not resume in a window that was released.
    after_write: u64,
    busy: bool,
    retry_at_ms: u64,
}

impl Owed {
    pub(super) fn add(&mut self, releases: Vec<Release>) {
        for release in releases {
            if !self.releases.contains(&release) {
                self.releases.push(release);
            }
        }
    }

    /// Returns all pending releases.
    pub(super) fn all(&self) -> impl Iterator<Item = &Release> {
        self.releases.iter().chain(self.strays.iter().map(|stray| &stray.seen))
    }

    pub(super) fn done(&mut self, done: &[Release]) {
        self.busy = false;
        self.releases.retain(|release| !done.contains(release));
        self.strays.retain(|stray| !done.contains(&stray.seen));
    }

    fn wait_ms(&self, now: Now) -> Option<u64> {
        let waits = !self.busy && self.all().next().is_some();
        waits.then(|| self.retry_at_ms.saturating_sub(now.elapsed.get()))
    }
}

impl Driver {
    /// Returns the milliseconds until the next poll.
    pub(super) fn owed_wait_ms(&self, now: Now) -> Option<u64> {
        self.owed.wait_ms(now).filter(|_| self.keeper.is_on_disk(self.owed.after_write))
    }

    /// Adds releases of these slots.
    pub(super) fn owe(&mut self, releases: Vec<Release>) {
        if !releases.is_empty() {
            self.owed.add(releases);
            self.owed.after_write = self.keeper.next_write();
            self.strays.doubt(self.core.around.timer.elapsed());
        }
    }

    /// Adds leaked slots, which the store holds for this node and no lease tracks.
    pub(super) fn owe_strays(&mut self, strays: Vec<Release>) {
        if !strays.is_empty() {
            // Skipped if there is no randomness: it will be found again.
            self.owed.strays.extend(strays.into_iter().filter_map(|seen| Stray::new(seen).ok()));
            self.strays.doubt(self.core.around.timer.elapsed());
        }
    }

    pub(super) fn look_at_owed(&mut self, now: Now) {
        if self.owed_wait_ms(now) != Some(0) {
            return;
        }
        self.owed.busy = true;
        self.owed.retry_at_ms = now.elapsed.get().saturating_add(RETRY_MS);
        let core = Arc::clone(&self.core);
        let (releases, strays) = (self.owed.releases.clone(), self.owed.strays.clone());
        self.tasks.spawn(async move {
            let around = &core.around;
            let mut done = Vec::new();
            // The other releases would wait for the same store.
            for release in releases {
                let wall = around.clock.unix_ms();
                if !entry::release_once(around, &release, wall).await {
                    return Done::Released(done);
                }
                done.push(release);
            }
            for stray in strays {
                let wall = around.clock.unix_ms();
                if !entry::release_stray(around, &stray, wall).await {
                    break;
                }
                done.push(stray.seen);
            }
            Done::Released(done)
        });
    }
}
