//! The generator that one thread owns.

use crate::advance::{Ordinal, State};
use crate::clock::{Clock, Observer};
use crate::layout::{Layout, OutOfRange};
use crate::time::{UnixMillis, Window};

use super::engine::Engine;
use super::refusal::{Refusal, Short};
use super::settings::Settings;

/// A generator without atomics on its hot path, for a worker number that one thread owns.
///
/// - **Unshared**: `&mut self`. Two of them with one worker number repeat IDs.
/// - **Strictly increasing**, whatever the clock does.
/// - **Non-persistent**: a restart needs a window that begins above everything taken.
#[derive(Debug)]
pub struct LocalGenerator<C, O = ()> {
    next: u64,
    limit: u64,
    open_from_ms: u64,
    engine: Engine<O>,
    clock: C,
}

impl<C: Clock, O: Observer> LocalGenerator<C, O> {
    /// A generator of `worker`'s IDs from `window`.
    ///
    /// # Errors
    /// [`OutOfRange`] when the worker does not fit the layout.
    pub fn new(
        layout: Layout,
        worker: u64,
        settings: Settings,
        window: Window,
        clock: C,
        observer: O,
    ) -> Result<Self, OutOfRange> {
        let engine = Engine::new(layout, worker, 0, settings, window, observer)?;
        let floor = engine.floor().get();
        Ok(Self { next: floor, limit: floor, open_from_ms: 0, engine, clock })
    }

    /// One ID, without ever waiting.
    ///
    /// # Errors
    /// As [`Generator::try_mint`](super::Generator::try_mint).
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64, Refusal> {
        let next = self.next;
        let wall_ms = self.clock.unix_ms().get();
        if next >= self.limit
            || wall_ms.wrapping_sub(self.open_from_ms) >= self.engine.shape.unit_ms
        {
            return self.refill();
        }
        self.next = next.wrapping_add(1);
        Ok(self.engine.shape.id(next))
    }

    /// Fills the whole buffer with increasing IDs, without ever waiting.
    ///
    /// # Errors
    /// As [`Generator::try_fill`](super::Generator::try_fill).
    pub fn try_fill(&mut self, out: &mut [u64]) -> Result<(), Short> {
        for (made, slot) in out.iter_mut().enumerate() {
            *slot = self.try_mint().map_err(|why| Short { made, why })?;
        }
        Ok(())
    }

    /// The store granted more: IDs may be minted up to `mark`.
    pub fn extend_to(&mut self, mark: UnixMillis) {
        self.engine.extend_to(mark);
    }

    /// The end of the last tick that anything was taken from. Consuming the generator closes it.
    pub fn close(self) -> UnixMillis {
        self.engine.taken_until(Ordinal::new(self.next))
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<u64, Refusal> {
        let reading = self.clock.read();
        let step = self.engine.notice(reading);
        let state = State::at(Ordinal::new(self.next));
        let decision = self.engine.decide(state, super::GRANT_MAX, reading);
        self.engine.report(step, decision.map(|grant| grant.outcome));
        let grant = decision?;
        let first = grant.first.get();
        self.next = first.saturating_add(1);
        self.limit = first.saturating_add(grant.count);
        self.open_from_ms = grant.open_from_ms;
        Ok(self.engine.shape.id(first))
    }
}
