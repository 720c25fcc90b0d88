//! Layouts of IDs that are read, among them those with which nothing is minted here.

use super::error::{Field, LayoutError, OutOfRange, fits};
use super::fields::{self, EPOCH_DEFAULT, Fields, Parts, UNIT_MS_MAX, low_bits};
use crate::time::{Tick, UnixMillis};

/// The nanoseconds of a millisecond.
pub(super) const MS_NS: u64 = 1_000_000;
/// The nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;
/// The largest time unit: one day, in nanoseconds.
pub(super) const UNIT_NS_MAX: u64 = UNIT_MS_MAX as u64 * MS_NS;

/// The division of the bits of IDs that are read: any order of the fields, no sequence, units below
/// a millisecond, a time in two parts.
///
/// Every [`Layout`](super::Layout) is readable; [`ReadableLayout::mintable`] leads back.
///
/// **The top bit.** Java and SQL show a number with the top bit set as a negative one. A layout of 64
/// bits reads it. If time is the first field, such an ID is later than [`ReadableLayout::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadableLayout {
    pub(super) fields: Fields,
    /// Bits of the low part of a split worker; 0 when the worker is one number.
    pub(super) worker_low_bits: u8,
    /// Bits of the low part of the time, which counts units up to a second; 0 when the time is one
    /// number.
    pub(super) time_low_bits: u8,
    pub(super) unit_ns: u64,
    pub(super) epoch: UnixMillis,
}

impl ReadableLayout {
    /// Returns the layout of the given fields from the highest bits to the lowest, with a unit of
    /// 1 ms and [`EPOCH_DEFAULT`]. Only the time needs bits.
    ///
    /// # Errors
    /// [`LayoutError`] when the time has no bits, a field is named twice, or there are more than 64
    /// bits in all.
    pub const fn from_fields(fields: &[(Field, u8)]) -> Result<Self, LayoutError> {
        match Fields::new(fields) {
            Ok(fields) => Self {
                fields,
                worker_low_bits: 0,
                time_low_bits: 0,
                unit_ns: MS_NS,
                epoch: EPOCH_DEFAULT,
            }
            .checked(),
            Err(error) => Err(error),
        }
    }

    /// Returns the same layout with another epoch.
    ///
    /// # Errors
    /// [`LayoutError::EndBeyondTime`] when the last tick no longer fits 64 bits of milliseconds.
    pub const fn with_epoch(mut self, epoch: UnixMillis) -> Result<Self, LayoutError> {
        self.epoch = epoch;
        self.checked()
    }

    /// Returns the same layout with another time unit, in nanoseconds.
    ///
    /// # Errors
    /// [`LayoutError::UnitNs`] outside 1 ns to 1 day; [`LayoutError::EndBeyondTime`] when the last
    /// tick no longer fits 64 bits of milliseconds; [`LayoutError::TimeParts`] when a split time
    /// cannot count this unit.
    pub const fn with_unit_ns(mut self, unit_ns: u64) -> Result<Self, LayoutError> {
        self.unit_ns = unit_ns;
        self.checked()
    }

    /// Returns the same layout with its worker split for display into a high part and a low part of
    /// `low_bits`.
    ///
    /// # Errors
    /// [`LayoutError::Split`] when either part would have no bits.
    pub const fn with_worker_split(mut self, low_bits: u8) -> Result<Self, LayoutError> {
        if let Err(error) = self.fields.check_split(low_bits) {
            return Err(error);
        }
        self.worker_low_bits = low_bits;
        Ok(self)
    }

    /// Returns the same layout with a time of two parts: the high part counts seconds, the low part
    /// of `low_bits` the units within the second, as in Nextcloud's 31 + 10.
    ///
    /// # Errors
    /// [`LayoutError::TimeParts`] when the low part cannot count a second's units, or the high part
    /// has no bits.
    pub const fn with_time_split(mut self, low_bits: u8) -> Result<Self, LayoutError> {
        if low_bits == 0 {
            return Err(LayoutError::TimeParts { low_bits, unit_ns: self.unit_ns });
        }
        self.time_low_bits = low_bits;
        self.checked()
    }

