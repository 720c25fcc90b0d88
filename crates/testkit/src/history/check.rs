//! What is checked, by name: a failure says which promise it is that was broken.

use std::fmt;

/// What is checked of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// No ID of a source comes twice.
    Unique,
    /// The IDs of one worker number in one life of a node increase, where the source promises it.
    Increasing,
    /// Whatever is minted lies in a window that the store had promised to whoever minted it.
    Window,
    /// Nobody is promised what another has.
    Promise,
    /// No mark lies below anything minted.
    Mark,
    /// The numbers of a key are above all that was answered before they were asked for.
    Counters,
    /// IDs of a global order are above all that was answered before they were asked for.
    GlobalOrder,
    /// The store skips no number.
    Dense,
    /// Every number that a process fetched was answered, is in stock, or is counted as lost.
    Account,
    /// Nobody holds, or loses, more numbers than may be wasted.
    Waste,
    /// When the trouble is over, everybody mints again.
    Healing,
    /// A store or a directory that is not what it was is refused.
    Refusal,
    /// Nobody waits for a call without an end.
    Bound,
    /// What many runs should try was tried, and no run panicked.
    Trial,
}

impl Check {
    /// All of them.
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
        Self::Refusal,
        Self::Bound,
        Self::Trial,
    ];

    /// It failed, in this way.
    #[must_use]
    pub fn broken(self, what: impl Into<String>) -> Violation {
        Violation { check: self, what: what.into() }
    }
}

/// A promise that was broken. Says which, how, and where it can, how to replay the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub check: Check,
    /// How.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, what } = self;
        write!(f, "{check:?}: {what}")
    }
}

/// Whether a promise was kept.
pub type Checked = Result<(), Violation>;
