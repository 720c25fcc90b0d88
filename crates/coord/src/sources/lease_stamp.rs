//! Lease on the sections of a process, in one atomic word.

use snowmint_core::ElapsedMillis;

/// The lease on all sections, in one word: its membership, and its end on our elapsed clock. A
/// number taken in one membership is not returned in another: another process may have owned the
/// section in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseStamp(u64);

impl LeaseStamp {
    pub(super) const NONE: Self = Self(0);
    const UNTIL_BITS: u32 = 44;

    pub(super) const fn new(membership: u64, until: ElapsedMillis) -> Self {
        Self(membership << Self::UNTIL_BITS | until.get() & ((1 << Self::UNTIL_BITS) - 1))
    }

    /// Returns whether a number taken while the lease was `self` may be returned, now that the
    /// lease is `after`.
    pub(super) const fn covers(self, after: Self, now: ElapsedMillis) -> bool {
        let until_ms = after.0 & ((1 << Self::UNTIL_BITS) - 1);
        self.0 != 0
            && self.0 >> Self::UNTIL_BITS == after.0 >> Self::UNTIL_BITS
            && now.get() < until_ms
    }

    /// Returns the stamp in this word.
    pub(super) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) const fn word(self) -> u64 {
        self.0
    }
}
