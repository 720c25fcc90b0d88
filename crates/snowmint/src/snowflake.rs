//! A handle that mints snowflake IDs.

use std::sync::Arc;

use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::generator::{Patience, Rest, Stats};
use snowmint_core::{Clock as _, ElapsedMillis, Layout, Refusal, Tick, UnixMillis};

use crate::builder::Builder;
use crate::lane::Lane;
use crate::worker::Worker;
use crate::{Error, Result};

/// Mints snowflake IDs. A cheap clone for every thread and task; all clones mint from one generator.
///
/// - **Strictly increasing** over all clones, whatever the clock does.
/// - **Bounded**: nothing waits longer than it says.
/// - **Exclusive**: nobody else mints with its worker, as far as the mark file or the store reaches.
///
/// [`close`](Self::close) gives the worker back. Dropping the last clone does the same, and can only
/// log what goes wrong.
///
/// A process that forks keeps the handle; its child's is refused, from the child's first look at the
/// clock on, which is at the next tick. In the rest of the tick of the fork it may repeat an ID: open
/// handles after forking.
#[derive(Clone, Debug)]
pub struct Snowflake {
    worker: Arc<Worker>,
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

/// A batch that could not be minted whole. What was minted is at the start of the buffer, and counts.
#[derive(Clone, Debug)]
pub struct Short {
    /// How many IDs were written.
    pub made: usize,
    /// Why there are no more.
    pub why: Error,
}

impl Snowflake {
    /// For a worker that you name.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn of_worker(worker: Worker) -> Self {
        Self { worker: Arc::new(worker) }
    }

    /// One ID, without waiting for a tick or for anybody. About every quarter of a second the caller
    /// that is due writes the mark file.
    ///
    /// # Errors
    /// `TickFull`, `ClockBehind`, `EpochSpent`, `Closed` as the generator says; `ClockAhead` after a
    /// jump of the clock; what the system says when the mark file cannot be written.
    #[inline]
    pub fn try_mint(&self) -> Result<u64> {
        match self.worker.generator.try_mint() {
            Ok(id) if self.worker.generator.clock().is_calm() => Ok(id),
            other => self.worker.see_to(other)?.map_err(|why| self.worker.refused(why)),
        }
    }

    /// One ID, waiting for a free tick at most as long as
    /// [`Settings::wait_max_ms`](snowmint_core::Settings::wait_max_ms) says (100 ms unless told
    /// otherwise), and two ticks.
    ///
    /// # Errors
    /// As [`try_mint`](Self::try_mint), when the time is up or no wait helps.
    #[inline]
    pub fn mint(&self) -> Result<u64> {
        match self.worker.generator.try_mint() {
            Ok(id) if self.worker.generator.clock().is_calm() => Ok(id),
            other => {
                let generator = &self.worker.generator;
                self.worker.mint_slowly(other, generator.patience(), || generator.try_mint())
            }
        }
    }

    /// One ID, waiting for a free tick until `deadline` of [`elapsed`](Self::elapsed) at most.
    ///
    /// # Errors
    /// As [`mint`](Self::mint).
    pub fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64> {
        let generator = &self.worker.generator;
        let patience = Patience::until(deadline, generator.settings());
        self.worker.mint_slowly(generator.try_mint(), patience, || generator.try_mint())
    }

