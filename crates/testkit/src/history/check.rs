//! Checks by name: a failure names the broken promise.

use std::fmt;

/// A check of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// No ID of a source occurs twice.
    Unique,
    /// The IDs of one worker number in one life of a node increase, where the source promises it.
    Increasing,
    /// All minted IDs lie in windows that the store had promised to their minters.
    Window,
    /// No promise overlaps that of another party.
    Promise,
    /// No mark lies below anything minted.
    Mark,
    /// The numbers of a key are above all that were returned before they were requested.
    Counters,
    /// IDs of a global order are above all that were returned before they were requested.
    GlobalOrder,
    /// The store skips no number.
    Dense,
    /// Every number that a process fetched was returned, is prefetched, or is counted as lost.
    Account,
    /// No process holds, or loses, more numbers than may be wasted.
    Waste,
    /// When the trouble is over, every process mints again.
    Healing,
    /// A changed store or directory is rejected.
    Rejection,
    /// Every call ends within a bound.
    Bound,
    /// Many runs have tried what they should, and no run panicked.
    Trial,
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 14] = [
        Self::Unique,
        Self::Increasing,
        Self::Window,
        Self::Promise,
        Self::Mark,
        Self::Counters,
        Self::GlobalOrder,
        Self::Dense,
        Self::Account,
        Self::Waste,
        Self::Healing,
        Self::Rejection,
        Self::Bound,
        Self::Trial,
    ];

    /// Returns a violation of this check, with its description.
    #[must_use]
    pub fn broken(self, what: impl Into<String>) -> Violation {
        Violation { check: self, what: what.into() }
    }
}

/// A broken promise: which one, how, and where possible, how to replay the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Check that failed.
    pub check: Check,
    /// Description of the failure.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, what } = self;
        write!(f, "{check:?}: {what}")
    }
}

/// Result of a check.
pub type Checked = Result<(), Violation>;