    const fn checked(self) -> Result<Self, LayoutError> {
        if self.unit_ns == 0 || self.unit_ns > UNIT_NS_MAX {
            return Err(LayoutError::UnitNs { unit_ns: self.unit_ns });
        }
        if self.time_low_bits > 0
            && (self.time_low_bits >= self.fields.time.bits
                || !matches!(SECOND_NS.checked_rem(self.unit_ns), Some(0))
                || self.units_in_second() > low_bits(self.time_low_bits).saturating_add(1))
        {
            let low_bits = self.time_low_bits;
            return Err(LayoutError::TimeParts { low_bits, unit_ns: self.unit_ns });
        }
        if self.span_ms().saturating_add(self.epoch.get() as u128) > u64::MAX as u128 {
            return Err(LayoutError::EndBeyondTime);
        }
        Ok(self)
    }

    /// Returns the milliseconds from the epoch to the end of the last tick, rounded up.
    const fn span_ms(&self) -> u128 {
        // At most 2^64 ticks of less than 2^47 ns.
        let ticks = (self.tick_max().get() as u128).saturating_add(1);
        ticks.saturating_mul(self.unit_ns as u128).div_ceil(MS_NS as u128)
    }

    const fn units_in_second(&self) -> u64 {
        match SECOND_NS.checked_div(self.unit_ns) {
            Some(units) => units,
            // The unit is never 0.
            None => 0,
        }
    }

    /// Returns the total number of bits.
    #[must_use]
    pub const fn total_bits(&self) -> u8 {
        self.fields.total_bits()
    }

    /// Returns the width of a field in bits; 0 when the layout does not have it.
    #[must_use]
    pub const fn bits(&self, field: Field) -> u8 {
        self.fields.of(field).bits
    }

    /// Returns the fields that have bits, with their widths, from the highest to the lowest.
    pub fn fields(&self) -> impl Iterator<Item = (Field, u8)> + use<> {
        self.fields.iter()
    }

    /// Returns whether time is the first field, so that IDs sort by time.
    #[must_use]
    pub const fn is_by_time(&self) -> bool {
        self.fields.is_by_time()
    }

    /// Returns the bits of the low part of a split worker; 0 when it is one number.
    #[must_use]
    pub const fn worker_low_bits(&self) -> u8 {
        self.worker_low_bits
    }

    /// Returns the bits of the low part of a split time; 0 when it is one number.
    #[must_use]
    pub const fn time_low_bits(&self) -> u8 {
        self.time_low_bits
    }

    /// Returns the length of a tick, in nanoseconds.
    #[must_use]
    pub const fn unit_ns(&self) -> u64 {
        self.unit_ns
    }

    /// Returns the length of a tick in whole milliseconds; 0 when it is shorter.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "the unit is at most a day, 27 bits of ms")]
    pub const fn unit_ms(&self) -> u32 {
        (self.unit_ns / MS_NS) as u32
    }

    /// Returns the start of tick 0.
    #[must_use]
    pub const fn epoch(&self) -> UnixMillis {
        self.epoch
    }

    /// Returns the last tick that leaves the top bit clear.
    #[must_use]
    pub const fn tick_max(&self) -> Tick {
        Tick::new(self.tick_in(self.fields.positive_time_bits()))
    }

    /// Returns the highest clock sequence.
    #[must_use]
    pub const fn clock_max(&self) -> u64 {
        self.fields.clock.max()
    }

    /// Returns the highest worker number.
    #[must_use]
    pub const fn worker_max(&self) -> u64 {
        self.fields.worker.max()
    }

    /// Returns the highest sequence number.
    #[must_use]
    pub const fn sequence_max(&self) -> u64 {
        self.fields.sequence.max()
    }

    /// Returns the highest number that is read, the top bit of 64 included.
    #[must_use]
    pub const fn id_max(&self) -> u64 {
        low_bits(self.total_bits())
    }

    /// Returns the end of the layout's years: the first time after the last tick.
    #[must_use]
    pub const fn end(&self) -> UnixMillis {
        self.epoch.saturating_add(clamped(self.span_ms()))
    }

    /// Returns the start of a tick, rounded down to a millisecond; at most [`UnixMillis::MAX`].
    #[must_use]
    pub const fn start_of(&self, tick: Tick) -> UnixMillis {
        const MS: u128 = MS_NS as u128;
        let since_ns = (tick.get() as u128).saturating_mul(self.unit_ns as u128);
        self.epoch.saturating_add(clamped(since_ns / MS))
    }

