//! The errors of an ID's text.

use core::fmt;

use crate::civil::TimeError;
use crate::layout::{Field, OutOfRange};

/// The error of a text that is not an ID in the requested format, or of an ID without a text in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// The text is empty.
    Empty,
    /// The text has more characters than the highest number.
    TooLong {
        /// Length of the text in bytes.
        bytes: usize,
        /// Maximum length in bytes.
        bytes_max: usize,
    },
    /// The text of a padded form does not have its exact length.
    Length {
        /// Length of the text in bytes.
        bytes: usize,
        /// Required length in bytes.
        bytes_wanted: usize,
    },
    /// The format does not use this character.
    BadCharacter {
        /// Position in bytes from the start.
        position: usize,
        /// The character.
        found: char,
    },
    /// The text has a zero that the format would not write.
    LeadingZero {
        /// Position in bytes from the start.
        position: usize,
    },
    /// The number is above 2^64 - 1.
    Overflow,
    /// The number is below -2^63.
    TooLow,
    /// The layout is missing: the friendly forms need it.
    NeedsLayout,
    /// The year has more than four digits, which the friendly forms cannot write.
    YearPast9999,
    /// The number of parts is wrong: a friendly text has one for the time and one for each other
    /// field.
    Parts {
        /// Number of parts in the text.
        parts: usize,
        /// Number of parts that the layout needs.
        parts_wanted: usize,
    },
    /// The first part of a friendly text is not a date and time.
    Time(TimeError),
    /// A friendly text's time lies within a tick: the layout's ticks start at other times.
    WithinTick {
        /// The length of a tick, in milliseconds.
        unit_ms: u32,
        /// Milliseconds since the start of the tick.
        after_start_ms: u64,
    },
    /// One field of a friendly text is not a number in the format's form.
    Field {
        /// The field.
        field: Field,
        /// Start of the field's part, in bytes.
        position: usize,
    },
    /// The layout cannot hold the value.
    OutOfRange(OutOfRange),
}

impl From<OutOfRange> for TextError {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("an empty text is not an ID"),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "{bytes} characters are too many: the highest ID has {bytes_max}")
            }
            Self::Length { bytes, bytes_wanted } => {
                write!(f, "{bytes} characters: this form has exactly {bytes_wanted}")
            }
            Self::BadCharacter { position, found } => {
                write!(f, "{found:?} at byte {position} is not a character of this format")
            }
            Self::LeadingZero { position } => write!(
                f,
                "the zero at byte {position} is not how this format is written: leave leading zeros out"
            ),
            Self::Overflow => write!(f, "the number is above {}", u64::MAX),
            Self::TooLow => write!(f, "the number is below {}", i64::MIN),
            Self::NeedsLayout => {
                f.write_str("the friendly form shows the fields of a layout; name the layout")
            }
            Self::YearPast9999 => {
                f.write_str("the friendly form writes four digits of year: take another format")
            }
            Self::Parts { parts, parts_wanted } => write!(
                f,
                "{parts} parts between hyphens: the time and the layout's other fields are {parts_wanted}"
            ),
            Self::Time(error) => write!(f, "the time is not yyyyMMddHHmmssSSS in UTC: {error}"),
            Self::WithinTick { unit_ms, after_start_ms } => write!(
                f,
                "the time is {after_start_ms} ms into a tick of {unit_ms} ms: no ID of the layout shows it"
            ),
            Self::Field { field, position } => {
                write!(f, "the {field} at byte {position} is not a number as this format writes it")
            }
            Self::OutOfRange(error) => fmt::Display::fmt(&error, f),
        }
    }
}

impl core::error::Error for TextError {}
