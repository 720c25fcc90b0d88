//! Values that every handle returns.

use snowmint_coord::Error;
use snowmint_core::{Parts, Tick, UnixMillis};

/// The values inside one ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Start of the ID's tick.
    pub time: UnixMillis,
    /// Ticks since the layout's epoch.
    pub tick: Tick,
    /// The clock sequence; 0 where the layout has none.
    pub clock: u64,
    /// Number of the worker that minted the ID.
    pub worker: u64,
    /// The counter within the tick.
    pub sequence: u64,
}

impl Decoded {
    pub(crate) fn new(parts: Parts, time: UnixMillis) -> Self {
        let Parts { tick, clock, worker, sequence } = parts;
        Self { time, tick, clock, worker, sequence }
    }
}

/// State of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// End of the last tick taken from; none while a store has not assigned a worker.
    pub taken_until: Option<UnixMillis>,
    /// End of the window; only for a worker that you named.
    pub mark: Option<UnixMillis>,
    /// Milliseconds by which the last tick taken is ahead of the clock now.
    pub lead_ms: u64,
    /// Clock steps back met so far.
    pub steps_back: u64,
    /// Clock steps forward met so far.
    pub steps_ahead: u64,
}

/// A batch that could not be minted whole. The IDs at the start of the buffer are valid.
#[derive(Clone, Debug)]
pub struct Short {
    /// Number of IDs written.
    pub made: usize,
    /// Reason why the batch ended.
    pub error: Error,
}

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "only {} IDs of the batch were minted", self.made)
    }
}

impl std::error::Error for Short {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<Short> for Error {
    /// Returns the reason for the end, for callers that have no use for part of a batch.
    fn from(short: Short) -> Self {
        short.error
    }
}