    /// Returns the first and the last tick that have a part of this millisecond. They differ if a
    /// tick is shorter than a millisecond. Above [`ReadableLayout::tick_max`], the top bit is set.
    ///
    /// # Errors
    /// [`OutOfRange::BeforeEpoch`] and [`OutOfRange::AfterEnd`].
    pub const fn ticks_at(&self, time: UnixMillis) -> Result<(Tick, Tick), OutOfRange> {
        let Some(since_ms) = time.get().checked_sub(self.epoch.get()) else {
            return Err(OutOfRange::BeforeEpoch { time, epoch: self.epoch });
        };
        let since_ns = (since_ms as u128).saturating_mul(MS_NS as u128);
        let first = self.tick_after(since_ns);
        let last = self.tick_after(since_ns.saturating_add(MS_NS.saturating_sub(1) as u128));
        let tick_max = self.tick_in(self.fields.time.bits);
        if first > tick_max {
            return Err(OutOfRange::AfterEnd { time, end: self.end() });
        }
        Ok((Tick::new(first), Tick::new(if last > tick_max { tick_max } else { last })))
    }

    /// Returns the tick that is under way this long after the epoch.
    const fn tick_after(&self, since_ns: u128) -> u64 {
        match since_ns.checked_div(self.unit_ns as u128) {
            Some(tick) => clamped(tick),
            // The unit is never 0: `checked` rejects it.
            None => u64::MAX,
        }
    }

    /// Packs the parts into one ID.
    ///
    /// # Errors
    /// [`OutOfRange::Field`] when a part does not fit its bits.
    pub const fn pack(&self, parts: Parts) -> Result<u64, OutOfRange> {
        let tick_max = self.tick_in(self.fields.time.bits);
        if let Err(error) = fits(Field::Time, parts.tick.get(), tick_max) {
            return Err(error);
        }
        if let Err(error) = fits(Field::Clock, parts.clock, self.clock_max()) {
            return Err(error);
        }
        if let Err(error) = fits(Field::Worker, parts.worker, self.worker_max()) {
            return Err(error);
        }
        if let Err(error) = fits(Field::Sequence, parts.sequence, self.sequence_max()) {
            return Err(error);
        }
        let tick = parts.tick.get();
        let units = self.units_in_second();
        let time = match (tick.checked_div(units), tick.checked_rem(units)) {
            (Some(seconds), Some(rest)) if self.time_low_bits > 0 => {
                (seconds << self.time_low_bits) | rest
            }
            _ => tick,
        };
        Ok(self.fields.placed(time, &parts))
    }

    /// Unpacks an ID into its parts.
    ///
    /// A split time whose low part counts past a second is read as a later second. No system makes
    /// such an ID, and [`ReadableLayout::pack`] does not lead back to it.
    ///
    /// # Errors
    /// [`OutOfRange::Field`] for [`Field::Id`] when the ID has more bits than the layout.
    pub const fn unpack(&self, id: u64) -> Result<Parts, OutOfRange> {
        if let Err(error) = fits(Field::Id, id, self.id_max()) {
            return Err(error);
        }
        let time = self.fields.time.get(id);
        let tick = match fields::split(time, self.time_low_bits) {
            Some((seconds, units)) => {
                seconds.saturating_mul(self.units_in_second()).saturating_add(units)
            }
            None => time,
        };
        Ok(self.fields.parts(Tick::new(tick), id))
    }

    /// Returns the worker's high and low part, if the layout splits it.
    #[must_use]
    pub const fn split_worker(&self, worker: u64) -> Option<(u64, u64)> {
        fields::split(worker, self.worker_low_bits)
    }

    /// Returns the highest tick of this many bits of time.
    const fn tick_in(&self, time_bits: u8) -> u64 {
        if self.time_low_bits == 0 {
            return low_bits(time_bits);
        }
        let seconds = low_bits(time_bits.saturating_sub(self.time_low_bits));
        let units = self.units_in_second();
        seconds.saturating_mul(units).saturating_add(units.saturating_sub(1))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "larger numbers are clamped before the cast")]
const fn clamped(number: u128) -> u64 {
    if number > u64::MAX as u128 { u64::MAX } else { number as u64 }
}
