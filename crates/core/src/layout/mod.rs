//! The bit layouts of IDs.
//!
//! A [`Layout`] is a small run-time value, because operators choose it, not compilers. It is
//! checked once, where it is made; invalid `const` layouts do not compile. Packing is checked in
//! every build: nothing is masked, wrapped or truncated.
//!
//! A [`ReadableLayout`] also describes IDs that other systems made in ways in which nothing is
//! minted here, such as with the node above the time. Generators take a [`Layout`] only, and
//! [`ReadableLayout::mintable`] says why a layout is none.

mod error;
mod fields;
mod forecast;
mod grammar;
mod preset;
mod readable;

pub use error::{Field, LayoutError, OutOfRange};
pub use fields::{EPOCH_DEFAULT, Parts, UNIT_MS_MAX};
pub use forecast::{
    LIFETIME_MS_MIN, LIFETIME_WARN_MS, Lifetime, Need, NoLayout, Proposals, YEAR_MS, propose,
};
pub use grammar::{ParseLayoutError, Word};
pub use preset::{PRESETS, Preset};
pub use readable::ReadableLayout;

use self::error::fits;
use self::fields::{Fields, low_bits};
use self::readable::MS_NS;
use crate::time::{Tick, UnixMillis};

/// The division of an ID's bits: time first, then clock bits (if any), worker and sequence in any
/// order; a time unit and an epoch.
///
/// 64-bit layouts are legal (Discord, Instagram): they end when the top bit would be set, so that
/// every ID stays a positive signed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    fields: Fields,
    /// Bits of the low part of a split worker; 0 when the worker is one number.
    worker_low_bits: u8,
    unit_ms: u32,
    epoch: UnixMillis,
}

impl Layout {
    /// Returns the layout of time, worker and sequence in this order, with a unit of 1 ms and
    /// [`EPOCH_DEFAULT`].
    ///
    /// # Errors
    /// [`LayoutError`] when the widths do not make a layout.
    pub const fn new(
        time_bits: u8,
        worker_bits: u8,
        sequence_bits: u8,
    ) -> Result<Self, LayoutError> {
        Self::from_fields(&[
            (Field::Time, time_bits),
            (Field::Worker, worker_bits),
            (Field::Sequence, sequence_bits),
        ])
    }

