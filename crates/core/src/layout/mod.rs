//! The bit layouts of IDs.
//!
//! A [`Layout`] is a small run-time value, because operators choose it, not compilers. It is
//! checked once, where it is made; invalid `const` layouts do not compile. Packing is checked in
//! every build: nothing is masked, wrapped or truncated.

mod error;
mod forecast;
mod grammar;
mod preset;

pub use error::{Field, LayoutError, OutOfRange};
pub use forecast::{
    LIFETIME_MS_MIN, LIFETIME_WARN_MS, Lifetime, Need, NoLayout, Proposals, YEAR_MS, propose,
};
pub use grammar::{ParseLayoutError, Word};
pub use preset::{PRESETS, Preset};

use crate::time::{Tick, UnixMillis};

/// The epoch of a layout that names none: 2026-01-01T00:00:00Z.
pub const EPOCH_DEFAULT: UnixMillis = UnixMillis::new(1_767_225_600_000);

/// The largest time unit: one day, in milliseconds.
pub const UNIT_MS_MAX: u32 = 86_400_000;

/// The position of one field in an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FieldBits {
    /// Position of the field's lowest bit, counted from the ID's lowest bit.
    shift: u8,
    /// Width in bits; 0 when the layout has no such field.
    bits: u8,
}

impl FieldBits {
    const NONE: Self = Self { shift: 0, bits: 0 };

    const fn max(self) -> u64 {
        low_bits(self.bits)
    }

    const fn get(self, id: u64) -> u64 {
        if self.bits == 0 { 0 } else { (id >> self.shift) & self.max() }
    }
}

/// Returns a number with the `bits` lowest bits set; `bits` is at most 64.
const fn low_bits(bits: u8) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> 64_u32.saturating_sub(bits as u32) }
}

/// The division of an ID's bits: time first, then clock bits (if any), worker and sequence in any
/// order; a time unit and an epoch.
///
/// 64-bit layouts are legal (Discord, Instagram): they end when the top bit would be set, so that
/// every ID stays a positive signed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    time: FieldBits,
    clock: FieldBits,
    worker: FieldBits,
    sequence: FieldBits,
    /// Bits of the low part of a split worker; 0 when the worker is one number.
    worker_low_bits: u8,
    unit_ms: u32,
    epoch: UnixMillis,
}

