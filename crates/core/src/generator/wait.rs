//! Blocking mints: every wait has a bound, and nothing is held during it.

use crate::clock::{Clock, Observer, Pause};
use crate::time::ElapsedMillis;

use super::clock_sequence::ClockSequence;
use super::patience::Patience;
use super::refusal::{Refusal, Short};
use super::ring::Ring;
use super::settings::{MINT_WAIT_MAX_MS, Settings};
use super::shared::Generator;

/// Returns a policy that waits at most [`Settings::wait_max_ms`], or two ticks if those are longer.
fn patience<C: Clock>(clock: &C, settings: &Settings, unit_ms: u64) -> Patience {
    let wait_ms = settings.wait_max_ms.max(unit_ms.saturating_mul(2));
    Patience::until(clock.read().elapsed().saturating_add(wait_ms), settings)
}

/// Waits until a retry may help, or returns the error.
fn wait_out<C: Pause>(patience: &mut Patience, clock: &C, why: Refusal) -> Result<(), Refusal> {
    patience.rest(why, clock.read().elapsed())?.take(clock);
    Ok(())
}

fn mint_with<C: Pause>(
    mut patience: Patience,
    clock: &C,
    try_mint: impl Fn() -> Result<u64, Refusal>,
) -> Result<u64, Refusal> {
    loop {
        match try_mint() {
            Ok(id) => return Ok(id),
            Err(why) => wait_out(&mut patience, clock, why)?,
        }
    }
}

impl<C: Clock, O: Observer> Generator<C, O> {
    /// Returns the wait policy of [`Generator::mint`], for callers with their own way of waiting.
    pub fn patience(&self) -> Patience {
        patience(self.clock(), self.settings(), self.shape().unit_ms)
    }
}

impl<C: Pause, O: Observer> Generator<C, O> {
    /// Mints one ID, waiting at most [`Settings::wait_max_ms`] (or two ticks, if those are longer)
    /// for a free tick.
    ///
    /// # Errors
    /// The last [`Refusal`], when the time is up or no wait helps.
    #[inline]
    pub fn mint(&self) -> Result<u64, Refusal> {
        self.try_mint().or_else(|why| self.mint_slowly(why))
    }

    #[cold]
    fn mint_slowly(&self, why: Refusal) -> Result<u64, Refusal> {
        let mut patience = self.patience();
        wait_out(&mut patience, self.clock(), why)?;
        mint_with(patience, self.clock(), || self.try_mint())
    }

    /// Mints one ID, waiting at most until `deadline` of the generator's own elapsed clock.
    ///
    /// # Errors
    /// The same as [`Generator::mint`].
    pub fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64, Refusal> {
        let patience = Patience::until(deadline, self.settings());
        mint_with(patience, self.clock(), || self.try_mint())
    }

    /// Fills the whole buffer with increasing IDs. For each tick that it needs, it waits like
    /// [`Generator::mint`].
    ///
    /// # Errors
    /// [`Short`], with the number of IDs written and the error that ended the batch.
    pub fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let mut made = 0;
        while let Some(rest) = out.get_mut(made..) {
            let Err(short) = self.try_fill(rest) else { break };
            made = made.saturating_add(short.made);
            wait_out(&mut self.patience(), self.clock(), short.why)
                .map_err(|why| Short { made, why })?;
        }
        Ok(())
    }
}

/// The wait bound of the generators without settings of their own.
const ROLLED: Settings = Settings { wait_max_ms: MINT_WAIT_MAX_MS, ..Settings::DEFAULT };

impl<V, C, O> ClockSequence<V, C, O>
where
    V: AsRef<[Generator<C>]>,
    C: Pause,
    O: Observer,
{
    /// Mints one ID, waiting a bounded time for a free tick.
    ///
    /// # Errors
    /// The last [`Refusal`], when the time is up or no wait helps.
    pub fn mint(&self) -> Result<u64, Refusal> {
        let unit_ms = self.values().first().map_or(1, |value| value.shape().unit_ms);
        mint_with(patience(self.clock(), &ROLLED, unit_ms), self.clock(), || self.try_mint())
    }
}

impl<C: Pause, O: Observer> Ring<C, O> {
    /// Mints one ID, waiting a bounded time for a free tick.
    ///
    /// # Errors
    /// The last [`Refusal`], when the time is up or no wait helps.
    pub fn mint(&self) -> Result<u64, Refusal> {
        let unit_ms = u64::from(self.layout().unit_ms());
        mint_with(patience(self.clock(), &ROLLED, unit_ms), self.clock(), || self.try_mint())
    }
}
