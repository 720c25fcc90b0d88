//! A handle that mints snowflake IDs.

use std::sync::Arc;

use snowmint_core::generator::Patience;
use snowmint_core::{Clock as _, ElapsedMillis, Layout, Parts, Tick, UnixMillis};

use crate::builder::Builder;
use crate::lane::Lane;
use crate::stored::Stored;
use crate::worker::Worker;
use crate::{Error, Result};

/// Mints snowflake IDs. A cheap clone for every thread and task; all clones mint from one generator.
///
/// - **Strictly increasing** over all clones, whatever the clock does. (Two policies of a store's
///   sources, *clock sequence* and *ring*, give up order when the clock goes back.)
/// - **Bounded**: nothing waits longer than it says.
/// - **Exclusive**: nobody else mints with its worker, as far as the mark file or the store reaches.
///
/// With a worker that you named, [`close`](Self::close) gives it back; dropping the last clone does the
/// same, and can only log what goes wrong. With one that a store named, close the store's handle.
///
/// A process that forks keeps the handle; its child's is refused (`Unsupported`): open handles after
/// forking.
#[derive(Clone, Debug)]
pub struct Snowflake {
    pub(crate) back: Back,
}

/// Who says what may be minted.
#[derive(Clone, Debug)]
pub(crate) enum Back {
    /// A mark file.
    Worker(Arc<Worker>),
    /// A store.
    Stored(Arc<Stored>),
}

/// The values inside one ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// When the ID's tick began.
    pub time: UnixMillis,
    /// Ticks since the layout's epoch.
    pub tick: Tick,
    /// The clock sequence; 0 where the layout has none.
    pub clock: u64,
    /// Who minted the ID.
    pub worker: u64,
    /// The counter within the tick.
    pub sequence: u64,
}

/// Where a handle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The end of the last tick that anything was taken from; none while a store has not named a
    /// worker.
    pub taken_until: Option<UnixMillis>,
    /// Where the window ends, of a worker that you named.
    pub mark: Option<UnixMillis>,
    /// How far the last tick taken lies ahead of the clock now.
    pub lead_ms: u64,
    /// Steps back met so far.
    pub steps_back: u64,
    /// Steps ahead met so far.
    pub steps_ahead: u64,
}

/// A batch that could not be minted whole. What was minted is at the start of the buffer, and counts.
#[derive(Clone, Debug)]
pub struct Short {
    /// How many IDs were written.
    pub made: usize,
    /// Why there are no more.
    pub why: Error,
}

impl Decoded {
    pub(crate) fn new(parts: Parts, time: UnixMillis) -> Self {
        let Parts { tick, clock, worker, sequence } = parts;
        Self { time, tick, clock, worker, sequence }
    }
}

