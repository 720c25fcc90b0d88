//! The generator that threads share.

use crate::advance::{Ordinal, State};
use crate::clock::{Clock, Observer, Outcome, Reading};
use crate::layout::{Layout, OutOfRange};
use crate::sync::{AtomicU64, Ordering, Padded};
use crate::time::{UnixMillis, Window};

use super::engine::{Engine, Grant};
use super::lane::Lane;
use super::refusal::{Refusal, Short};
use super::settings::Settings;
use super::shape::Shape;

/// Ordinals from here on belong to a closed generator. Layouts end below: a tick and its sequence
/// have at most 63 bits together.
const CLOSED: u64 = 1 << 63;

/// No wall time opens the fast path.
const SHUT: u64 = 1 << 63;

/// How many IDs are taken at most without a look at the clock behind a cache.
pub const GRANT_MAX: u64 = 1 << 16;

/// A generator for any number of threads.
///
/// - **Lock-free**: a thread that loses a race has seen another one win.
/// - **Strictly increasing** over all threads, whatever the clock does.
/// - **Non-persistent**: a restart needs a window that begins above everything taken.
///
/// While the clock stays within a tick, threads count by one `fetch_add` inside a range that
/// [`advance`](crate::advance()) granted; everything else goes through `advance`.
#[derive(Debug)]
pub struct Generator<C, O = ()> {
    /// The next ordinal: the one word that all threads write.
    next: Padded<AtomicU64>,
    hot: Padded<Hot>,
    engine: Engine<O>,
    clock: C,
}

/// Read by every mint, written once a tick.
#[derive(Debug)]
struct Hot {
    /// The wall time at which the fast path opened; it holds for one unit from there.
    open_from_ms: AtomicU64,
    /// Ordinals below are granted. Only grows.
    limit: AtomicU64,
}

/// Ordinals of one tick that were taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) first: Ordinal,
    /// At most [`GRANT_MAX`].
    pub(super) count: u64,
    /// The wall time from which, for one unit, they are fresh.
    pub(super) open_from_ms: u64,
}

/// Where a generator stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The end of the last tick that anything was taken from.
    pub taken_until: UnixMillis,
    /// Where the granted window ends.
    pub mark: UnixMillis,
    /// How far the last tick taken lies ahead of the clock now.
    pub lead_ms: u64,
    /// Steps back met so far.
    pub steps_back: u64,
    /// Steps ahead met so far.
    pub steps_ahead: u64,
}

