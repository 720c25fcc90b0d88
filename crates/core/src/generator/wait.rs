//! Minting that waits: always up to a bound, never holding anything.

use crate::clock::{Clock, Observer, Pause};
use crate::time::{ElapsedMillis, UnixMillis};

use super::clock_sequence::ClockSequence;
use super::refusal::{Refusal, Short};
use super::ring::Ring;
use super::settings::{MINT_WAIT_MAX_MS, Rollback, Settings, WaitFor};
use super::shared::Generator;

/// No wait is longer without another look at the clock: it may have been set meanwhile.
const LOOK_EVERY_MS: u64 = 10;

/// What a waiter remembers between two tries.
struct Waiter<'a, C> {
    clock: &'a C,
    settings: &'a Settings,
    deadline: ElapsedMillis,
    /// The one wait that [`Rollback::Wait`] allows is over.
    waited_back: bool,
}

impl<'a, C: Pause> Waiter<'a, C> {
    fn new(clock: &'a C, settings: &'a Settings, deadline: ElapsedMillis) -> Self {
        Self { clock, settings, deadline, waited_back: false }
    }

    /// Waits for what the refusal needs, or hands it back: no wait helps, or the time is up.
    fn wait_out(&mut self, why: Refusal) -> Result<(), Refusal> {
        let left_ms = self.deadline.since(self.clock.read().elapsed());
        if left_ms == 0 {
            return Err(why);
        }
        match why {
            Refusal::TickFull { next, .. } => {
                self.clock.pause_until(next, left_ms.min(LOOK_EVERY_MS));
                Ok(())
            }
            Refusal::ClockBehind { by_ms, .. } => self.wait_back(by_ms, left_ms, why),
            Refusal::WindowSpent { .. } => {
                self.pause(1);
                Ok(())
            }
            _ => Err(why),
        }
    }

    fn wait_back(&mut self, by_ms: u64, left_ms: u64, why: Refusal) -> Result<(), Refusal> {
        let wait_ms = match self.settings.rollback {
            Rollback::Wait(WaitFor::TwiceTheOffset { offset_max_ms }) if by_ms <= offset_max_ms => {
                by_ms.saturating_mul(2)
            }
            Rollback::Wait(WaitFor::Fixed { wait_ms }) => wait_ms,
            // The lead that was borrowed shrinks as time passes.
            Rollback::Borrow { .. } => {
                self.pause(left_ms.min(LOOK_EVERY_MS));
                return Ok(());
            }
            _ => return Err(why),
        };
        if self.waited_back || wait_ms > left_ms {
            return Err(why);
        }
        self.waited_back = true;
        self.pause(wait_ms);
        Ok(())
    }

    /// Waits by elapsed time alone: the wall clock is what cannot be trusted now.
    fn pause(&self, ms: u64) {
        let until = self.clock.read().elapsed().saturating_add(ms);
        loop {
            let left_ms = until.since(self.clock.read().elapsed());
            if left_ms == 0 {
                return;
            }
            self.clock.pause_until(UnixMillis::MAX, left_ms);
        }
    }
}

fn deadline<C: Clock>(clock: &C, settings: &Settings, unit_ms: u64) -> ElapsedMillis {
    let wait_ms = settings.wait_max_ms.max(unit_ms.saturating_mul(2));
    clock.read().elapsed().saturating_add(wait_ms)
}

fn mint_with<C: Pause>(
    mut waiter: Waiter<'_, C>,
    try_mint: impl Fn() -> Result<u64, Refusal>,
) -> Result<u64, Refusal> {
    loop {
        match try_mint() {
            Ok(id) => return Ok(id),
            Err(why) => waiter.wait_out(why)?,
        }
    }
}

impl<C: Pause, O: Observer> Generator<C, O> {
    /// One ID, waiting at most [`Settings::wait_max_ms`] (or two ticks, where they are longer) for a
    /// free tick.
    ///
    /// # Errors
    /// The last [`Refusal`], when the time is up or no wait helps.
    #[inline]
    pub fn mint(&self) -> Result<u64, Refusal> {
        self.try_mint().or_else(|why| self.mint_slowly(why))
    }

    #[cold]
    fn mint_slowly(&self, why: Refusal) -> Result<u64, Refusal> {
        let deadline = deadline(self.clock(), self.settings(), self.shape().unit_ms);
        let mut waiter = Waiter::new(self.clock(), self.settings(), deadline);
        waiter.wait_out(why)?;
        mint_with(waiter, || self.try_mint())
    }

    /// One ID, waiting until `deadline` of the generator's own elapsed clock at most.
    ///
    /// # Errors
    /// As [`Generator::mint`].
    pub fn mint_by(&self, deadline: ElapsedMillis) -> Result<u64, Refusal> {
        let waiter = Waiter::new(self.clock(), self.settings(), deadline);
        mint_with(waiter, || self.try_mint())
    }

    /// Fills the whole buffer with increasing IDs, waiting as [`Generator::mint`] does for each tick
    /// that it needs.
    ///
    /// # Errors
    /// [`Short`], which says how many IDs were written and why there are no more.
    pub fn fill(&self, out: &mut [u64]) -> Result<(), Short> {
        let mut made = 0;
        while let Some(rest) = out.get_mut(made..)
            && let Err(short) = self.try_fill(rest)
        {
            made = made.saturating_add(short.made);
            let deadline = deadline(self.clock(), self.settings(), self.shape().unit_ms);
            let mut waiter = Waiter::new(self.clock(), self.settings(), deadline);
            waiter.wait_out(short.why).map_err(|why| Short { made, why })?;
        }
        Ok(())
    }
}

/// The bound of the generators that have no settings of their own.
const ROLLED: Settings = Settings { wait_max_ms: MINT_WAIT_MAX_MS, ..Settings::DEFAULT };

impl<V, C, O> ClockSequence<V, C, O>
where
    V: AsRef<[Generator<C>]>,
    C: Pause,
    O: Observer,
{
    /// One ID, waiting a bounded time for a free tick.
    ///
    /// # Errors
    /// The last [`Refusal`], when the time is up or no wait helps.
    pub fn mint(&self) -> Result<u64, Refusal> {
        let unit_ms = self.values().first().map_or(1, |value| value.shape().unit_ms);
        let deadline = deadline(self.clock(), &ROLLED, unit_ms);
        mint_with(Waiter::new(self.clock(), &ROLLED, deadline), || self.try_mint())
    }
}

impl<C: Pause, O: Observer> Ring<C, O> {
    /// One ID, waiting a bounded time for a free tick.
    ///
    /// # Errors
    /// The last [`Refusal`], when the time is up or no wait helps.
    pub fn mint(&self) -> Result<u64, Refusal> {
        let unit_ms = u64::from(self.layout().unit_ms());
        let deadline = deadline(self.clock(), &ROLLED, unit_ms);
        mint_with(Waiter::new(self.clock(), &ROLLED, deadline), || self.try_mint())
    }
}
