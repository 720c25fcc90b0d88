//! A handle that mints snowflake IDs.

use std::sync::Arc;

use snowmint_core::generator::WaitPolicy;
use snowmint_core::{Clock as _, ElapsedMillis, Layout};

use crate::stored::StoreBacked;
use crate::values::{Decoded, Short, Stats};
use crate::worker::Worker;
use snowmint_coord::{Error, Result};

/// Mints snowflake IDs. Cheap to clone for every thread and task; all clones mint from one
/// generator.
///
/// - **Strictly increasing** over all clones, whatever the clock does. (Two policies of
///   store-backed sources, *clock sequence* and *ring*, give up order when the clock is set back.)
/// - **Bounded**: no call waits longer than its stated bound.
/// - **Exclusive**: no other process mints with its worker, within the scope of the mark file or
///   the store.
///
/// [`close`](Self::close) releases a worker that you named; dropping the last clone does the same,
/// but can only log an error. If a store assigned the worker, close the store's handle.
///
/// After a fork, the parent keeps the handle and the child gets `Unsupported`: open handles after
/// forking.
#[derive(Clone, Debug)]
pub struct Snowflake {
    pub(crate) backend: Backend,
}

/// Keeper of the worker and its window.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// A mark file.
    Worker(Arc<Worker>),
    /// A store.
    StoreBacked(Arc<StoreBacked>),
}

impl Snowflake {
    pub(crate) fn of_worker(worker: Worker) -> Self {
        Self { backend: Backend::Worker(Arc::new(worker)) }
    }

    pub(crate) fn of_source(stored: StoreBacked) -> Self {
        Self { backend: Backend::StoreBacked(Arc::new(stored)) }
    }

    /// Mints one ID without waiting. For a worker that you named, one caller writes the mark file
    /// about every quarter of a second.
    ///
    /// # Errors
    /// - `TickFull`, `ClockBehind`, `EpochSpent` and `Closed` from the generator.
    /// - `WindowSpent` and `Unavailable` while the store is unreachable.
    /// - `ClockAhead` after a clock step forward.
    /// - The system's error when the mark file cannot be written.
    #[inline]
    pub fn try_mint(&self) -> Result<u64> {
        match &self.backend {
            Backend::Worker(worker) => worker.try_mint(),
            Backend::StoreBacked(stored) => stored.try_mint(),
        }
    }

    /// Mints one ID, waiting for a free tick. The wait is at most
    /// [`Settings::wait_max_ms`](snowmint_core::Settings::wait_max_ms) (by default 100 ms) and two
    /// ticks. Never waits for a store.
    ///
    /// # Errors
    /// Same as [`try_mint`](Self::try_mint), when the time is up or waiting cannot help.
    #[inline]
    pub fn mint(&self) -> Result<u64> {
        match &self.backend {
            Backend::Worker(worker) => worker.mint(),
            Backend::StoreBacked(stored) => {
                stored.try_mint().or_else(|_| stored.mint_by(stored.deadline()))
            }
        }
    }

    /// Mints one ID, waiting for a free tick until `deadline` of [`elapsed`](Self::elapsed) at
    /// most.
    ///
    /// # Errors
    /// Same as [`mint`](Self::mint).
    pub fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64> {
        match &self.backend {
            Backend::Worker(worker) => {
                let generator = &worker.generator;
                let wait_policy = WaitPolicy::until(deadline, generator.settings());
                worker.mint_slowly(generator.try_mint(), wait_policy, || generator.try_mint())
            }
            Backend::StoreBacked(stored) => stored.mint_by(deadline),
        }
    }

    /// Mints one ID, waiting as [`mint`](Self::mint) does but without holding a thread. Needs a
    /// Tokio runtime with time enabled. For a global-order source that servers mint
    /// (`snowmint://`), this call asks the servers, for up to
    /// [`Options::wait_max_ms`](crate::options::Options::wait_max_ms). `mint` and `fill` ask them only in a
    /// program without a runtime ([`open_blocking`](crate::open_blocking)).
    ///
    /// # Errors
    /// Same as [`mint`](Self::mint).
    pub async fn mint_async(&self) -> Result<u64> {
        match &self.backend {
            Backend::Worker(worker) => worker.mint_async().await,
            Backend::StoreBacked(stored) => stored.mint_async().await,
        }
    }

    /// Fills the whole buffer with increasing IDs, waiting as [`mint`](Self::mint) does for each
    /// tick that it needs.
    ///
    /// # Errors
    /// [`Short`], with the number of IDs written and the reason for the end.
    pub fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        match &self.backend {
            Backend::Worker(worker) => worker.fill(out),
            Backend::StoreBacked(stored) => stored.fill(out),
        }
    }

    /// Fills the whole buffer with increasing IDs without waiting.
    ///
    /// # Errors
    /// Same as [`fill`](Self::fill).
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        match &self.backend {
            Backend::Worker(worker) => worker.try_fill(out),
            Backend::StoreBacked(stored) => stored.try_fill(out),
        }
    }

    /// Splits an ID into its fields, after removing a disguise.
    ///
    /// # Errors
    /// `Invalid` when the ID has more bits than the layout.
    pub fn decode(&self, id: u64) -> Result<Decoded> {
        match &self.backend {
            Backend::Worker(_) => {
                let layout = self.layout();
                let parts = layout.unpack(id).map_err(|error| Error::invalid(error.to_string()))?;
                Ok(Decoded::new(parts, layout.start_of(parts.tick)))
            }
            Backend::StoreBacked(stored) => stored.decode(id),
        }
    }

    /// Returns the layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        match &self.backend {
            Backend::Worker(worker) => worker.generator.layout(),
            Backend::StoreBacked(stored) => stored.layout(),
        }
    }

    /// Returns the elapsed time in which [`mint_by`](Self::mint_by) takes its deadline.
    #[must_use]
    pub fn elapsed(&self) -> ElapsedMillis {
        match &self.backend {
            Backend::Worker(worker) => worker.generator.clock().read().elapsed(),
            Backend::StoreBacked(stored) => stored.elapsed(),
        }
    }

    /// Returns the last tick taken, the end of the window, the lead of the last tick over the
    /// clock, and the number of clock steps.
    #[must_use]
    pub fn stats(&self) -> Stats {
        match &self.backend {
            Backend::Worker(worker) => {
                let stats = worker.generator.stats();
                Stats {
                    taken_until: Some(stats.taken_until),
                    mark: Some(stats.mark),
                    lead_ms: stats.lead_ms,
                    steps_back: stats.steps_back,
                    steps_ahead: stats.steps_ahead,
                }
            }
            Backend::StoreBacked(stored) => stored.stats(),
        }
    }

    /// Closes the generator for good, for all clones and lanes, and releases the worker: the next
    /// process to open it continues right after the last ID. Another call does nothing.
    ///
    /// # Errors
    /// An error when the mark file cannot be written. The worker is free all the same, with a mark
    /// a little ahead, as after a crash. `Unsupported` for a worker that a store assigned: close
    /// [`Mint`](crate::Mint), which holds it.
    pub fn close(&self) -> Result<()> {
        match &self.backend {
            Backend::Worker(worker) => worker.close(),
            Backend::StoreBacked(stored) => Err(stored.not_closed_here()),
        }
    }
}
