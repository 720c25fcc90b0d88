//! The generator that threads share.

use crate::advance::{Ordinal, SequenceStart, State, below, mixed};
use crate::clock::{Clock, Observer, Outcome, Reading};
use crate::layout::{Layout, OutOfRange};
use crate::sync::{AtomicBool, AtomicU64, Ordering, Padded};
use crate::time::{UnixMillis, Window};

use super::engine::{Engine, Grant};
use super::error::{MintError, Short};
use super::settings::Settings;
use super::shape::{GRANT_MAX, Shape};

/// Lowest value of `next` in a closed generator. No layout's ID sets the highest bit.
const CLOSED: u64 = 1 << 63;

/// Opening time of a shut fast path: no wall time lies within one unit of it.
const SHUT: u64 = 1 << 63;

/// A generator for any number of threads.
///
/// - **Lock-free**: a thread that loses a race does so because another thread succeeded.
/// - **Strictly increasing** over all threads, whatever the clock does.
/// - **Non-persistent**: a restart needs a window that begins above everything taken.
///
/// While the clock stays within a tick, threads count by one `fetch_add` inside a range that
/// [`advance`](crate::advance()) granted; everything else goes through `advance`.
///
/// Threads count in the next ID itself, so that nothing is left to compute. A counter that runs
/// over the end of its grant gets other bits above the counted ones. No grant of this generator
/// matches such a number, then or later, unless the grant contains it.
#[derive(Debug)]
pub struct Generator<C, O = ()> {
    /// The next ID: the one word that all threads write.
    next: Padded<AtomicU64>,
    hot: Padded<Hot>,
    /// Upper bound (exclusive) of the ordinals of issued IDs. Only grows.
    granted: AtomicU64,
    closed: AtomicBool,
    engine: Engine<O>,
    clock: C,
}

/// Data that every mint reads, and that is written once a grant.
#[derive(Debug)]
struct Hot {
    /// The wall time at which the fast path opened; it holds for one unit from there.
    open_from_ms: AtomicU64,
    /// The bits above the counted ones that every granted ID has. Only grows, and is meaningless
    /// until the fast path opens for the first time.
    prefix: AtomicU64,
    unit_ms: u64,
    stride: u64,
    /// The counted bits.
    mask: u64,
}

/// IDs of one tick that were taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) first_id: u64,
    /// At most [`GRANT_MAX`].
    pub(super) count: u64,
    /// The wall time from which, for one unit, they are fresh.
    pub(super) open_from_ms: u64,
}

/// A generator's progress, and its clock steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The end of the last tick that anything was taken from.
    pub taken_until: UnixMillis,
    /// The end of the granted window.
    pub mark: UnixMillis,
    /// Milliseconds by which the last tick taken leads the clock now.
    pub lead_ms: u64,
    /// Clock steps back observed so far.
    pub steps_back: u64,
    /// Clock steps forward observed so far.
    pub steps_ahead: u64,
}

/// Gives a [`Refresher`](crate::clock::CachedClock) access to the generator's clock.
impl<C, O> AsRef<C> for Generator<C, O> {
    fn as_ref(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock> Generator<C> {
    /// Returns a generator of `worker`'s IDs from `window`, which reports clock steps only in its
    /// statistics.
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
    /// Returns a generator with a clock value (0 if the layout has no clock bits), which reports
    /// every clock step to `observer`.
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
        let (floor, shape) = (engine.floor(), &engine.shape);
        Ok(Self {
            next: Padded(AtomicU64::new(shape.id(floor))),
            hot: Padded(Hot {
                open_from_ms: AtomicU64::new(SHUT),
                prefix: AtomicU64::new(0),
                unit_ms: shape.unit_ms,
                stride: shape.stride(),
                mask: shape.grant_mask(),
            }),
            granted: AtomicU64::new(floor.get()),
            closed: AtomicBool::new(false),
            engine,
            clock,
        })
    }

    /// Mints one ID, without ever waiting.
    ///
    /// # Errors
    /// [`MintError`], with the time after which a retry may help.
    #[inline]
    pub fn try_mint(&self) -> Result<u64, MintError> {
        match self.try_open() {
            Some(id) => Ok(id),
            None => self.take(1).map(|block| block.first_id),
        }
    }

    /// Fills the whole buffer with increasing IDs, without ever waiting.
    ///
    /// # Errors
    /// [`Short`], with the number of IDs written and the error that ended the batch.
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let mut made = 0;
        while let Some(rest) = out.get_mut(made..).filter(|rest| !rest.is_empty()) {
            let block = self.take_block(rest.len()).map_err(|error| Short { made, error })?;
            // At most the requested length.
            let count = usize::try_from(block.count).unwrap_or(rest.len());
            self.engine.shape.write(block.first_id, rest.get_mut(..count).unwrap_or_default());
            made = made.saturating_add(count);
        }
        Ok(())
    }

