//! IDs as text, and back.
//!
//! Every form has exactly one text for a number, and decoding accepts no other. It rejects plus
//! signs, spaces, the other case of letters, and leading zeros (except in padded forms, which have
//! all of them). So systems that compare texts never see one ID as two.
//!
//! Texts of a padded form all have one length, so that they sort byte by byte as the numbers do.
//!
//! Nothing allocates: [`Radix::write`] fills a buffer on the caller's stack, and [`Text`] is such a
//! buffer.

mod error;
mod friendly;
mod radix;

use core::fmt;
use core::str::FromStr;

pub use error::{TextError, UnknownFormat};
pub use radix::{DIGITS_MAX, Digits, Radix};

use crate::layout::Layout;

/// Length of the longest text in bytes: a friendly one.
const TEXT_BYTES_MAX: usize = 48;

/// A text on the stack.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    start: u8,
    end: u8,
}

impl Text {
    /// Returns the text as ASCII bytes, at no cost.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(usize::from(self.start)..usize::from(self.end)).unwrap_or_default()
    }

    /// Returns the text. Checks again that it is valid UTF-8, which takes some nanoseconds.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII is ever written.
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl core::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The text format of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The shortest form of a number.
    Number(Radix),
    /// A number with leading zeros up to the length of the highest; its texts sort as the numbers
    /// do.
    Padded(Radix),
    /// The time in UTC and the layout's other fields, in the order of their bits:
    /// `20160430111825796-1-7`. Needs the layout.
    Friendly,
    /// The form of [`Format::Friendly`] with leading zeros; its texts sort as the numbers do:
    /// `20160430111825796-0001-0007`.
    FriendlyPadded,
}

impl Default for Format {
    /// Returns the decimal format.
    fn default() -> Self {
        Self::Number(Radix::Decimal)
    }
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 14] = [
        Self::Number(Radix::Decimal),
        Self::Number(Radix::Hex),
        Self::Number(Radix::Base36),
        Self::Number(Radix::Base62),
        Self::Number(Radix::Base32),
        Self::Number(Radix::Base58),
        Self::Friendly,
        Self::Padded(Radix::Decimal),
        Self::Padded(Radix::Hex),
        Self::Padded(Radix::Base36),
        Self::Padded(Radix::Base62),
        Self::Padded(Radix::Base32),
        Self::Padded(Radix::Base58),
        Self::FriendlyPadded,
    ];

    /// Returns the format's name in configuration and commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Number(radix) => radix.name(),
            Self::Padded(Radix::Decimal) => "decimal-padded",
            Self::Padded(Radix::Hex) => "hex-padded",
            Self::Padded(Radix::Base36) => "base36-padded",
            Self::Padded(Radix::Base62) => "base62-padded",
            Self::Padded(Radix::Base32) => "base32-padded",
            Self::Padded(Radix::Base58) => "base58-padded",
            Self::Friendly => "friendly",
            Self::FriendlyPadded => "friendly-padded",
        }
    }

    /// Returns the same format with leading zeros, so that texts sort as the numbers do.
    #[must_use]
    pub const fn padded(self) -> Self {
        match self {
            Self::Number(radix) | Self::Padded(radix) => Self::Padded(radix),
            Self::Friendly | Self::FriendlyPadded => Self::FriendlyPadded,
        }
    }

    /// Returns whether encoding and decoding need the ID's layout.
    #[must_use]
    pub const fn needs_layout(self) -> bool {
        matches!(self, Self::Friendly | Self::FriendlyPadded)
    }

    /// Writes an ID. Only the friendly forms use the layout.
    ///
    /// # Errors
    /// Only in the friendly forms: [`TextError::NeedsLayout`], [`TextError::OutOfRange`] for an ID
    /// outside the layout, [`TextError::YearPast9999`].
    pub fn encode(self, id: u64, layout: Option<&Layout>) -> Result<Text, TextError> {
        match self {
            Self::Number(radix) => Ok(radix.encode(id)),
            Self::Padded(radix) => Ok(radix.encode_padded(id)),
            Self::Friendly => friendly::encode(id, layout.ok_or(TextError::NeedsLayout)?, false),
            Self::FriendlyPadded => {
                friendly::encode(id, layout.ok_or(TextError::NeedsLayout)?, true)
            }
        }
    }

    /// Parses the text that [`Format::encode`] writes, and no other.
    ///
    /// # Errors
    /// [`TextError`] with the position of the error.
    pub fn decode(self, text: &str, layout: Option<&Layout>) -> Result<u64, TextError> {
        match self {
            Self::Number(radix) => radix.decode(text),
            Self::Padded(radix) => radix.decode_padded(text),
            Self::Friendly => friendly::decode(text, layout.ok_or(TextError::NeedsLayout)?, false),
            Self::FriendlyPadded => {
                friendly::decode(text, layout.ok_or(TextError::NeedsLayout)?, true)
            }
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}