impl Snowflake {
    /// For a worker that you name; [`open`](crate::open) a store to have it named.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn of_worker(worker: Worker) -> Self {
        Self { back: Back::Worker(Arc::new(worker)) }
    }

    pub(crate) fn of_source(stored: Stored) -> Self {
        Self { back: Back::Stored(Arc::new(stored)) }
    }

    /// One ID, without waiting for a tick or for anybody. With a worker that you named, the caller that
    /// is due writes the mark file, about every quarter of a second.
    ///
    /// # Errors
    /// `TickFull`, `ClockBehind`, `EpochSpent`, `Closed` as the generator says; `WindowSpent` and
    /// `Unavailable` while the store is away; `ClockAhead` after a jump of the clock; what the system
    /// says when the mark file cannot be written.
    #[inline]
    pub fn try_mint(&self) -> Result<u64> {
        match &self.back {
            Back::Worker(worker) => worker.try_mint(),
            Back::Stored(stored) => stored.try_mint(),
        }
    }

    /// One ID, waiting for a free tick at most as long as
    /// [`Settings::wait_max_ms`](snowmint_core::Settings::wait_max_ms) says (100 ms unless told
    /// otherwise), and two ticks. Never waits for a store.
    ///
    /// # Errors
    /// As [`try_mint`](Self::try_mint), when the time is up or no wait helps.
    #[inline]
    pub fn mint(&self) -> Result<u64> {
        match &self.back {
            Back::Worker(worker) => worker.mint(),
            Back::Stored(stored) => {
                stored.try_mint().or_else(|_| stored.mint_by(stored.deadline()))
            }
        }
    }

    /// One ID, waiting for a free tick until `deadline` of [`elapsed`](Self::elapsed) at most.
    ///
    /// # Errors
    /// As [`mint`](Self::mint).
    pub fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64> {
        match &self.back {
            Back::Worker(worker) => {
                let generator = &worker.generator;
                let patience = Patience::until(deadline, generator.settings());
                worker.mint_slowly(generator.try_mint(), patience, || generator.try_mint())
            }
            Back::Stored(stored) => stored.mint_by(deadline),
        }
    }

    /// One ID, waiting as [`mint`](Self::mint) does without holding a thread. Needs a Tokio runtime
    /// with time enabled. Of a source of global order that servers mint (`snowmint://`), this is the form
    /// that asks them, for as long as [`Options::wait_max_ms`](crate::Options::wait_max_ms) allows;
    /// `mint` and `fill` do so in a program without a runtime ([`open_blocking`](crate::open_blocking)).
    ///
    /// # Errors
    /// As [`mint`](Self::mint).
    pub async fn mint_async(&self) -> Result<u64> {
        match &self.back {
            Back::Worker(worker) => worker.mint_async().await,
            Back::Stored(stored) => stored.mint_async().await,
        }
    }

    /// Fills the whole buffer with increasing IDs, waiting as [`mint`](Self::mint) does for each tick
    /// that it needs.
    ///
    /// # Errors
    /// [`Short`], which says how many IDs were written and why there are no more.
    pub fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        match &self.back {
            Back::Worker(worker) => worker.fill(out),
            Back::Stored(stored) => stored.fill(out),
        }
    }

    /// Fills the whole buffer with increasing IDs, without waiting for a tick or for anybody.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        match &self.back {
            Back::Worker(worker) => worker.try_fill(out),
            Back::Stored(stored) => stored.try_fill(out),
        }
    }

    /// A lane for one thread: with a worker that you named, it takes `block` IDs at a time and counts
    /// locally. IDs increase within the lane; between lanes, by tick.
    #[must_use]
    pub fn lane(&self, block: usize) -> Lane {
        Lane::new(self, block)
    }

    /// Takes an ID apart; a disguise is taken off first.
    ///
    /// # Errors
    /// `Invalid` when the ID has more bits than the layout.
    pub fn decode(&self, id: u64) -> Result<Decoded> {
        match &self.back {
            Back::Worker(_) => {
                let layout = self.layout();
                let parts = layout
                    .unpack(id)
                    .map_err(|error| Error::invalid("decode", error.to_string()))?;
                Ok(Decoded::new(parts, layout.start_of(parts.tick)))
            }
            Back::Stored(stored) => stored.decode(id),
        }
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        match &self.back {
            Back::Worker(worker) => worker.generator.layout(),
            Back::Stored(stored) => stored.layout(),
        }
    }

    /// The elapsed time that [`mint_by`](Self::mint_by) counts in.
    #[must_use]
    pub fn elapsed(&self) -> ElapsedMillis {
        match &self.back {
            Back::Worker(worker) => worker.generator.clock().read().elapsed(),
            Back::Stored(stored) => stored.elapsed(),
        }
    }

    /// How far IDs were taken, where the window ends, how far the last tick leads the clock, and how
    /// often the clock was set.
    #[must_use]
    pub fn stats(&self) -> Stats {
        match &self.back {
            Back::Worker(worker) => {
                let stats = worker.generator.stats();
                Stats {
                    taken_until: Some(stats.taken_until),
                    mark: Some(stats.mark),
                    lead_ms: stats.lead_ms,
                    steps_back: stats.steps_back,
                    steps_ahead: stats.steps_ahead,
                }
            }
            Back::Stored(stored) => stored.stats(),
        }
    }

    /// Closes the generator for good, for all clones and lanes, and gives the worker back: the next
    /// process to open it goes on right after the last ID. Another call does nothing.
    ///
    /// # Errors
    /// When the mark file cannot be written. The worker is free all the same, with a mark that is a
    /// little ahead, as after a crash. `Unsupported` for a worker that a store named: close
    /// [`Mint`](crate::Mint), which holds it.
    pub fn close(&self) -> Result<()> {
        match &self.back {
            Back::Worker(worker) => worker.close(),
            Back::Stored(stored) => Err(stored.not_closed_here()),
        }
    }
}

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "only {} IDs of the batch were minted", self.made)
    }
}

impl std::error::Error for Short {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.why)
    }
}

impl From<Short> for Error {
    /// Why there were no more: for callers to whom part of a batch is of no use.
    fn from(short: Short) -> Self {
        short.why
    }
}