    /// Extends the window after the store's grant: IDs may be minted up to `mark`. Never shrinks
    /// it.
    pub fn extend_to(&self, mark: UnixMillis) {
        self.engine.extend_to(mark);
    }

    /// Closes the generator for good. Returns the end of everything taken: blocks, lanes and calls
    /// in progress count as taken. Another call returns the same or a later time.
    pub fn close(&self) -> UnixMillis {
        self.closed.store(true, Ordering::Release);
        self.hot.0.open_from_ms.store(SHUT, Ordering::Relaxed);
        self.next.0.fetch_or(CLOSED, Ordering::AcqRel);
        self.taken_until()
    }

    /// Returns the end of the last tick that anything was taken from.
    pub fn taken_until(&self) -> UnixMillis {
        let next = self.next.0.load(Ordering::Acquire) & !CLOSED;
        self.engine.taken_until(self.state(next).next)
    }

    /// Returns the end of the granted window.
    pub fn mark(&self) -> UnixMillis {
        self.engine.mark()
    }

    /// Returns the time of the next ID while a clock that was set back is held. It advances at half
    /// speed, also while nothing is minted, and a window must reach it.
    pub fn held_at(&self) -> Option<UnixMillis> {
        self.engine.held_at(self.clock.read())
    }

    /// Returns the layout.
    pub const fn layout(&self) -> &Layout {
        self.engine.shape.layout()
    }

