//! Layouts with clock bits: a rollback moves the worker to another clock value (article 000).

use crate::clock::{Clock, Observer, Outcome, StepWatch};
use crate::clock::{ClockStep, Direction, PendingStep, Reading};
use crate::sync::{AtomicU64, Ordering};

use super::error::{MintError, Short};
use super::shared::Generator;

/// The policy's name in configuration, logs and metrics.
const POLICY: &str = "clock-sequence";

/// One generator for each clock value of a worker; one of them serves at a time.
///
/// When the clock steps back behind the last ID of the serving value, the next value whose last ID
/// lies below the clock takes over. If no value qualifies, minting fails. (The article's version
/// wraps to the first value and repeats its IDs.)
///
/// Each value has its own slot with its own window, so that the values' marks outlive the process.
/// Only the serving value needs its window extended ahead of need.
///
/// - **Lock-free**, as [`Generator`] is.
/// - **Increasing** from one rollback to the next.
/// - **Non-persistent**: the values' marks are in their leases.
#[derive(Debug)]
pub struct ClockSequence<V, C, O = ()> {
    values: V,
    serving: AtomicU64,
    watch: StepWatch,
    clock: C,
    observer: O,
}

impl<V, C, O> ClockSequence<V, C, O>
where
    V: AsRef<[Generator<C>]>,
    C: Clock,
    O: Observer,
{
    /// Returns a clock sequence over the given generators, one for each clock value. Each has the
    /// policy [`Rollback::Fail`](super::Rollback::Fail) and the same `clock`. The first generator
    /// whose last ID lies below the clock serves first.
    pub fn new(values: V, clock: C, observer: O) -> Self {
        Self { values, serving: AtomicU64::new(0), watch: StepWatch::new(), clock, observer }
    }

    /// Mints one ID, without ever waiting.
    ///
    /// # Errors
    /// [`MintError`]; [`MintError::NoClockValue`] when the clock lies behind the last IDs of all
    /// values.
    #[inline]
    pub fn try_mint(&self) -> Result<u64, MintError> {
        if let Some(id) = self.serving_generator().and_then(Generator::try_open) {
            return Ok(id);
        }
        self.serve(|generator, reading| {
            generator.take_at(reading, 1).map(|(block, _)| block.first_id)
        })
    }

    /// Fills the whole buffer, without ever waiting.
    ///
    /// # Errors
    /// The same as [`Generator::try_fill`].
    pub fn try_fill(&self, out: &mut [u64]) -> Result<(), Short> {
        for (made, slot) in out.iter_mut().enumerate() {
            *slot = self.try_mint().map_err(|error| Short { made, error })?;
        }
        Ok(())
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the clock value that serves.
    pub fn serving(&self) -> usize {
        usize::try_from(self.serving.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// Returns the generators, by clock value.
    pub fn values(&self) -> &[Generator<C>] {
        self.values.as_ref()
    }

    fn serving_generator(&self) -> Option<&Generator<C>> {
        self.values.as_ref().get(self.serving())
    }

    #[cold]
    #[inline(never)]
    fn serve(
        &self,
        mint: impl Fn(&Generator<C>, Reading) -> Result<u64, MintError>,
    ) -> Result<u64, MintError> {
        let reading = self.clock.read();
        let step = self.watch.observe(reading);
        let values = self.values.as_ref();
        let first = self.serving();
        let mut nearest_ms = u64::MAX;
        for (index, generator) in turns(values, first) {
            match mint(generator, reading) {
                Err(MintError::ClockBehind { by_ms, .. }) => nearest_ms = nearest_ms.min(by_ms),
                result => {
                    // Also when the generator's window must be extended first.
                    self.move_to(first, index);
                    let outcome = if index == first { Outcome::Unaffected } else { Outcome::Moved };
                    self.report(step, outcome);
                    return result;
                }
            }
        }
        self.report(step, Outcome::Refused);
        let values = u64::try_from(values.len()).unwrap_or(u64::MAX);
        Err(MintError::NoClockValue { values, by_ms: nearest_ms })
    }

    fn move_to(&self, from: usize, to: usize) {
        if let (Ok(from), Ok(to)) = (u64::try_from(from), u64::try_from(to)) {
            // If another thread has moved already, its choice stands.
            let _ = self.serving.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn report(&self, step: Option<PendingStep>, outcome: Outcome) {
        if let Some(PendingStep { direction, by_ms }) = step {
            let outcome = if direction == Direction::Ahead { Outcome::Unaffected } else { outcome };
            self.observer.clock_step(&ClockStep { direction, by_ms, policy: POLICY, outcome });
        }
    }
}

/// Returns all values with their indices, cyclically from `first` on.
fn turns<T>(values: &[T], first: usize) -> impl Iterator<Item = (usize, &T)> {
    let from_first = values.iter().enumerate().skip(first);
    from_first.chain(values.iter().enumerate().take(first))
}
