//! IDs as text, and back.
//!
//! Every form writes exactly one text for a number. Decoding also reads hex, base 36 and Crockford's
//! base 32 in the other case, which other systems write, and Crockford's `I`, `L` and `O`. It rejects
//! plus signs, spaces and leading zeros (except in padded forms, which have all of them). So where
//! IDs are written here, systems that compare texts never see one ID as two.
//!
//! Texts of a padded form all have one length, so that they sort byte by byte as the numbers do.
//!
//! Nothing allocates: [`Radix::write`] fills a buffer on the caller's stack, and [`Text`] is such a
//! buffer.

mod buffer;
mod error;
mod format;
mod friendly;
mod radix;
mod signed;

pub use buffer::Text;
pub use error::TextError;
pub use format::{Format, UnknownFormat};
pub use radix::{DIGITS_MAX, Digits, Radix};
pub use signed::decode_signed;

use crate::layout::Layout;

impl Format {
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

    /// Parses the text that [`Format::encode`] writes; digits of hex, base 36 and Crockford's base
    /// 32 in either case.
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
