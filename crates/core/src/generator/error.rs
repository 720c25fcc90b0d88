//! The errors of minting, with the time after which a retry may help.

use core::fmt;

use crate::civil::Rfc3339;
use crate::time::UnixMillis;

/// The reason that no ID was minted. No ID is lost, and none will repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MintError {
    /// All sequence numbers of the ticks that the clock allows are used up. Normal under load.
    TickFull {
        /// Start of the next tick, by the wall clock.
        next: UnixMillis,
        /// Milliseconds until then; at least 1.
        retry_after_ms: u64,
    },
    /// The clock lies behind the last ID, by more than the policy allows.
    ClockBehind {
        /// Milliseconds behind the last ID.
        by_ms: u64,
        /// Milliseconds that the policy allows.
        limit_ms: u64,
        /// Milliseconds until a retry may help, if the clock is not set again.
        retry_after_ms: u64,
    },
    /// The clock was set back, and no clock value's last ID lies below it.
    NoClockValue {
        /// Number of clock values of the worker.
        values: u64,
        /// Milliseconds by which the clock lies behind the nearest clock value.
        by_ms: u64,
    },
    /// The window that the store granted is used up: it must be extended first.
    WindowSpent {
        /// End of the window.
        mark: UnixMillis,
    },
    /// The clock shows a time before the layout's epoch.
    BeforeEpoch {
        /// Milliseconds before the epoch.
        by_ms: u64,
    },
    /// The layout's years have run out.
    EpochSpent {
        /// End of the layout's last tick.
        end: UnixMillis,
    },
    /// The generator was closed for good.
    Closed,
}

impl MintError {
    /// Returns the milliseconds until a retry may help; `None` when no retry of this process will.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match *self {
            Self::TickFull { retry_after_ms, .. } | Self::ClockBehind { retry_after_ms, .. } => {
                Some(retry_after_ms)
            }
            Self::NoClockValue { by_ms, .. } | Self::BeforeEpoch { by_ms } => Some(by_ms),
            Self::WindowSpent { .. } => Some(1),
            Self::EpochSpent { .. } | Self::Closed => None,
        }
    }
}

impl fmt::Display for MintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TickFull { retry_after_ms, .. } => write!(
                f,
                "every sequence number of this tick is used up: the next tick begins in {retry_after_ms} ms"
            ),
            Self::ClockBehind { by_ms, limit_ms, retry_after_ms } => write!(
                f,
                "the clock is {by_ms} ms behind the last ID, and at most {limit_ms} ms are allowed: \
                 try again in {retry_after_ms} ms, or correct the clock"
            ),
            Self::NoClockValue { values, by_ms } => write!(
                f,
                "the clock stepped back behind the last IDs of all {values} clock values of this worker, \
                 {by_ms} ms behind the nearest: wait, or correct the clock"
            ),
            Self::WindowSpent { mark } => write!(
                f,
                "the window granted by the store ends at {}, and no further one was granted yet",
                Rfc3339(mark)
            ),
            Self::BeforeEpoch { by_ms } => write!(
                f,
                "the clock is {by_ms} ms before the layout's epoch: correct the clock, or take an earlier epoch"
            ),
            Self::EpochSpent { end } => {
                let end = Rfc3339(end);
                write!(f, "the layout's years ended at {end}: define a source with a newer epoch")
            }
            Self::Closed => f.write_str("the generator is closed: its worker was released or lost"),
        }
    }
}

impl core::error::Error for MintError {}

/// A batch that could not be minted whole. The IDs minted are at the start of the buffer, and are
/// valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Number of IDs written.
    pub made: usize,
    /// The error that ended the batch.
    pub error: MintError,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "only {} IDs of the batch were minted", self.made)
    }
}

impl core::error::Error for Short {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
