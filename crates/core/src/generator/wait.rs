//! Blocking mints: every wait has a bound, and nothing is held during it.

use crate::clock::{Clock, Observer, Pause};
use crate::time::ElapsedMillis;

use super::clock_sequence::ClockSequence;
use super::error::{MintError, Short};
use super::ring::Ring;
use super::settings::{MINT_WAIT_MAX_MS, Settings};
use super::shared::Generator;
use super::wait_policy::WaitPolicy;

/// Returns a policy that waits at most [`Settings::wait_max_ms`], or two ticks if those are longer.
fn wait_policy<C: Clock>(clock: &C, settings: &Settings, unit_ms: u64) -> WaitPolicy {
    let wait_ms = settings.wait_max_ms.max(unit_ms.saturating_mul(2));
    WaitPolicy::until(clock.read().elapsed().saturating_add(wait_ms), settings)
}

/// Waits until a retry may help, or returns the error.
fn wait_out<C: Pause>(
    wait_policy: &mut WaitPolicy,
    clock: &C,
    error: MintError,
) -> Result<(), MintError> {
    wait_policy.next_step(error, clock.read().elapsed())?.wait(clock);
    Ok(())
}

fn mint_with<C: Pause>(
    mut wait_policy: WaitPolicy,
    clock: &C,
    try_mint: impl Fn() -> Result<u64, MintError>,
) -> Result<u64, MintError> {
    loop {
        match try_mint() {
            Ok(id) => return Ok(id),
            Err(error) => wait_out(&mut wait_policy, clock, error)?,
        }
    }
}

impl<C: Clock, O: Observer> Generator<C, O> {
    /// Returns the wait policy of [`Generator::mint`], for callers with their own way of waiting.
    pub fn wait_policy(&self) -> WaitPolicy {
        wait_policy(self.clock(), self.settings(), self.shape().unit_ms)
    }
}

impl<C: Pause, O: Observer> Generator<C, O> {
    /// Mints one ID, waiting at most [`Settings::wait_max_ms`] (or two ticks, if those are longer)
    /// for a free tick.
    ///
    /// # Errors
    /// The last [`MintError`], when the time is up or no wait helps.
    #[inline]
    pub fn mint(&self) -> Result<u64, MintError> {
        self.try_mint().or_else(|error| self.mint_slowly(error))
    }

    #[cold]
    fn mint_slowly(&self, error: MintError) -> Result<u64, MintError> {
        let mut wait_policy = self.wait_policy();
        wait_out(&mut wait_policy, self.clock(), error)?;
        mint_with(wait_policy, self.clock(), || self.try_mint())
    }

    /// Mints one ID, waiting at most until `deadline` of the generator's own elapsed clock.
    ///
    /// # Errors
    /// The same as [`Generator::mint`].
    pub fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64, MintError> {
        let wait_policy = WaitPolicy::until(deadline, self.settings());
        mint_with(wait_policy, self.clock(), || self.try_mint())
    }

    /// Fills the whole buffer with increasing IDs. For each tick that it needs, it waits like
    /// [`Generator::mint`], and no longer.
    ///
    /// # Errors
    /// [`Short`], with the number of IDs written and the error that ended the batch.
    pub fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let (mut made, mut wait_policy) = (0, None);
        while let Some(rest) = out.get_mut(made..) {
            let Err(short) = self.try_fill(rest) else { break };
            made = made.saturating_add(short.made);
            // Without an ID since the last wait, the same wait continues.
            if short.made > 0 {
                wait_policy = None;
            }
            let wait_policy = wait_policy.get_or_insert_with(|| self.wait_policy());
            wait_out(wait_policy, self.clock(), short.error)
                .map_err(|error| Short { made, error })?;
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
    /// The last [`MintError`], when the time is up or no wait helps.
    pub fn mint(&self) -> Result<u64, MintError> {
        let unit_ms = self.values().first().map_or(1, |value| value.shape().unit_ms);
        mint_with(wait_policy(self.clock(), &ROLLED, unit_ms), self.clock(), || self.try_mint())
    }
}

impl<C: Pause, O: Observer> Ring<C, O> {
    /// Mints one ID, waiting a bounded time for a free tick.
    ///
    /// # Errors
    /// The last [`MintError`], when the time is up or no wait helps.
    pub fn mint(&self) -> Result<u64, MintError> {
        let unit_ms = u64::from(self.layout().unit_ms());
        mint_with(wait_policy(self.clock(), &ROLLED, unit_ms), self.clock(), || self.try_mint())
    }
}