    /// One ID, waiting as [`mint`](Self::mint) does without holding a thread. Needs a Tokio runtime
    /// with time enabled.
    ///
    /// # Errors
    /// As [`mint`](Self::mint).
    pub async fn mint_async(&self) -> Result<u64> {
        let generator = &self.worker.generator;
        let mut minted = generator.try_mint();
        if let Ok(id) = minted
            && generator.clock().is_calm()
        {
            return Ok(id);
        }
        let mut patience = generator.patience();
        loop {
            // The mark file is written on a thread that may block.
            let worker = Arc::clone(&self.worker);
            let attended = tokio::task::spawn_blocking(move || worker.see_to(minted)).await;
            let why = match attended {
                Ok(result) => match result? {
                    Ok(id) => return Ok(id),
                    Err(why) => why,
                },
                Err(error) => {
                    let what = "the runtime ended while the mark file was written";
                    return Err(Error::internal("mint", what).with_source(error));
                }
            };
            let reading = generator.clock().read();
            match patience.rest(why, reading.elapsed()).map_err(|why| self.worker.refused(why))? {
                Rest::Until { wall, at_most_ms } => {
                    let left_ms = std::cmp::max(wall.since(reading.wall()), 1);
                    BootTimer.sleep_ms(std::cmp::min(left_ms, at_most_ms)).await;
                }
                Rest::For { ms } => BootTimer.sleep_ms(ms).await,
            }
            minted = generator.try_mint();
        }
    }

    /// Fills the whole buffer with increasing IDs, waiting as [`mint`](Self::mint) does for each tick
    /// that it needs.
    ///
    /// # Errors
    /// [`Short`], which says how many IDs were written and why there are no more.
    pub fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.fill_with(out, |why| {
            let rest = self
                .worker
                .generator
                .patience()
                .rest(why, self.elapsed())
                .map_err(|why| self.worker.refused(why))?;
            rest.take(self.worker.generator.clock());
            Ok(())
        })
    }

    /// Fills the whole buffer with increasing IDs, without waiting for a tick or for anybody.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        self.fill_with(out, |why| Err(self.worker.refused(why)))
    }

    fn fill_with(
        &self,
        out: &mut [u64],
        mut wait: impl FnMut(Refusal) -> Result<()>,
    ) -> Result<(), Short> {
        let mut made = 0;
        // A window that is spent is extended once for each tick that it is spent for.
        let mut spent_at = None;
        while let Some(rest) = out.get_mut(made..) {
            let filled = self.worker.generator.try_fill(rest);
            if !self.worker.generator.clock().is_calm() {
                self.worker.attend().map_err(|why| Short { made, why })?;
            }
            let Err(short) = filled else { break };
            made = made.saturating_add(short.made);
            match short.why {
                Refusal::WindowSpent { mark } if spent_at != Some(mark) => {
                    spent_at = Some(mark);
                    self.worker.extend_past(mark)
                }
                why => wait(why),
            }
            .map_err(|why| Short { made, why })?;
        }
        Ok(())
    }

    /// A lane for one thread: it takes `block` IDs at a time and counts locally. IDs increase within
    /// the lane; between lanes, by tick.
    #[must_use]
    pub fn lane(&self, block: usize) -> Lane {
        Lane::new(Arc::clone(&self.worker), block)
    }

    /// Takes an ID apart.
    ///
    /// # Errors
    /// `Invalid` when the ID has more bits than the layout.
    pub fn decode(&self, id: u64) -> Result<Decoded> {
        let layout = self.layout();
        let parts =
            layout.unpack(id).map_err(|error| Error::invalid("decode", error.to_string()))?;
        Ok(Decoded {
            time: layout.start_of(parts.tick),
            tick: parts.tick,
            clock: parts.clock,
            worker: parts.worker,
            sequence: parts.sequence,
        })
    }

    /// The layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.worker.generator.layout()
    }

    /// The elapsed time that [`mint_by`](Self::mint_by) counts in.
    #[must_use]
    pub fn elapsed(&self) -> ElapsedMillis {
        self.worker.generator.clock().read().elapsed()
    }

    /// How far IDs were taken, where the window ends, how far the last tick leads the clock, and how
    /// often the clock was set.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.worker.generator.stats()
    }

    /// Closes the generator for good, for all clones and lanes, and gives the worker back: the next
    /// process to open it goes on right after the last ID. Another call does nothing.
    ///
    /// # Errors
    /// When the mark file cannot be written. The worker is free all the same, with a mark that is a
    /// little ahead, as after a crash.
    pub fn close(&self) -> Result<()> {
        self.worker.close()
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
