//! What can be wrong with an ID's text.

use core::fmt;

use super::Format;
use crate::civil::TimeError;
use crate::layout::{Field, OutOfRange};

/// A text that is not an ID in the format asked for, or an ID that has no text in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// Nothing to read.
    Empty,
    /// More characters than the highest number has.
    TooLong {
        /// How many bytes there are.
        bytes: usize,
        /// How many there may be.
        bytes_max: usize,
    },
    /// A padded form has exactly one length.
    Length {
        /// How many bytes there are.
        bytes: usize,
        /// How many there must be.
        bytes_wanted: usize,
    },
    /// A character that the format does not use.
    BadCharacter {
        /// Where, in bytes from the start.
        position: usize,
        /// The character.
        found: char,
    },
    /// A character that some decoders take for another. Here, one number has one text.
    Alias {
        /// Where, in bytes from the start.
        position: usize,
        /// The character.
        found: char,
        /// The character that the format writes for it.
        canonical: char,
    },
    /// A zero that the format would not write.
    LeadingZero {
        /// Where, in bytes from the start.
        position: usize,
    },
    /// A number above 2^64 - 1.
    Overflow,
    /// The friendly forms need the ID's layout.
    NeedsLayout,
    /// The friendly forms write years with four digits.
    YearPast9999,
    /// A friendly text has one part for the time and one for each other field of the layout.
    Parts {
        /// How many parts there are.
        parts: usize,
        /// How many the layout has.
        parts_wanted: usize,
    },
    /// The first part of a friendly text is no date and time.
    Time(TimeError),
    /// A friendly text's time lies within a tick: the layout's ticks start at other times.
    WithinTick {
        /// The length of a tick, in milliseconds.
        unit_ms: u32,
        /// Milliseconds since the tick began.
        after_start_ms: u64,
    },
    /// One field of a friendly text is not a number as the format writes it.
    Field {
        /// Which field.
        field: Field,
        /// Where its part starts, in bytes.
        position: usize,
    },
    /// A value that the layout does not hold.
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
            Self::Empty => f.write_str("an empty text is no ID"),
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "{bytes} characters are too many: the highest ID has {bytes_max}")
            }
            Self::Length { bytes, bytes_wanted } => {
                write!(f, "{bytes} characters: this form has exactly {bytes_wanted}")
            }
            Self::BadCharacter { position, found } => {
                write!(f, "{found:?} at byte {position} is not a character of this format")
            }
            Self::Alias { position, found, canonical } => write!(
                f,
                "{found:?} at byte {position} is not how this format is written: {canonical:?} is"
            ),
            Self::LeadingZero { position } => write!(
                f,
                "the zero at byte {position} is not how this format is written: leave leading zeros out"
            ),
            Self::Overflow => write!(f, "the number is above {}", u64::MAX),
            Self::NeedsLayout => {
                f.write_str("the friendly form shows the fields of a layout: say which layout")
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

/// No format has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such format: there are ")?;
        for (index, format) in Format::ALL.into_iter().enumerate() {
            write!(f, "{}`{format}`", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownFormat {}