    /// Returns the layout of the given fields from the highest bits to the lowest, with a unit of
    /// 1 ms and [`EPOCH_DEFAULT`]. Fields without bits may be left out, except time and sequence.
    ///
    /// # Errors
    /// [`LayoutError`] when time is not first, a field is missing or named twice, or there are more
    /// than 64 bits in all.
    pub const fn from_fields(fields: &[(Field, u8)]) -> Result<Self, LayoutError> {
        if fields.is_empty() || !matches!(fields[0].0, Field::Time) {
            return Err(LayoutError::TimeNotFirst);
        }
        match Fields::new(fields) {
            Ok(fields) => {
                Self { fields, worker_low_bits: 0, unit_ms: 1, epoch: EPOCH_DEFAULT }.checked()
            }
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

    /// Returns the same layout with another time unit, in milliseconds.
    ///
    /// # Errors
    /// [`LayoutError::Unit`] outside 1 to [`UNIT_MS_MAX`]; [`LayoutError::EndBeyondTime`] when the
    /// last tick no longer fits 64 bits of milliseconds.
    pub const fn with_unit_ms(mut self, unit_ms: u32) -> Result<Self, LayoutError> {
        self.unit_ms = unit_ms;
        self.checked()
    }

    /// Returns the same layout with its worker split for display into a high part and a low part of
    /// `low_bits`, as in Twitter's 5 + 5.
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

    const fn checked(self) -> Result<Self, LayoutError> {
        if !self.fields.is_by_time() {
            return Err(LayoutError::TimeNotFirst);
        }
        if self.fields.sequence.bits == 0 {
            return Err(LayoutError::Missing { field: Field::Sequence });
        }
        if self.unit_ms == 0 || self.unit_ms > UNIT_MS_MAX {
            return Err(LayoutError::Unit { unit_ms: self.unit_ms });
        }
        let Some(ticks) = self.tick_max().get().checked_add(1) else {
            return Err(LayoutError::EndBeyondTime);
        };
        let Some(span_ms) = ticks.checked_mul(self.unit_ms as u64) else {
            return Err(LayoutError::EndBeyondTime);
        };
        if self.epoch.get().checked_add(span_ms).is_none() {
            return Err(LayoutError::EndBeyondTime);
        }
        Ok(self)
    }

    /// Returns the total number of bits.
    #[must_use]
    pub const fn total_bits(&self) -> u8 {
        self.fields.total_bits()
    }

    /// Returns the width of a field in bits; 0 when the layout does not have it.
    #[must_use]
    pub const fn bits(&self, field: Field) -> u8 {
        match field {
            Field::Id => self.total_bits(),
            _ => self.fields.of(field).bits,
        }
    }

    /// Returns the fields that have bits, with their widths, from the highest to the lowest.
    pub fn fields(&self) -> impl Iterator<Item = (Field, u8)> + use<> {
        self.fields.iter()
    }

    /// Returns the position of a field's lowest bit, counted from the ID's lowest bit.
    #[must_use]
    pub const fn shift(&self, field: Field) -> u8 {
        self.fields.of(field).shift
    }

    /// Returns the bits of the low part of a split worker; 0 when it is one number.
    #[must_use]
    pub const fn worker_low_bits(&self) -> u8 {
        self.worker_low_bits
    }

    /// Returns the length of a tick, in milliseconds.
    #[must_use]
    pub const fn unit_ms(&self) -> u32 {
        self.unit_ms
    }

    /// Returns the start of tick 0.
    #[must_use]
    pub const fn epoch(&self) -> UnixMillis {
        self.epoch
    }

    /// Returns the last tick. In a 64-bit layout, this is the last one that leaves the top bit
    /// clear.
    #[must_use]
    pub const fn tick_max(&self) -> Tick {
        Tick::new(low_bits(self.fields.positive_time_bits()))
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

    /// Returns the highest ID.
    #[must_use]
    pub const fn id_max(&self) -> u64 {
        if self.total_bits() == 64 { low_bits(63) } else { low_bits(self.total_bits()) }
    }

    /// Returns the end of the layout's years: the first time after the last tick.
    #[must_use]
    pub const fn end(&self) -> UnixMillis {
        self.start_of(Tick::new(self.tick_max().get().saturating_add(1)))
    }

    /// Returns the start of a tick. Ticks past the end give times past the end, at most
    /// [`UnixMillis::MAX`].
    #[must_use]
    pub const fn start_of(&self, tick: Tick) -> UnixMillis {
        self.epoch.saturating_add(tick.get().saturating_mul(self.unit_ms as u64))
    }

    /// Returns the tick that contains `time`.
    ///
    /// # Errors
    /// [`OutOfRange::BeforeEpoch`] and [`OutOfRange::AfterEnd`].
    pub const fn tick_at(&self, time: UnixMillis) -> Result<Tick, OutOfRange> {
        let Some(since_ms) = time.get().checked_sub(self.epoch.get()) else {
            return Err(OutOfRange::BeforeEpoch { time, epoch: self.epoch });
        };
        // The unit is never 0: `checked` rejects it.
        #[allow(clippy::arithmetic_side_effects)]
        let tick = since_ms / self.unit_ms as u64;
        if tick > self.tick_max().get() {
            return Err(OutOfRange::AfterEnd { time, end: self.end() });
        }
        Ok(Tick::new(tick))
    }

    /// Packs the parts into one ID.
    ///
    /// # Errors
    /// [`OutOfRange::Field`], in release builds too, when a part does not fit its bits.
    pub const fn pack(&self, parts: Parts) -> Result<u64, OutOfRange> {
        if let Err(error) = fits(Field::Time, parts.tick.get(), self.tick_max().get()) {
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
        Ok(self.fields.placed(parts.tick.get(), &parts))
    }

    /// Unpacks an ID into its parts.
    ///
    /// # Errors
    /// [`OutOfRange::Field`] for [`Field::Id`] when the ID has more bits than the layout.
    pub const fn unpack(&self, id: u64) -> Result<Parts, OutOfRange> {
        if let Err(error) = fits(Field::Id, id, self.id_max()) {
            return Err(error);
        }
        Ok(self.fields.parts(Tick::new(self.fields.time.get(id)), id))
    }

    /// Returns the ID of a time, worker and sequence, with clock sequence 0.
    ///
    /// # Errors
    /// [`OutOfRange`] for a time outside the layout's years or a part that does not fit.
    pub const fn compose(
        &self,
        time: UnixMillis,
        worker: u64,
        sequence: u64,
    ) -> Result<u64, OutOfRange> {
        match self.tick_at(time) {
            Ok(tick) => self.pack(Parts { tick, clock: 0, worker, sequence }),
            Err(error) => Err(error),
        }
    }

    /// Returns the start of the ID's tick.
    ///
    /// # Errors
    /// The same as [`Layout::unpack`].
    pub const fn time_of(&self, id: u64) -> Result<UnixMillis, OutOfRange> {
        match self.unpack(id) {
            Ok(parts) => Ok(self.start_of(parts.tick)),
            Err(error) => Err(error),
        }
    }

    /// Returns the worker's high and low part, if the layout splits it.
    #[must_use]
    pub const fn split_worker(&self, worker: u64) -> Option<(u64, u64)> {
        fields::split(worker, self.worker_low_bits)
    }

    /// Returns the same layout as one that reads IDs.
    #[must_use]
    pub const fn readable(&self) -> ReadableLayout {
        ReadableLayout {
            fields: self.fields,
            worker_low_bits: self.worker_low_bits,
            time_low_bits: 0,
            // At most a day.
            unit_ns: (self.unit_ms as u64).saturating_mul(MS_NS),
            epoch: self.epoch,
        }
    }
}

impl ReadableLayout {
    /// Returns the layout with which IDs of this form are minted.
    ///
    /// # Errors
    /// [`LayoutError`] with the reason why none can be: time is not the first field or has two
    /// parts, there is no sequence, or the unit is not a whole number of milliseconds.
    pub const fn mintable(&self) -> Result<Layout, LayoutError> {
        if self.time_low_bits > 0 {
            return Err(LayoutError::TimeSplit);
        }
        if self.unit_ns % MS_NS != 0 {
            return Err(LayoutError::UnitFraction { unit_ns: self.unit_ns });
        }
        Layout {
            fields: self.fields,
            worker_low_bits: self.worker_low_bits,
            unit_ms: self.unit_ms(),
            epoch: self.epoch,
        }
        .checked()
    }
}
