//! The generator that one thread owns.

use crate::advance::{Ordinal, State};
use crate::clock::{Clock, Observer};
use crate::layout::{Layout, OutOfRange};
use crate::time::{UnixMillis, Window};

use super::engine::Engine;
use super::error::{MintError, Short};
use super::settings::Settings;

/// A generator without atomics on its hot path, for a worker number that one thread owns.
///
/// - **Unshared**: `&mut self`. Two of them with one worker number repeat IDs.
/// - **Strictly increasing**, whatever the clock does.
/// - **Non-persistent**: a restart needs a window that begins above everything taken.
#[derive(Debug)]
pub struct LocalGenerator<C, O = ()> {
    id: u64,
    stride: u64,
    /// IDs left of the grant, from `id` on.
    left: u64,
    open_from_ms: u64,
    unit_ms: u64,
    /// The end of the grant.
    limit: Ordinal,
    engine: Engine<O>,
    clock: C,
}

impl<C: Clock, O: Observer> LocalGenerator<C, O> {
    /// Returns a generator of `worker`'s IDs from `window`.
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
        Ok(Self {
            id: 0,
            stride: engine.shape.stride(),
            left: 0,
            open_from_ms: 0,
            unit_ms: engine.shape.unit_ms,
            limit: engine.floor(),
            engine,
            clock,
        })
    }

    /// Mints one ID, without ever waiting.
    ///
    /// # Errors
    /// The same as [`Generator::try_mint`](super::Generator::try_mint).
    #[inline]
    pub fn try_mint(&mut self) -> Result<u64, MintError> {
        let open_ms = self.clock.cached_unix_ms().get().wrapping_sub(self.open_from_ms);
        if self.left == 0 || open_ms >= self.unit_ms {
            self.refill()?;
        }
        let id = self.id;
        self.id = id.wrapping_add(self.stride);
        self.left = self.left.wrapping_sub(1);
        Ok(id)
    }

    /// Fills the whole buffer with increasing IDs, without ever waiting.
    ///
    /// # Errors
    /// The same as [`Generator::try_fill`](super::Generator::try_fill).
    pub fn try_fill(&mut self, out: &mut [u64]) -> Result<(), Short> {
        for (made, slot) in out.iter_mut().enumerate() {
            *slot = self.try_mint().map_err(|error| Short { made, error })?;
        }
        Ok(())
    }

    /// Extends the window after the store's grant: IDs may be minted up to `mark`.
    pub fn extend_to(&mut self, mark: UnixMillis) {
        self.engine.extend_to(mark);
    }

    /// Closes the generator by consuming it. Returns the end of the last tick that anything was
    /// taken from.
    pub fn close(self) -> UnixMillis {
        self.engine.taken_until(self.next())
    }

    /// Returns the first ordinal that is not taken.
    const fn next(&self) -> Ordinal {
        Ordinal::new(self.limit.get().wrapping_sub(self.left))
    }

    /// Takes a new grant, of at least one ID.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<(), MintError> {
        let reading = self.clock.read();
        let step = self.engine.notice(reading);
        let decision = self.engine.decide(State::at(self.next()), super::GRANT_MAX, reading);
        self.engine.report(step, decision.map(|grant| grant.outcome));
        let grant = decision?;
        self.id = self.engine.shape.id(grant.first);
        self.left = grant.count;
        self.limit = Ordinal::new(grant.first.get().saturating_add(grant.count));
        self.open_from_ms = grant.open_from_ms;
        Ok(())
    }
}
