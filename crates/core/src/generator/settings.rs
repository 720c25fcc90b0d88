//! The settings of a generator, with every limit and default in one table.
//!
//! | policy | limit | default | at the limit | beyond it |
//! |---|---|---|---|---|
//! | hold | lead over the clock | 5000 ms | ticks flow at half speed | `ClockBehind` |
//! | wait | offset | 5 ms (Leaf) | waits twice the offset, retries once | `ClockBehind` |
//! | wait, fixed | none | 3 ms (article 000) | waits 3 ms, retries once | `ClockBehind` |
//! | fail | none | 0 ms (Twitter, Baidu) | | `ClockBehind` |
//! | borrow | lead over the clock | 10000 ms | ticks are spent as needed | `TickFull` or `ClockBehind` |
//! | clock sequence | values | all of the layout's | the next value whose mark lies below | `NoClockValue` |
//! | ring | lead over the clock | 5000 ms | the cell's own tick continues | `ClockBehind` |

use crate::advance::SequenceStart;

/// Hold: longest lead of ticks over the clock, in milliseconds.
pub const HOLD_LEAD_MAX_MS: u64 = 5_000;
/// Wait: largest offset worth waiting for, in milliseconds, inclusive. Leaf's value.
pub const WAIT_OFFSET_MAX_MS: u64 = 5;
/// Wait, fixed: duration of the wait in milliseconds. Article 000's value.
pub const WAIT_FIXED_MS: u64 = 3;
/// Borrow: longest lead of ticks over the clock, in milliseconds. Baidu's original has no such
/// limit.
pub const BORROW_LEAD_MAX_MS: u64 = 10_000;
/// Longest wait of a blocking mint for a free tick, in milliseconds; at least two ticks of the
/// layout.
pub const MINT_WAIT_MAX_MS: u64 = 100;

/// Duration of the wait of [`Rollback::Wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Twice the offset, when the offset is at most `offset_max_ms` (inclusive).
    TwiceTheOffset {
        /// The largest offset worth waiting for, in milliseconds.
        offset_max_ms: u64,
    },
    /// Always the same time, whatever the offset.
    Fixed {
        /// Duration of the wait in milliseconds.
        wait_ms: u64,
    },
}

impl WaitFor {
    /// Returns the milliseconds to wait for a clock that is `by_ms` behind; `None` if the offset is
    /// not worth a wait.
    #[must_use]
    pub const fn wait_ms(self, by_ms: u64) -> Option<u64> {
        match self {
            Self::TwiceTheOffset { offset_max_ms } if by_ms > offset_max_ms => None,
            Self::TwiceTheOffset { .. } => Some(by_ms.saturating_mul(2)),
            Self::Fixed { wait_ms } => Some(wait_ms),
        }
    }
}

/// The policy for a clock that was set back behind the last ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rollback {
    /// Ticks continue from elapsed time at half speed until the wall clock has caught up: no error,
    /// no wait, order kept.
    Hold {
        /// Longest lead of ticks over the clock in milliseconds; beyond it
        /// [`MintError::ClockBehind`](super::MintError).
        lead_max_ms: u64,
    },
    /// A blocking mint waits once and retries; a non-blocking one returns an error with the time to
    /// wait.
    Wait(WaitFor),
    /// Every mint returns an error until the clock has caught up.
    Fail,
    /// Ticks ahead of the clock are spent as needed, as Baidu's cached generator does.
    Borrow {
        /// Longest lead of ticks over the clock, in milliseconds.
        lead_max_ms: u64,
    },
}

impl Rollback {
    /// Hold, with [`HOLD_LEAD_MAX_MS`].
    pub const HOLD: Self = Self::Hold { lead_max_ms: HOLD_LEAD_MAX_MS };
    /// Wait twice the offset, up to [`WAIT_OFFSET_MAX_MS`].
    pub const WAIT: Self =
        Self::Wait(WaitFor::TwiceTheOffset { offset_max_ms: WAIT_OFFSET_MAX_MS });
    /// Borrow, with [`BORROW_LEAD_MAX_MS`].
    pub const BORROW: Self = Self::Borrow { lead_max_ms: BORROW_LEAD_MAX_MS };

    /// Returns the name in configuration, logs and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Wait(_) => "wait",
            Self::Fail => "fail",
            Self::Borrow { .. } => "borrow",
        }
    }

    /// Returns how far IDs may lead the clock, in milliseconds.
    #[must_use]
    pub const fn lead_max_ms(&self) -> u64 {
        match *self {
            Self::Hold { lead_max_ms } | Self::Borrow { lead_max_ms } => lead_max_ms,
            Self::Wait(_) | Self::Fail => 0,
        }
    }

    /// Returns the one wait that a caller may make until the clock has caught up, if the policy
    /// waits.
    #[must_use]
    pub const fn wait_for(&self) -> Option<WaitFor> {
        match *self {
            Self::Wait(wait_for) => Some(wait_for),
            Self::Hold { .. } | Self::Borrow { .. } | Self::Fail => None,
        }
    }

    /// Returns the limit that a clock `by_ms` behind exceeds, and the milliseconds after which a
    /// retry may succeed.
    pub(super) fn limit_and_retry_ms(&self, by_ms: u64) -> (u64, u64) {
        match *self {
            Self::Hold { lead_max_ms } | Self::Borrow { lead_max_ms } => {
                (lead_max_ms, by_ms.saturating_sub(lead_max_ms))
            }
            Self::Wait(wait_for @ WaitFor::TwiceTheOffset { offset_max_ms }) => {
                (offset_max_ms, wait_for.wait_ms(by_ms).unwrap_or(by_ms))
            }
            Self::Wait(WaitFor::Fixed { .. }) | Self::Fail => (0, by_ms),
        }
    }
}

/// The settings of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policy for a clock rollback.
    pub rollback: Rollback,
    /// Longest lag of an ID behind the clock in milliseconds, so that recent unused ticks serve a
    /// burst at once. Rounded down to whole ticks.
    pub burst_ms: u64,
    /// The sequence number with which a tick begins.
    pub sequence_start: SequenceStart,
    /// Longest wait of a blocking mint, in milliseconds in all.
    pub wait_max_ms: u64,
}

impl Settings {
    /// Hold, no burst span, sequences from 0.
    pub const DEFAULT: Self = Self {
        rollback: Rollback::HOLD,
        burst_ms: 0,
        sequence_start: SequenceStart::Zero,
        wait_max_ms: MINT_WAIT_MAX_MS,
    };

    /// Returns the default settings with another policy.
    #[must_use]
    pub const fn with_rollback(rollback: Rollback) -> Self {
        Self { rollback, ..Self::DEFAULT }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::DEFAULT
    }
}
