//! The ring of last IDs (article 003).

use crate::advance::{Advance, Ordinal, Rules, SequenceStart, State, TickWindow, advance};
use crate::clock::{Clock, Observer, Outcome, Reading};
use crate::layout::{Layout, OutOfRange};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{UnixMillis, Window};

use super::engine::Engine;
use super::error::{MintError, Short};
use super::settings::{HOLD_LEAD_MAX_MS, Rollback, Settings};

/// Number of ticks that the ring remembers. The article's value.
pub const RING_CELLS: usize = 200;

const CLOSED: u64 = 1 << 63;

/// No tick was seen yet.
const NO_TICK: u64 = u64::MAX;

/// A generator that remembers the last ID of each of the last ticks. After a clock rollback,
/// counting continues where the tick left off.
///
/// Cell `n` holds the next ordinal of the latest tick that is `n` modulo the number of cells. A
/// cell only grows, and no two cells share a tick: each ordinal is taken once.
///
/// Differences from the article's version: a lead over the clock is bounded (there, a rollback
/// beyond the ring silently mints future times). A full tick returns an error with the time of the
/// next tick (there, it spins). The window carries over restarts (there, nothing does). The worker
/// number is leased (there, it is random).
///
/// - **Lock-free**.
/// - **Increasing** until the clock steps back; then it steps back too.
/// - **Non-persistent**: a restart needs a window that begins above everything taken.
#[derive(Debug)]
pub struct Ring<C, O = ()> {
    cells: [AtomicU64; RING_CELLS],
    last_tick: AtomicU64,
    lead_max_ms: u64,
    engine: Engine<O>,
    clock: C,
}

impl<C: Clock, O: Observer> Ring<C, O> {
    /// Returns a ring for `worker`'s IDs from `window`. IDs may lead the clock by `lead_max_ms`
    /// ([`HOLD_LEAD_MAX_MS`] if `None`). Each tick begins at `sequence_start`; the tick before it,
    /// from which a number is carried, is 200 ticks earlier.
    ///
    /// # Errors
    /// [`OutOfRange`] when the worker does not fit the layout.
    pub fn new(
        layout: Layout,
        worker: u64,
        lead_max_ms: Option<u64>,
        sequence_start: SequenceStart,
        window: Window,
        clock: C,
        observer: O,
    ) -> Result<Self, OutOfRange> {
        let settings = Settings { sequence_start, ..Settings::with_rollback(Rollback::Fail) };
        let engine = Engine::new(layout, worker, 0, settings, window, observer)?;
        let floor = engine.floor().get();
        Ok(Self {
            cells: core::array::from_fn(|_| AtomicU64::new(floor)),
            last_tick: AtomicU64::new(NO_TICK),
            lead_max_ms: lead_max_ms.unwrap_or(HOLD_LEAD_MAX_MS),
            engine,
            clock,
        })
    }

    /// Mints one ID, without ever waiting.
    ///
    /// # Errors
    /// [`MintError`], with the time after which a retry may help.
    pub fn try_mint(&self) -> Result<u64, MintError> {
        let wall = self.clock.unix_ms();
        let tick = self.tick_at(wall)?;
        if self.last_tick.load(Ordering::Relaxed) != tick {
            return self.mint_in_new_tick();
        }
        self.mint_in(tick, wall).map(|(id, _)| id)
    }

