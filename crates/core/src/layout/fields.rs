//! The positions of all fields in an ID and their values, which minting and reading share.

use super::error::{Field, LayoutError};
use crate::time::{Tick, UnixMillis};

/// The epoch of a layout that names none: 2026-01-01T00:00:00Z.
pub const EPOCH_DEFAULT: UnixMillis = UnixMillis::new(1_767_225_600_000);

/// The largest time unit: one day, in milliseconds.
pub const UNIT_MS_MAX: u32 = 86_400_000;

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

/// The position of one field in an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FieldBits {
    /// Position of the field's lowest bit, counted from the ID's lowest bit.
    pub(super) shift: u8,
    /// Width in bits; 0 when the layout has no such field.
    pub(super) bits: u8,
}

impl FieldBits {
    const NONE: Self = Self { shift: 0, bits: 0 };

    pub(super) const fn max(self) -> u64 {
        low_bits(self.bits)
    }

    pub(super) const fn get(self, id: u64) -> u64 {
        if self.bits == 0 { 0 } else { (id >> self.shift) & self.max() }
    }

    const fn placed(self, value: u64) -> u64 {
        // A field without bits holds only 0, and its shift is 0.
        value << self.shift
    }
}

/// Returns a number with the `bits` lowest bits set; `bits` is at most 64.
pub(super) const fn low_bits(bits: u8) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> 64_u32.saturating_sub(bits as u32) }
}

/// Returns the high and the low part of a number whose low part has this many bits; `None` for 0.
pub(super) const fn split(number: u64, bits: u8) -> Option<(u64, u64)> {
    if bits == 0 { None } else { Some((number >> bits, number & low_bits(bits))) }
}

/// The positions of all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fields {
    pub(super) time: FieldBits,
    pub(super) clock: FieldBits,
    pub(super) worker: FieldBits,
    pub(super) sequence: FieldBits,
}

impl Fields {
    /// Returns the positions of fields that are listed from the highest bits to the lowest.
    pub(super) const fn new(fields: &[(Field, u8)]) -> Result<Self, LayoutError> {
        let mut all = Self {
            time: FieldBits::NONE,
            clock: FieldBits::NONE,
            worker: FieldBits::NONE,
            sequence: FieldBits::NONE,
        };
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
                Field::Time => &mut all.time,
                Field::Clock => &mut all.clock,
                Field::Worker => &mut all.worker,
                Field::Sequence => &mut all.sequence,
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
        if all.time.bits == 0 {
            return Err(LayoutError::Missing { field: Field::Time });
        }
        Ok(all)
    }

    /// Returns the position of a field; of all bits together for [`Field::Id`].
    pub(super) const fn of(&self, field: Field) -> FieldBits {
        match field {
            Field::Time => self.time,
            Field::Clock => self.clock,
            Field::Worker => self.worker,
            Field::Sequence => self.sequence,
            Field::Id => FieldBits { shift: 0, bits: self.total_bits() },
        }
    }

    pub(super) const fn total_bits(&self) -> u8 {
        // At most 64: `new` checks the sum.
        self.time
            .bits
            .saturating_add(self.clock.bits)
            .saturating_add(self.worker.bits)
            .saturating_add(self.sequence.bits)
    }

    /// Returns whether time is the first field, so that IDs sort by time.
    pub(super) const fn is_by_time(&self) -> bool {
        self.time.shift.saturating_add(self.time.bits) == self.total_bits()
    }

    /// Returns how many bits of the time leave the ID's top bit clear.
    pub(super) const fn positive_time_bits(&self) -> u8 {
        if self.is_by_time() && self.total_bits() == 64 {
            self.time.bits.saturating_sub(1)
        } else {
            self.time.bits
        }
    }

    /// Returns the fields that have bits, with their widths, from the highest to the lowest.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Field, u8)> + use<> {
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

    /// Checks that both parts of a split worker have bits.
    pub(super) const fn check_split(&self, low_bits: u8) -> Result<(), LayoutError> {
        if low_bits == 0 || low_bits >= self.worker.bits {
            return Err(LayoutError::Split { low_bits, worker_bits: self.worker.bits });
        }
        Ok(())
    }

    /// Returns the ID of these parts, which fit, with `time` in the bits of the time.
    pub(super) const fn placed(&self, time: u64, parts: &Parts) -> u64 {
        self.time.placed(time)
            | self.clock.placed(parts.clock)
            | self.worker.placed(parts.worker)
            | self.sequence.placed(parts.sequence)
    }

    /// Returns the parts of an ID, with a tick that the layout computed.
    pub(super) const fn parts(&self, tick: Tick, id: u64) -> Parts {
        Parts {
            tick,
            clock: self.clock.get(id),
            worker: self.worker.get(id),
            sequence: self.sequence.get(id),
        }
    }
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
