//! Releases that the store has not acknowledged, and when they are due.

use super::super::join::LeakedSlot;
use crate::machine::Now;
use crate::model::lease::Release;

/// Releases that the store has not acknowledged. They are sent until it has, or until the node
/// ends: a slot that is not given up stays held for as long as this node lives.
#[derive(Debug, Default)]
pub(super) struct PendingReleases {
    pub(super) releases: Vec<Release>,
    /// Leaked slots, which nothing was ever minted from, at the marks that the store has.
    pub(super) leaks: Vec<LeakedSlot>,
    /// Number of the journal write that must be on disk before a release is sent: a process that
    /// starts without the store must not resume in a window that was released.
    pub(super) after_write: u64,
    pub(super) busy: bool,
    pub(super) retry_at_ms: u64,
}

impl PendingReleases {
    pub(super) fn add(&mut self, releases: Vec<Release>) {
        for release in releases {
            if !self.releases.contains(&release) {
                self.releases.push(release);
            }
        }
    }

    /// Returns all pending releases.
    pub(super) fn all(&self) -> impl Iterator<Item = &Release> {
        self.releases.iter().chain(self.leaks.iter().map(|leaked| &leaked.seen))
    }

    pub(super) fn done(&mut self, done: &[Release]) {
        self.busy = false;
        self.releases.retain(|release| !done.contains(release));
        self.leaks.retain(|leaked| !done.contains(&leaked.seen));
    }

    pub(super) fn next_poll_ms(&self, now: Now) -> Option<u64> {
        let waits = !self.busy && self.all().next().is_some();
        waits.then(|| self.retry_at_ms.saturating_sub(now.elapsed.get()))
    }
}
