//! What a generator may do, with every limit and default in one table.
//!
//! | policy | limit | default | at the limit | beyond it |
//! |---|---|---|---|---|
//! | hold | lead over the clock | 5000 ms | ticks flow at half speed | `ClockBehind` |
//! | wait | offset | 5 ms (Leaf) | waits twice the offset, looks once more | `ClockBehind` |
//! | wait, fixed | none | 3 ms (article 000) | waits 3 ms, looks once more | `ClockBehind` |
//! | fail | none | 0 ms (Twitter, Baidu) | | `ClockBehind` |
//! | borrow | lead over the clock | 10000 ms | ticks are spent as needed | `TickFull` or `ClockBehind` |
//! | clock sequence | values | all of the layout's | the next value whose mark lies below | `NoClockValue` |
//! | ring | lead over the clock | 5000 ms | the cell's own tick goes on | `ClockBehind` |

use crate::advance::SequenceStart;

/// Hold: how far ticks may lead the clock.
pub const HOLD_LEAD_MAX_MS: u64 = 5_000;
/// Wait: the largest offset worth waiting for, inclusive. Leaf's value.
pub const WAIT_OFFSET_MAX_MS: u64 = 5;
/// Wait, fixed: how long. Article 000's value.
pub const WAIT_FIXED_MS: u64 = 3;
/// Borrow: how far ticks may lead the clock. Baidu's original has no such limit.
pub const BORROW_LEAD_MAX_MS: u64 = 10_000;
/// How long a blocking mint waits for a free tick; at least two ticks of the layout.
pub const MINT_WAIT_MAX_MS: u64 = 100;

/// How long [`Rollback::Wait`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Twice the offset, when the offset is at most `offset_max_ms` (inclusive).
    TwiceTheOffset {
        /// The largest offset worth waiting for.
        offset_max_ms: u64,
    },
    /// Always the same time, whatever the offset.
    Fixed {
        /// How long.
        wait_ms: u64,
    },
}

/// What to do when the clock has gone back behind the last ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rollback {
    /// Ticks keep flowing from elapsed time at half speed until the wall clock has caught up: no
    /// error, no wait, order kept.
    Hold {
        /// How far ticks may lead the clock; beyond it [`Refusal::ClockBehind`](super::Refusal).
        lead_max_ms: u64,
    },
    /// A blocking mint waits once and looks again; others get an error that says how long to wait.
    Wait(WaitFor),
    /// An error until the clock has caught up.
    Fail,
    /// Ticks are spent as they are needed, ahead of the clock, as Baidu's cached generator does.
    Borrow {
        /// How far ticks may lead the clock.
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

    /// The name in configuration, logs and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hold { .. } => "hold",
            Self::Wait(_) => "wait",
            Self::Fail => "fail",
            Self::Borrow { .. } => "borrow",
        }
    }
}

/// How a generator behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What to do when the clock goes back.
    pub rollback: Rollback,
    /// How far an ID may lag the clock, so that unused ticks just past serve a burst at once. Rounded
    /// down to whole ticks.
    pub burst_ms: u64,
    /// With which sequence number a tick begins.
    pub sequence_start: SequenceStart,
    /// How long a blocking mint waits, in all.
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

    /// The default settings with another policy.
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
