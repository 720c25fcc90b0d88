//! Decimal numbers with a sign.

use super::error::TextError;
use super::radix::Radix;

/// The highest number after a minus sign.
const NEGATIVE_MAX: u64 = 1 << 63;

/// Parses a decimal number of 64 bits, with or without a minus sign. Java and SQL show a number
/// whose top bit is set as a negative one; the returned bits are the same.
///
/// ```
/// use snowmint_core::text::decode_signed;
/// assert_eq!(decode_signed("-1"), Ok(u64::MAX));
/// assert_eq!(decode_signed("18446744073709551615"), Ok(u64::MAX));
/// ```
///
/// # Errors
/// Those of [`Radix::decode`]; [`TextError::TooLow`] below -2^63.
pub fn decode_signed(text: &str) -> Result<u64, TextError> {
    let Some(digits) = text.strip_prefix('-') else { return Radix::Decimal.decode(text) };
    match Radix::Decimal.decode(digits) {
        Ok(0) => Err(TextError::LeadingZero { position: 1 }),
        Ok(number) if number > NEGATIVE_MAX => Err(TextError::TooLow),
        Ok(number) => Ok(number.wrapping_neg()),
        Err(TextError::Empty) => Err(TextError::BadCharacter { position: 0, found: '-' }),
        Err(TextError::Overflow) => Err(TextError::TooLow),
        Err(TextError::BadCharacter { position, found }) => {
            Err(TextError::BadCharacter { position: position.saturating_add(1), found })
        }
        Err(TextError::LeadingZero { position }) => {
            Err(TextError::LeadingZero { position: position.saturating_add(1) })
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_is_the_same_64_bits() {
        for (text, id) in [
            ("0", 0),
            ("7", 7),
            ("9223372036854775807", u64::MAX >> 1),
            ("18446744073709551615", u64::MAX),
            ("-1", u64::MAX),
            ("-7055142081907384320", 11_391_601_991_802_167_296),
            ("-9223372036854775808", 1 << 63),
        ] {
            assert_eq!(decode_signed(text), Ok(id), "{text}");
        }
    }

    #[test]
    fn one_negative_number_has_one_text() {
        let bad = |position, found| TextError::BadCharacter { position, found };
        for (text, error) in [
            ("-", bad(0, '-')),
            ("--1", bad(1, '-')),
            ("-1x", bad(2, 'x')),
            ("+1", bad(0, '+')),
            ("-0", TextError::LeadingZero { position: 1 }),
            ("-01", TextError::LeadingZero { position: 1 }),
            ("-9223372036854775809", TextError::TooLow),
            ("-18446744073709551616", TextError::TooLow),
            ("18446744073709551616", TextError::Overflow),
        ] {
            assert_eq!(decode_signed(text), Err(error), "{text}");
        }
    }
}
