//! Notices of peers that the members have changed, and those that a list has followed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of notices.
#[derive(Debug, Default)]
pub(crate) struct MemberNotices {
    received: AtomicU64,
    listed: AtomicU64,
}

impl MemberNotices {
    /// Counts a notice; returns its number.
    pub(super) fn add(&self) -> u64 {
        self.received.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Returns how many came before the last list of the members began.
    pub(super) fn listed(&self) -> u64 {
        self.listed.load(Ordering::Acquire)
    }

    /// Records that the members were listed after this many.
    pub(crate) fn set_listed(&self, notices: u64) {
        self.listed.store(notices, Ordering::Release);
    }
}
