//! What can be wrong with a layout, or with a value that is to go into one.

use core::fmt;

use crate::civil::Rfc3339;
use crate::time::UnixMillis;

/// A field of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The ticks since the epoch.
    Time,
    /// The clock sequence: raised when the clock goes back (article 000).
    Clock,
    /// Who minted the ID.
    Worker,
    /// The counter within one tick.
    Sequence,
    /// All bits together.
    Id,
}

impl Field {
    /// The name that the layout grammar and messages use.
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

/// A value that does not fit its layout. Nothing was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfRange {
    /// A field's value is above what its bits can hold.
    Field {
        /// Which field.
        field: Field,
        /// What it was given.
        value: u64,
        /// The highest value that fits.
        max: u64,
    },
    /// A time before the layout's epoch.
    BeforeEpoch {
        /// What it was given.
        time: UnixMillis,
        /// The first time that fits.
        epoch: UnixMillis,
    },
    /// A time after the last tick: the layout's years have run out.
    AfterEnd {
        /// What it was given.
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

/// A layout that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// More than 64 bits in all.
    TooWide {
        /// The sum of the widths.
        bits: u16,
    },
    /// A field that every layout needs has no bits.
    Missing {
        /// Which field.
        field: Field,
    },
    /// A field is named twice.
    Twice {
        /// Which field.
        field: Field,
    },
    /// Time must come first, or IDs would not sort by time.
    TimeNotFirst,
    /// The time unit must be 1 ms to 1 day.
    Unit {
        /// What it was given, in milliseconds.
        unit_ms: u32,
    },
    /// The low part of a split worker must be smaller than the worker field.
    Split {
        /// Bits of the low part.
        low_bits: u8,
        /// Bits of the worker field.
        worker_bits: u8,
    },
    /// The last tick would lie beyond what a 64-bit count of milliseconds can hold.
    EndBeyondTime,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooWide { bits } => {
                write!(f, "the fields add up to {bits} bits; a layout holds at most 64")
            }
            Self::Missing { field } => write!(f, "the layout has no bits for {field}"),
            Self::Twice { field } => write!(f, "the layout names {field} twice"),
            Self::TimeNotFirst => {
                f.write_str("time must be the layout's first field, or IDs would not sort by time")
            }
            Self::Unit { unit_ms } => {
                write!(f, "a time unit of {unit_ms} ms is not possible: take 1 ms to 86400000 ms")
            }
            Self::Split { low_bits, worker_bits } => write!(
                f,
                "a worker of {worker_bits} bits cannot be split into {low_bits} low bits and a rest"
            ),
            Self::EndBeyondTime => f.write_str(
                "the last tick lies beyond what 64 bits of milliseconds can hold: take fewer time bits or a smaller unit",
            ),
        }
    }
}

impl core::error::Error for LayoutError {}