    /// Returns the settings.
    pub const fn settings(&self) -> &Settings {
        &self.engine.settings
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Reads the clock, so that a step is reported even while nothing is minted. The report has the
    /// outcome for the next ID.
    pub fn check_clock(&self) {
        let reading = self.clock.read();
        let step = self.engine.notice(reading);
        if step.is_none() {
            return;
        }
        let next = self.next.0.load(Ordering::Acquire);
        let decided = match next < CLOSED {
            true => self.engine.decide(self.state(next), 1, reading),
            false => Err(self.ended()),
        };
        self.engine.report(step, decided.map(|grant| grant.outcome));
    }

    /// Returns the generator's progress, and its clock steps.
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

    /// Takes one ID of the open range, if any.
    #[inline]
    pub(super) fn try_open(&self) -> Option<u64> {
        self.open_since()?;
        // Relaxed: the word alone decides which thread gets an ID. A prefix only ever names a
        // granted range, so whichever prefix is read here admits nothing else.
        let id = self.next.0.fetch_add(self.hot.0.stride, Ordering::Relaxed);
        if id & !self.hot.0.mask == self.hot.0.prefix.load(Ordering::Relaxed) {
            return Some(id);
        }
        self.give_back(id);
        None
    }

    /// Undoes the draw of an ungranted number, unless another thread has drawn a later one; then
    /// the number is spent. Either way, no ID of it is issued.
    #[cold]
    fn give_back(&self, id: u64) {
        let _ = self.next.0.compare_exchange(
            id.wrapping_add(self.hot.0.stride),
            id,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Returns the time at which the fast path opened, if the clock is still in the same tick.
    #[inline]
    fn open_since(&self) -> Option<u64> {
        let open_from_ms = self.hot.0.open_from_ms.load(Ordering::Relaxed);
        let open_ms = self.clock.cached_unix_ms().get().wrapping_sub(open_from_ms);
        (open_ms < self.hot.0.unit_ms).then_some(open_from_ms)
    }

    /// Takes up to `wanted` ordinals of one tick.
    pub(super) fn take_block(&self, wanted: usize) -> Result<Block, MintError> {
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(GRANT_MAX);
        match self.take_open(wanted) {
            Some(block) => Ok(block),
            None => self.take(wanted),
        }
    }

    /// Takes a block for a lane whose next ID would be `due`; 0 for a lane that minted nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn take_block_cold(&self, wanted: usize, due: u64) -> Result<Block, MintError> {
        match self.settings().sequence_start {
            SequenceStart::Shards { count, seed } if count > 1 => {
                let count = count.min(self.layout().ids_per_tick());
                self.take_turns(wanted, due, count, seed)
            }
            _ => self.take_block(wanted),
        }
    }

    /// Takes a block that begins in the shard of `due`, so that a lane takes turns whatever it drops
    /// of its blocks and others take in between. Blocks are whole rounds, which leave the
    /// turn of the shared generator where it is.
    fn take_turns(
        &self,
        wanted: usize,
        due: u64,
        count: u64,
        seed: u64,
    ) -> Result<Block, MintError> {
        let rounds = u64::try_from(wanted).unwrap_or(u64::MAX).div_ceil(count);
        let rounds_max = GRANT_MAX.checked_div(count).unwrap_or(1).max(1);
        let whole = count.saturating_mul(rounds.min(rounds_max));
        let whole = usize::try_from(whole).unwrap_or(usize::MAX);
        loop {
            let mut block = self.take_block(whole)?;
            let skipped = match due {
                0 => below(count, mixed(block.first_id ^ seed)),
                _ => self.shape().ids_to_turn(block.first_id, due, count),
            };
            // At the end of a tick a block may be too short; the next one follows it.
            if skipped < block.count {
                let by = skipped.wrapping_mul(self.hot.0.stride);
                block.first_id = block.first_id.wrapping_add(by);
                block.count = block.count.saturating_sub(skipped);
                return Ok(block);
            }
        }
    }

    /// Returns whether the clock is still in the span that is open from `open_from_ms` on.
    #[cold]
    #[inline(never)]
    pub(super) fn is_open_cold(&self, open_from_ms: u64) -> bool {
        self.clock().unix_ms().get().wrapping_sub(open_from_ms) < self.shape().unit_ms
    }

    #[inline]
    pub(super) const fn shape(&self) -> &Shape {
        &self.engine.shape
    }

    /// Takes IDs from the range that is already granted.
    fn take_open(&self, wanted: u64) -> Option<Block> {
        let open_from_ms = self.open_since()?;
        let Hot { stride, mask, prefix, .. } = &self.hot.0;
        let mut next = self.next.0.load(Ordering::Relaxed);
        while next & !*mask == prefix.load(Ordering::Relaxed) {
            let count = self.to_end_of_range(next).min(wanted);
            match self.next.0.compare_exchange_weak(
                next,
                next.wrapping_add(count.wrapping_mul(*stride)),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(first_id) => return Some(Block { first_id, count, open_from_ms }),
                Err(now) => next = now,
            }
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn take(&self, wanted: u64) -> Result<Block, MintError> {
        let reading = self.clock.read();
        let step = self.engine.notice(reading);
        let taken = self.take_at(reading, wanted);
        self.engine.report(step, taken.map(|(_, outcome)| outcome));
        taken.map(|(block, _)| block)
    }

    /// Gets a new range from `advance`, takes up to `wanted` of it, and opens the rest to all
    /// threads.
    pub(super) fn take_at(
        &self,
        reading: Reading,
        wanted: u64,
    ) -> Result<(Block, Outcome), MintError> {
        let open_seen = self.hot.0.open_from_ms.load(Ordering::Relaxed);
        loop {
            let next = self.next.0.load(Ordering::Acquire);
            if next >= CLOSED {
                return Err(self.ended());
            }
            let state = self.state(next);
            let grant = self.engine.decide(state, GRANT_MAX, reading).inspect_err(|_| {
                // Each overshooting counter may burn a number: shut the fast path until a tick is
                // granted again.
                self.hot.0.open_from_ms.store(SHUT, Ordering::Relaxed);
            })?;
            let Grant { first, open_from_ms, outcome, .. } = grant;
            let (first_id, stride) = (self.engine.shape.id(first), self.hot.0.stride);
            let granted = self.to_end_of_range(first_id).min(grant.count);
            let count = granted.min(wanted);
            let after = first_id.wrapping_add(count.wrapping_mul(stride));
            // Acquire and release: with `close`, and with the grant of another thread.
            let won =
                self.next.0.compare_exchange(next, after, Ordering::AcqRel, Ordering::Relaxed);
            if won.is_ok() {
                self.open(first.get().saturating_add(granted), first_id, open_seen, open_from_ms);
                return Ok((Block { first_id, count, open_from_ms }, outcome));
            }
        }
    }

    /// Returns the state that the word `next` means.
    fn state(&self, next: u64) -> State {
        let next = self.engine.shape.ordinal_from(next);
        State { next, issued: next.min(Ordinal::new(self.granted.load(Ordering::Acquire))) }
    }

    /// Returns the error for a `next` with its highest bit set.
    fn ended(&self) -> MintError {
        if self.closed.load(Ordering::Acquire) {
            return MintError::Closed;
        }
        // Counters ran over the end of a 64-bit layout's last tick.
        MintError::EpochSpent { end: self.layout().end() }
    }

    /// Returns how many IDs from `first_id` on differ only in the counted bits.
    fn to_end_of_range(&self, first_id: u64) -> u64 {
        let Hot { mask, stride, .. } = self.hot.0;
        (mask & !first_id).checked_div(stride).unwrap_or(0).saturating_add(1)
    }

    fn open(&self, granted: u64, first_id: u64, open_seen: u64, open_from_ms: u64) {
        self.granted.fetch_max(granted, Ordering::Release);
        self.hot.0.prefix.fetch_max(first_id & !self.hot.0.mask, Ordering::Release);
        // If another thread has opened or shut it since, its decision stands.
        let _ = self.hot.0.open_from_ms.compare_exchange(
            open_seen,
            open_from_ms,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}
