//! The errors of layouts, and of values that do not fit one.

use core::fmt;

use crate::civil::Rfc3339;
use crate::time::UnixMillis;

/// A field of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The ticks since the epoch.
    Time,
    /// The clock sequence: raised when the clock steps back (article 000).
    Clock,
    /// The worker number of the minter.
    Worker,
    /// The counter within one tick.
    Sequence,
    /// All bits together.
    Id,
}

impl Field {
    /// Returns the name that the layout grammar and messages use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Clock => "clock",
            Self::Worker => "worker",
            Self::Sequence => "sequence",
            Self::Id => "id",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a value that does not fit its layout. Nothing was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfRange {
    /// A field's value is above what its bits can hold.
    Field {
        /// The field.
        field: Field,
        /// The value that was given.
        value: u64,
        /// The highest value that fits.
        max: u64,
    },
    /// The time is before the layout's epoch.
    BeforeEpoch {
        /// The time that was given.
        time: UnixMillis,
        /// The first time that fits.
        epoch: UnixMillis,
    },
    /// The time is after the last tick: the layout's years have run out.
    AfterEnd {
        /// The time that was given.
        time: UnixMillis,
        /// The first time that no longer fits.
        end: UnixMillis,
    },
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Field { field, value, max } => {
                write!(f, "{field} {value} is out of range: the layout holds 0 to {max}")
            }
            Self::BeforeEpoch { time, epoch } => {
                write!(f, "time {} is before the layout's epoch, {}", Rfc3339(time), Rfc3339(epoch))
            }
            Self::AfterEnd { time, end } => write!(
                f,
                "time {} is past the end of the layout, {}: take a newer epoch or more time bits",
                Rfc3339(time),
                Rfc3339(end)
            ),
        }
    }
}

impl core::error::Error for OutOfRange {}

pub(super) const fn fits(field: Field, value: u64, max: u64) -> Result<(), OutOfRange> {
    if value > max { Err(OutOfRange::Field { field, value, max }) } else { Ok(()) }
}

/// The error of an invalid layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// The fields have more than 64 bits in all.
    TooWide {
        /// The sum of the widths.
        bits: u16,
    },
    /// A field that every layout needs has no bits.
    Missing {
        /// The field without bits.
        field: Field,
    },
    /// A field is named twice.
    Twice {
        /// The field named twice.
        field: Field,
    },
    /// Time is not the first field. IDs would not sort by time otherwise.
    TimeNotFirst,
    /// The time has two parts. Minting adds to one number.
    TimeSplit,
    /// The low part of a split time cannot count the units of a second, or the high part has no
    /// bits.
    TimeParts {
        /// Bits of the low part.
        low_bits: u8,
        /// The time unit, in nanoseconds.
        unit_ns: u64,
    },
    /// The time unit is not 1 ms to 1 day.
    Unit {
        /// The unit that was given, in milliseconds.
        unit_ms: u32,
    },
    /// The time unit of a layout that only reads is not 1 ns to 1 day.
    UnitNs {
        /// The unit that was given, in nanoseconds.
        unit_ns: u64,
    },
    /// The time unit is not a whole number of milliseconds. Clocks are read in milliseconds.
    UnitFraction {
        /// The unit, in nanoseconds.
        unit_ns: u64,
    },
    /// The low part of a split worker is not smaller than the worker field, or has no bits.
    Split {
        /// Bits of the low part.
        low_bits: u8,
        /// Bits of the worker field.
        worker_bits: u8,
    },
    /// The last tick lies beyond what a 64-bit count of milliseconds can hold.
    EndBeyondTime,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooWide { bits } => {
                write!(f, "the fields add up to {bits} bits; a layout holds at most 64")
            }
            Self::Missing { field: Field::Sequence } => f.write_str(
                "the layout has no bits for sequence, so it cannot mint: two IDs of one tick would be the same",
            ),
            Self::Missing { field } => write!(f, "the layout has no bits for {field}"),
            Self::Twice { field } => write!(f, "the layout names {field} twice"),
            Self::TimeNotFirst => f.write_str(
                "time is not the layout's first field, so it cannot mint: IDs would not sort by time",
            ),
            Self::TimeSplit => f.write_str(
                "the layout's time has two parts, so it cannot mint: write the time as one number",
            ),
            Self::TimeParts { low_bits, unit_ns } => write!(
                f,
                "{low_bits} low bits of the time cannot count the units of {unit_ns} ns in a second: \
                 give them more bits, and leave some to the seconds"
            ),
            Self::Unit { unit_ms } => {
                write!(f, "a time unit of {unit_ms} ms is not possible: take 1 ms to 86400000 ms")
            }
            Self::UnitNs { unit_ns } => {
                write!(f, "a time unit of {unit_ns} ns is not possible: take 1 ns to 1 day")
            }
            Self::UnitFraction { unit_ns } => write!(
                f,
                "a time unit of {unit_ns} ns cannot mint: clocks are read in milliseconds, so take 1ms or more"
            ),
            Self::Split { low_bits, worker_bits } => write!(
                f,
                "a worker of {worker_bits} bits cannot have {low_bits} low bits: give each part at least one bit"
            ),
            Self::EndBeyondTime => f.write_str(
                "the last tick lies beyond what 64 bits of milliseconds can hold: take fewer time bits or a smaller unit",
            ),
        }
    }
}

impl core::error::Error for LayoutError {}