    /// Fills the whole buffer, without ever waiting.
    ///
    /// # Errors
    /// The same as [`Generator::try_fill`](super::Generator::try_fill).
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        for (made, slot) in out.iter_mut().enumerate() {
            *slot = self.try_mint().map_err(|error| Short { made, error })?;
        }
        Ok(())
    }

    /// Extends the window after the store's grant: IDs may be minted up to `mark`.
    pub fn extend_to(&self, mark: UnixMillis) {
        self.engine.extend_to(mark);
    }

    /// Closes the ring for good. Returns the end of everything taken.
    pub fn close(&self) -> UnixMillis {
        for cell in &self.cells {
            cell.fetch_or(CLOSED, Ordering::AcqRel);
        }
        self.taken_until()
    }

    /// Returns the end of the last tick that anything was taken from.
    pub fn taken_until(&self) -> UnixMillis {
        let mut highest = 0;
        for cell in &self.cells {
            highest = highest.max(cell.load(Ordering::Acquire) & !CLOSED);
        }
        self.engine.taken_until(Ordinal::new(highest))
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the layout.
    pub const fn layout(&self) -> &Layout {
        self.engine.shape.layout()
    }

    /// Returns the end of the granted window.
    pub fn mark(&self) -> UnixMillis {
        self.engine.mark()
    }

    fn tick_at(&self, wall: UnixMillis) -> Result<u64, MintError> {
        let epoch = self.layout().epoch();
        match wall.get().checked_sub(epoch.get()) {
            Some(since_ms) => Ok(since_ms.checked_div(self.engine.shape.unit_ms).unwrap_or(0)),
            None => Err(MintError::BeforeEpoch { by_ms: epoch.since(wall) }),
        }
    }

    #[cold]
    fn mint_in_new_tick(&self) -> Result<u64, MintError> {
        let reading: Reading = self.clock.read();
        let step = self.engine.notice(reading);
        let minted = self.tick_at(reading.wall()).and_then(|tick| {
            self.last_tick.store(tick, Ordering::Relaxed);
            self.mint_in(tick, reading.wall())
        });
        let outcome = match minted {
            Ok((_, outcome)) => outcome,
            Err(MintError::ClockBehind { .. }) => Outcome::Refused,
            Err(_) => Outcome::Unaffected,
        };
        self.engine.report_as(step, outcome, "ring");
        minted.map(|(id, _)| id)
    }

    fn mint_in(&self, tick: u64, wall: UnixMillis) -> Result<(u64, Outcome), MintError> {
        let cells = u64::try_from(RING_CELLS).unwrap_or(u64::MAX);
        let index = usize::try_from(tick.checked_rem(cells).unwrap_or(0)).unwrap_or(0);
        let Some(cell) = self.cells.get(index) else { return Err(MintError::Closed) };
        let mut next = cell.load(Ordering::Acquire);
        loop {
            if next >= CLOSED {
                return Err(MintError::Closed);
            }
            let (first, outcome) = self.decide(Ordinal::new(next), tick, wall)?;
            let after = first.get().saturating_add(1);
            match cell.compare_exchange_weak(next, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok((self.engine.shape.id(first), outcome)),
                Err(now) => next = now,
            }
        }
    }

    /// Returns the cell's next ordinal: in the clock's tick, or in the later tick that the cell has
    /// reached.
    fn decide(
        &self,
        next: Ordinal,
        tick: u64,
        wall: UnixMillis,
    ) -> Result<(Ordinal, Outcome), MintError> {
        let rules: &Rules = &self.engine.rules;
        let window: TickWindow = self.engine.window();
        let reached = next.get().checked_sub(1).map_or(0, |last| Ordinal::new(last).tick(rules));
        // A cell at the floor has minted nothing: a clock behind it is behind the window.
        let reached = if next == self.engine.floor() { tick } else { reached };
        let lead_ms = self.engine.shape.start_of(reached).since(wall);
        if reached > tick && lead_ms > self.lead_max_ms {
            return Err(self.behind(lead_ms));
        }
        match advance(State::at(next), reached.max(tick), 1, window, rules) {
            Advance::Issued { first, .. } => {
                let outcome = if reached > tick { Outcome::Led } else { Outcome::Unaffected };
                Ok((first, outcome))
            }
            Advance::TickFull { .. } => {
                let next = self.engine.shape.start_of(tick.saturating_add(1));
                Err(MintError::TickFull { next, retry_after_ms: next.since(wall).max(1) })
            }
            Advance::ClockBehind { by_ticks } => {
                Err(self.behind(by_ticks.saturating_mul(self.engine.shape.unit_ms)))
            }
            Advance::WindowSpent => Err(MintError::WindowSpent { mark: self.engine.mark() }),
            Advance::EpochSpent => Err(MintError::EpochSpent { end: self.layout().end() }),
        }
    }

    fn behind(&self, by_ms: u64) -> MintError {
        let limit_ms = self.lead_max_ms;
        let retry_after_ms = by_ms.saturating_sub(limit_ms).max(1);
        MintError::ClockBehind { by_ms, limit_ms, retry_after_ms }
    }
}
