//! Numbers with the store's time in them: ticks and sequence as one number, as generators count
//! ([`snowmint_core::advance`]), bounded by the clock of the store that issues them.
//!
//! The mark alone ensures that no number is issued twice. The clock decides where the next numbers
//! begin, and how far they may go: a store with a clock that was set back continues from its mark.

use snowmint_core::layout::Field;
use snowmint_core::{Layout, UnixMillis};

use crate::error::{Error, Result};

/// A range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberInterval {
    /// First number.
    pub first: u64,
    /// End: the number after the last.
    pub end: u64,
}

/// Numbers that may be issued now: `tick << sequence_bits | sequence`, of a layout's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// Time at which tick 0 begins.
    pub epoch: UnixMillis,
    /// Length of a tick, in milliseconds; at least 1.
    pub unit_ms: u32,
    /// Width of the sequence, in bits: 1 to 62.
    pub sequence_bits: u8,
    /// Last tick of the layout.
    pub tick_max: u64,
    /// Number of ticks that numbers may lag the clock, so that unused ticks just past serve a
    /// burst.
    pub lag: u64,
    /// Number of ticks that numbers may lead a clock that is behind issued numbers. Numbers never
    /// lead a clock that is not behind: a caller that needs more waits for the next tick.
    pub lead: u64,
    /// Clock of the caller, for stores without a clock.
    pub now: UnixMillis,
}

impl Ticks {
    /// Creates the ticks of a layout, with a lag and a lead in milliseconds, for a caller at this
    /// time.
    #[must_use]
    pub fn of(layout: &Layout, lag_ms: u64, lead_ms: u64, now: UnixMillis) -> Self {
        let unit_ms = layout.unit_ms();
        let ticks = |ms: u64| ms / u64::from(unit_ms.max(1));
        Self {
            epoch: layout.epoch(),
            unit_ms,
            sequence_bits: layout.bits(Field::Sequence),
            tick_max: layout.tick_max().get(),
            lag: ticks(lag_ms),
            lead: ticks(lead_ms),
            now,
        }
    }

    /// Returns the first number of a tick; for a tick beyond all numbers, the highest number.
    #[must_use]
    pub const fn first_of(&self, tick: u64) -> u64 {
        let bits = self.sequence_bits as u32;
        match tick.checked_shl(bits) {
            Some(first) if first >> bits == tick => first,
            _ => u64::MAX,
        }
    }

    /// Returns the tick of a number.
    #[must_use]
    pub const fn tick_of(&self, number: u64) -> u64 {
        match number.checked_shr(self.sequence_bits as u32) {
            Some(tick) => tick,
            None => 0,
        }
    }

    /// Returns the numbers that a source with this mark may issue at this time of the store.
    ///
    /// # Errors
    /// `TickFull` when the tick has none left; `ClockBehind` when the clock is too far behind the
    /// mark, or before the epoch; `EpochSpent`; `Invalid` for ticks that cannot belong to a layout.
    pub fn within(&self, source: &str, mark: u64, now: UnixMillis) -> Result<NumberInterval> {
        if !(1..=62).contains(&self.sequence_bits) || self.unit_ms == 0 {
            return Err(Error::invalid(format!(
                "sequence of {} bits with ticks of {} ms fits no layout; correct the request",
                self.sequence_bits, self.unit_ms
            )));
        }
        if now < self.epoch {
            let behind_ms = self.epoch.since(now);
            let message = format!(
                "clock is {behind_ms} ms before the epoch of source {source:?}; correct the clock"
            );
            return Err(Error::clock_behind(behind_ms, 0, message));
        }
        let unit_ms = u64::from(self.unit_ms);
        let since_ms = now.since(self.epoch);
        let tick = since_ms / unit_ms;
        if tick > self.tick_max {
            return Err(spent(source));
        }
        let is_behind = self.tick_of(mark.saturating_sub(1)) > tick;
        let lead = if is_behind { self.lead } else { 0 };
        let latest = tick.saturating_add(lead).min(self.tick_max);
        let earliest = self.first_of(tick.saturating_sub(self.lag));
        let within = NumberInterval {
            first: mark.max(earliest),
            end: self.first_of(latest.saturating_add(1)),
        };
        if within.first < within.end {
            return Ok(within);
        }
        let next = self.tick_of(within.first);
        if next > self.tick_max {
            return Err(spent(source));
        }
        let until_ms = next.saturating_mul(unit_ms).saturating_sub(since_ms);
        if !is_behind {
            return Err(Error::tick_full(until_ms));
        }
        let limit_ms = self.lead.saturating_mul(unit_ms);
        let message = format!(
            "clock is {until_ms} ms behind the IDs of source {source:?}, limit {limit_ms} ms; wait \
             or correct the clock"
        );
        Err(Error::clock_behind(until_ms, limit_ms, message))
    }
}

fn spent(source: &str) -> Error {
    Error::epoch_spent(format!(
        "no time left in the layout of source {source:?}; define a source with a newer epoch"
    ))
}

#[cfg(test)]
mod tests;
