//! The text formats of an ID, by name.

use core::fmt;
use core::str::FromStr;

use super::radix::Radix;

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

/// The error of a name that no format has.
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