/// The generator's clock, for a [`Refresher`](crate::clock::CachedClock) of it.
impl<C, O> AsRef<C> for Generator<C, O> {
    fn as_ref(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock> Generator<C> {
    /// A generator of `worker`'s IDs from `window`, that reports clock steps only in its statistics.
    ///
    /// # Errors
    /// [`OutOfRange`] when the worker does not fit the layout.
    pub fn new(
        layout: Layout,
        worker: u64,
        settings: Settings,
        window: Window,
        clock: C,
    ) -> Result<Self, OutOfRange> {
        Self::with_observer(layout, worker, 0, settings, window, clock, ())
    }
}

impl<C: Clock, O: Observer> Generator<C, O> {
    /// A generator with a clock value (0 where the layout has no clock bits) that tells `observer`
    /// of every clock step.
    ///
    /// # Errors
    /// [`OutOfRange`] when the worker or the clock value does not fit the layout.
    pub fn with_observer(
        layout: Layout,
        worker: u64,
        clock_value: u64,
        settings: Settings,
        window: Window,
        clock: C,
        observer: O,
    ) -> Result<Self, OutOfRange> {
        let engine = Engine::new(layout, worker, clock_value, settings, window, observer)?;
        let floor = engine.floor().get();
        Ok(Self {
            next: Padded(AtomicU64::new(floor)),
            hot: Padded(Hot { open_from_ms: AtomicU64::new(SHUT), limit: AtomicU64::new(floor) }),
            engine,
            clock,
        })
    }

    /// One ID, without ever waiting.
    ///
    /// # Errors
    /// [`Refusal`], which says when another try may help.
    #[inline]
    pub fn try_mint(&self) -> Result<u64, Refusal> {
        match self.try_open() {
            Some(id) => Ok(id),
            None => self.take(1).map(|block| self.engine.shape.id(block.first.get())),
        }
    }

    /// Fills the whole buffer with increasing IDs, without ever waiting.
    ///
    /// # Errors
    /// [`Short`], which says how many IDs were written and why there are no more.
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let mut made = 0;
        while let Some(rest) = out.get_mut(made..)
            && !rest.is_empty()
        {
            let block = self.take_block(rest.len()).map_err(|why| Short { made, why })?;
            // At most the length that was asked for.
            let count = usize::try_from(block.count).unwrap_or(rest.len());
            self.engine.shape.write(block.first, rest.get_mut(..count).unwrap_or_default());
            made = made.saturating_add(count);
        }
        Ok(())
    }

    /// A lane for the calling thread: it takes `block` IDs at a time and counts locally.
    pub fn lane(&self, block: usize) -> Lane<&Self> {
        Lane::new(self, block)
    }

    /// The store granted more: IDs may be minted up to `mark`. Never takes anything back.
    pub fn extend_to(&self, mark: UnixMillis) {
        self.engine.extend_to(mark);
    }

    /// Closes the generator for good. Answers the end of everything taken: blocks, lanes and calls in
    /// progress count as taken. Another call answers the same or later.
    pub fn close(&self) -> UnixMillis {
        self.hot.0.open_from_ms.store(SHUT, Ordering::Relaxed);
        let mut next = self.next.0.load(Ordering::Acquire);
        while next < CLOSED {
            match self.next.0.compare_exchange_weak(
                next,
                CLOSED.saturating_add(next),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return self.engine.taken_until(Ordinal::new(next)),
                Err(now) => next = now,
            }
        }
        // Late counters have added to it: later than the truth, and safe.
        self.engine.taken_until(Ordinal::new(next.saturating_sub(CLOSED)))
    }

    /// The end of the last tick that anything was taken from.
    pub fn taken_until(&self) -> UnixMillis {
        let next = self.next.0.load(Ordering::Acquire);
        self.engine.taken_until(Ordinal::new(if next >= CLOSED { next ^ CLOSED } else { next }))
    }

    /// The layout.
    pub const fn layout(&self) -> &Layout {
        self.engine.shape.layout()
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Looks at the clock, so that a step is reported even while nobody mints.
    pub fn check_clock(&self) {
        let step = self.engine.notice(self.clock.read());
        self.engine.report_as(step, Outcome::Unaffected, self.engine.settings.rollback.name());
    }

    /// Where the generator stands.
    pub fn stats(&self) -> Stats {
        let taken_until = self.taken_until();
        let (steps_back, steps_ahead) = self.engine.steps();
        let last = taken_until.saturating_sub(self.engine.shape.unit_ms);
        Stats {
            taken_until,
            mark: self.engine.mark(),
            lead_ms: last.since(self.clock.read().wall()),
            steps_back,
            steps_ahead,
        }
    }

    /// One ID of the range that is open, if any.
    #[inline]
    pub(super) fn try_open(&self) -> Option<u64> {
        self.open_since()?;
        // Relaxed: the word alone decides who gets an ordinal. `limit` only grows, so a newer one
        // admits only ordinals that were granted.
        let ordinal = self.next.0.fetch_add(1, Ordering::Relaxed);
        if ordinal < self.hot.0.limit.load(Ordering::Relaxed) {
            return Some(self.engine.shape.id(ordinal));
        }
        self.give_back(ordinal);
        None
    }

    /// Puts back an ordinal that was not granted, unless somebody has taken a later one: then it is
    /// spent. Either way nobody gets an ID of it.
    #[cold]
    fn give_back(&self, ordinal: u64) {
        let _ = self.next.0.compare_exchange(
            ordinal.saturating_add(1),
            ordinal,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// When the fast path was opened, if the clock is still in the same tick.
    #[inline]
    fn open_since(&self) -> Option<u64> {
        let open_from_ms = self.hot.0.open_from_ms.load(Ordering::Relaxed);
        let open_ms = self.clock.glance().get().wrapping_sub(open_from_ms);
        (open_ms < self.engine.shape.unit_ms).then_some(open_from_ms)
    }

    /// Takes up to `wanted` ordinals of one tick.
    pub(super) fn take_block(&self, wanted: usize) -> Result<Block, Refusal> {
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(GRANT_MAX);
        match self.take_open(wanted) {
            Some(block) => Ok(block),
            None => self.take(wanted),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn take_block_cold(&self, wanted: usize) -> Result<Block, Refusal> {
        self.take_block(wanted)
    }

    #[inline]
    pub(super) const fn shape(&self) -> &Shape {
        &self.engine.shape
    }

    /// Takes from what is granted already.
    fn take_open(&self, wanted: u64) -> Option<Block> {
        let open_from_ms = self.open_since()?;
        let mut next = self.next.0.load(Ordering::Relaxed);
        loop {
            let left = self.hot.0.limit.load(Ordering::Relaxed).saturating_sub(next);
            if left == 0 {
                return None;
            }
            let count = left.min(wanted);
            match self.next.0.compare_exchange_weak(
                next,
                next.saturating_add(count),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Block { first: Ordinal::new(next), count, open_from_ms }),
                Err(now) => next = now,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn take(&self, wanted: u64) -> Result<Block, Refusal> {
        let reading = self.clock.read();
        let step = self.engine.notice(reading);
        let taken = self.take_at(reading, wanted);
        self.engine.report(step, taken.map(|(_, outcome)| outcome));
        taken.map(|(block, _)| block)
    }

    /// Asks `advance` for a new range, takes up to `wanted` of it, and opens the rest to everybody.
    pub(super) fn take_at(
        &self,
        reading: Reading,
        wanted: u64,
    ) -> Result<(Block, Outcome), Refusal> {
        let open_seen = self.hot.0.open_from_ms.load(Ordering::Relaxed);
        loop {
            let next = self.next.0.load(Ordering::Acquire);
            if next >= CLOSED {
                return Err(Refusal::Closed);
            }
            let limit = self.hot.0.limit.load(Ordering::Acquire);
            let state = State { next: Ordinal::new(next), issued: Ordinal::new(next.min(limit)) };
            let grant = self.engine.decide(state, GRANT_MAX, reading).inspect_err(|_| {
                // Counters that overshoot burn a number each: shut the fast path until a tick is
                // granted again.
                self.hot.0.open_from_ms.store(SHUT, Ordering::Relaxed);
            })?;
            let Grant { first, open_from_ms, outcome, .. } = grant;
            let count = grant.count.min(wanted);
            let after = first.get().saturating_add(count);
            // Acquire and release: with `close`, and with the grant of another thread.
            let won =
                self.next.0.compare_exchange(next, after, Ordering::AcqRel, Ordering::Relaxed);
            if won.is_ok() {
                self.open(&grant, open_seen);
                return Ok((Block { first, count, open_from_ms }, outcome));
            }
        }
    }

    fn open(&self, grant: &Grant, open_seen: u64) {
        let limit = grant.first.get().saturating_add(grant.count);
        self.hot.0.limit.fetch_max(limit, Ordering::Release);
        // When another thread has opened or shut since, it knew better.
        let _ = self.hot.0.open_from_ms.compare_exchange(
            open_seen,
            grant.open_from_ms,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}