/// The values inside one ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Ticks since the epoch.
    pub tick: Tick,
    /// The clock sequence; 0 where the layout has none.
    pub clock: u64,
    /// The worker number of the minter; 0 where the layout has no worker.
    pub worker: u64,
    /// The counter within the tick.
    pub sequence: u64,
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
        let mut layout = Self {
            time: FieldBits::NONE,
            clock: FieldBits::NONE,
            worker: FieldBits::NONE,
            sequence: FieldBits::NONE,
            worker_low_bits: 0,
            unit_ms: 1,
            epoch: EPOCH_DEFAULT,
        };
        if fields.is_empty() || !matches!(fields[0].0, Field::Time) {
            return Err(LayoutError::TimeNotFirst);
        }
        let mut used_bits: u16 = 0;
        let mut index = fields.len();
        while index > 0 {
            index = index.saturating_sub(1);
            let (field, bits) = fields[index];
            let total = used_bits.saturating_add(bits as u16);
            if total > 64 {
                return Err(LayoutError::TooWide { bits: sum_bits(fields) });
            }
            let field_bits = match field {
                Field::Time => &mut layout.time,
                Field::Clock => &mut layout.clock,
                Field::Worker => &mut layout.worker,
                Field::Sequence => &mut layout.sequence,
                Field::Id => return Err(LayoutError::Missing { field }),
            };
            if field_bits.bits != 0 {
                return Err(LayoutError::Twice { field });
            }
            if bits > 0 {
                // At most 64, so it fits a byte.
                *field_bits = FieldBits { shift: used_bits.to_le_bytes()[0], bits };
            }
            used_bits = total;
        }
        if layout.time.bits == 0 {
            return Err(LayoutError::Missing { field: Field::Time });
        }
        if layout.sequence.bits == 0 {
            return Err(LayoutError::Missing { field: Field::Sequence });
        }
        layout.checked()
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
        if low_bits == 0 || low_bits >= self.worker.bits {
            return Err(LayoutError::Split { low_bits, worker_bits: self.worker.bits });
        }
        self.worker_low_bits = low_bits;
        Ok(self)
    }

    const fn checked(self) -> Result<Self, LayoutError> {
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
        // Time is the highest field, so its end is the ID's width. At most 64.
        self.time.shift.saturating_add(self.time.bits)
    }

    /// Returns the width of a field in bits; 0 when the layout does not have it.
    #[must_use]
    pub const fn bits(&self, field: Field) -> u8 {
        match field {
            Field::Time => self.time.bits,
            Field::Clock => self.clock.bits,
            Field::Worker => self.worker.bits,
            Field::Sequence => self.sequence.bits,
            Field::Id => self.total_bits(),
        }
    }

    /// Returns the fields that have bits, with their widths, from the highest to the lowest.
    pub fn fields(&self) -> impl Iterator<Item = (Field, u8)> + use<> {
        let mut fields = [
            (Field::Time, self.time),
            (Field::Clock, self.clock),
            (Field::Worker, self.worker),
            (Field::Sequence, self.sequence),
        ];
        fields.sort_unstable_by_key(|(_, field_bits)| core::cmp::Reverse(field_bits.shift));
        fields
            .into_iter()
            .filter(|(_, field_bits)| field_bits.bits > 0)
            .map(|(field, field_bits)| (field, field_bits.bits))
    }

    /// Returns the position of a field's lowest bit, counted from the ID's lowest bit.
    #[must_use]
    pub const fn shift(&self, field: Field) -> u8 {
        match field {
            Field::Time => self.time.shift,
            Field::Clock => self.clock.shift,
            Field::Worker => self.worker.shift,
            Field::Sequence => self.sequence.shift,
            Field::Id => 0,
        }
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
        let bits =
            if self.total_bits() == 64 { self.time.bits.saturating_sub(1) } else { self.time.bits };
        Tick::new(low_bits(bits))
    }

    /// Returns the highest clock sequence.
    #[must_use]
    pub const fn clock_max(&self) -> u64 {
        self.clock.max()
    }

    /// Returns the highest worker number.
    #[must_use]
    pub const fn worker_max(&self) -> u64 {
        self.worker.max()
    }

    /// Returns the highest sequence number.
    #[must_use]
    pub const fn sequence_max(&self) -> u64 {
        self.sequence.max()
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
        Ok(placed(parts.tick.get(), self.time)
            | placed(parts.clock, self.clock)
            | placed(parts.worker, self.worker)
            | placed(parts.sequence, self.sequence))
    }

    /// Unpacks an ID into its parts.
    ///
    /// # Errors
    /// [`OutOfRange::Field`] for [`Field::Id`] when the ID has more bits than the layout.
    pub const fn unpack(&self, id: u64) -> Result<Parts, OutOfRange> {
        if let Err(error) = fits(Field::Id, id, self.id_max()) {
            return Err(error);
        }
        Ok(Parts {
            tick: Tick::new(self.time.get(id)),
            clock: self.clock.get(id),
            worker: self.worker.get(id),
            sequence: self.sequence.get(id),
        })
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
        if self.worker_low_bits == 0 {
            return None;
        }
        Some((worker >> self.worker_low_bits, worker & low_bits(self.worker_low_bits)))
    }
}

const fn placed(value: u64, field_bits: FieldBits) -> u64 {
    // A field without bits holds only 0, and its shift is 0.
    value << field_bits.shift
}

const fn fits(field: Field, value: u64, max: u64) -> Result<(), OutOfRange> {
    if value > max { Err(OutOfRange::Field { field, value, max }) } else { Ok(()) }
}

const fn sum_bits(fields: &[(Field, u8)]) -> u16 {
    let mut sum: u16 = 0;
    let mut index = 0;
    while index < fields.len() {
        sum = sum.saturating_add(fields[index].1 as u16);
        index = index.saturating_add(1);
    }
    sum
}
