//! Numbers in six bases, two digits at a time.
//!
//! Each base has a table of all pairs of its digits. A number is cut into blocks that fit 32 bits
//! by one division each; the blocks are independent, so that a processor works on them in parallel.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "divisors are constants above 0, lengths are at most 20, sums of digits are checked"
)]

use super::buffer::{TEXT_BYTES_MAX, Text};
use super::error::TextError;

/// Digits of the highest number in the base that needs most: decimal.
pub const DIGITS_MAX: usize = 20;

/// A buffer for the digits of one number.
pub type Digits = [u8; DIGITS_MAX];

/// A base in which numbers can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Radix {
    /// Base 10.
    Decimal,
    /// Base 16, digits `0-9a-f`.
    Hex,
    /// Base 36, digits `0-9a-z`, as JavaScript's and Java's own conversions write it.
    Base36,
    /// Base 62, digits `0-9A-Za-z`: in byte order, so that padded texts sort.
    Base62,
    /// Crockford's base 32: digits and capitals without `I`, `L`, `O`, `U`. Decoding reads small
    /// letters too, `I` and `L` as 1, and `O` as 0, but no hyphens and no check symbol.
    Base32,
    /// Base 58 as Bitcoin writes it: without `0`, `O`, `I`, `l`; zero is `1`.
    Base58,
}

type Pairs<const SQUARE: usize> = [[u8; 2]; SQUARE];

const DECIMAL: &[u8; 10] = b"0123456789";
const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE32: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

static DECIMAL_PAIRS: Pairs<100> = pairs(DECIMAL);
static HEX_PAIRS: Pairs<256> = pairs(HEX);
static BASE36_PAIRS: Pairs<1_296> = pairs(BASE36);
static BASE62_PAIRS: Pairs<3_844> = pairs(BASE62);
static BASE32_PAIRS: Pairs<1_024> = pairs(BASE32);
static BASE58_PAIRS: Pairs<3_364> = pairs(BASE58);

const fn pairs<const SQUARE: usize>(alphabet: &[u8]) -> Pairs<SQUARE> {
    assert!(alphabet.len() * alphabet.len() == SQUARE);
    let mut pairs = [[0; 2]; SQUARE];
    let mut index = 0;
    while index < SQUARE {
        pairs[index] = [alphabet[index / alphabet.len()], alphabet[index % alphabet.len()]];
        index += 1;
    }
    pairs
}

/// The value of each byte as a digit, or [`BAD`].
type Values = [u8; 256];
/// A byte that the base does not use.
const BAD: u8 = 0xFF;

static DECIMAL_VALUES: Values = values(DECIMAL);
static HEX_VALUES: Values = values(HEX);
static BASE36_VALUES: Values = values(BASE36);
static BASE62_VALUES: Values = values(BASE62);
static BASE32_VALUES: Values = values(BASE32);
static BASE58_VALUES: Values = values(BASE58);

#[allow(clippy::cast_possible_truncation, reason = "the longest alphabet has 62 characters")]
const fn values(alphabet: &[u8]) -> Values {
    let mut values = [BAD; 256];
    let mut index = 0;
    while index < alphabet.len() {
        let digit = alphabet[index];
        values[digit as usize] = index as u8;
        // Bases that use only one case are read in both: CosId writes base 36 in capitals.
        if alphabet.len() <= 36 && digit.is_ascii_alphabetic() {
            values[(digit ^ CASE_BIT) as usize] = index as u8;
        }
        index += 1;
    }
    if alphabet.len() == 32 {
        let mut index = 0;
        while index < CROCKFORD_ALIASES.len() {
            let (alias, value) = CROCKFORD_ALIASES[index];
            values[alias as usize] = value;
            values[(alias ^ CASE_BIT) as usize] = value;
            index += 1;
        }
    }
    values
}

/// The bit that distinguishes the cases of an ASCII letter.
const CASE_BIT: u8 = 0x20;

/// Letters that Crockford's base 32 reads as digits, with their values.
const CROCKFORD_ALIASES: [(u8, u8); 3] = [(b'I', 1), (b'L', 1), (b'O', 0)];

/// Writes `value`, which has at most `out.len()` digits, two at a time.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "a base's square is at most 3,844")]
fn write_block<const SQUARE: usize>(pairs: &Pairs<SQUARE>, value: u32, out: &mut [u8]) {
    // In 32 bits, where division by a constant takes one short multiplication.
    let mut rest = value;
    for slot in out.rchunks_exact_mut(2) {
        slot.copy_from_slice(&pairs[(rest % SQUARE as u32) as usize]);
        rest /= SQUARE as u32;
    }
}

/// Takes the lowest block out of `value`, which keeps the rest.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "a block is below 2^32 in every base")]
fn take_block<const BLOCK: u64>(value: &mut u64) -> u32 {
    const { assert!(BLOCK <= 1 << 32) };
    let block = (*value % BLOCK) as u32;
    *value /= BLOCK;
    block
}

/// Writes eleven digits in a base of which four digits fit a block: 58 and 62.
#[inline(always)]
fn write_4_4_3<const SQUARE: usize, const BLOCK: u64>(
    pairs: &Pairs<SQUARE>,
    mut id: u64,
    out: &mut Digits,
) {
    let low = take_block::<BLOCK>(&mut id);
    let middle = take_block::<BLOCK>(&mut id);
    let high = take_block::<BLOCK>(&mut id);
    write_block(pairs, low, &mut out[16..20]);
    write_block(pairs, middle, &mut out[12..16]);
    write_block(pairs, high, &mut out[8..12]);
}

/// Writes digits in a base in which a pair of digits is a whole number of bits.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "only the low bits are looked at")]
fn write_bits<const SQUARE: usize>(pairs: &Pairs<SQUARE>, pair_bits: u32, id: u64, out: &mut [u8]) {
    let mut shift = 0;
    for slot in out.rchunks_exact_mut(2) {
        slot.copy_from_slice(&pairs[(id >> shift) as usize % SQUARE]);
        shift += pair_bits;
    }
}

/// Returns `base`^0, `base`^1, and so on, up to the highest power below 2^64.
const fn powers(base: u64) -> [u64; DIGITS_MAX] {
    let mut powers = [u64::MAX; DIGITS_MAX];
    let mut power = 1_u64;
    let mut index = 0;
    while index < DIGITS_MAX {
        powers[index] = power;
        match power.checked_mul(base) {
            Some(next) => power = next,
            None => return powers,
        }
        index += 1;
    }
    powers
}

/// Returns how many digits `id` has, at least 1 and at most `width`.
#[inline(always)]
fn length(id: u64, powers: &[u64; DIGITS_MAX], width: usize) -> usize {
    let mut length = width;
    while length > 1 && id < powers[length - 1] {
        length -= 1;
    }
    length
}

static DECIMAL_POWERS: [u64; DIGITS_MAX] = powers(10);
static BASE36_POWERS: [u64; DIGITS_MAX] = powers(36);
static BASE62_POWERS: [u64; DIGITS_MAX] = powers(62);
static BASE58_POWERS: [u64; DIGITS_MAX] = powers(58);

impl Radix {
    /// Every base.
    pub const ALL: [Self; 6] =
        [Self::Decimal, Self::Hex, Self::Base36, Self::Base62, Self::Base32, Self::Base58];

    /// Returns the base's name in configuration and commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hex => "hex",
            Self::Base36 => "base36",
            Self::Base62 => "base62",
            Self::Base32 => "base32",
            Self::Base58 => "base58",
        }
    }

    /// Returns how many digits the highest number has; the length of every padded text.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            Self::Decimal => 20,
            Self::Hex => 16,
            Self::Base36 | Self::Base32 => 13,
            Self::Base62 | Self::Base58 => 11,
        }
    }

    const fn alphabet(self) -> &'static [u8] {
        match self {
            Self::Decimal => DECIMAL,
            Self::Hex => HEX,
            Self::Base36 => BASE36,
            Self::Base62 => BASE62,
            Self::Base32 => BASE32,
            Self::Base58 => BASE58,
        }
    }

    fn values(self) -> &'static Values {
        match self {
            Self::Decimal => &DECIMAL_VALUES,
            Self::Hex => &HEX_VALUES,
            Self::Base36 => &BASE36_VALUES,
            Self::Base62 => &BASE62_VALUES,
            Self::Base32 => &BASE32_VALUES,
            Self::Base58 => &BASE58_VALUES,
        }
    }

    /// Fills the end of `digits` with all [`Radix::width`] digits. Returns how many of them are
    /// significant.
    #[inline(always)]
    fn fill(self, id: u64, digits: &mut Digits) -> usize {
        match self {
            Self::Decimal => {
                let mut rest = id;
                let low = take_block::<100_000_000>(&mut rest);
                let middle = take_block::<100_000_000>(&mut rest);
                let high = take_block::<100_000_000>(&mut rest);
                write_block(&DECIMAL_PAIRS, low, &mut digits[12..20]);
                write_block(&DECIMAL_PAIRS, middle, &mut digits[4..12]);
                write_block(&DECIMAL_PAIRS, high, &mut digits[0..4]);
                length(id, &DECIMAL_POWERS, 20)
            }
            Self::Hex => {
                write_bits(&HEX_PAIRS, 8, id, &mut digits[4..20]);
                bits_length(id, 4)
            }
            Self::Base36 => {
                let mut rest = id;
                let low = take_block::<2_176_782_336>(&mut rest);
                let middle = take_block::<2_176_782_336>(&mut rest);
                let high = take_block::<2_176_782_336>(&mut rest);
                write_block(&BASE36_PAIRS, low, &mut digits[14..20]);
                write_block(&BASE36_PAIRS, middle, &mut digits[8..14]);
                write_block(&BASE36_PAIRS, high, &mut digits[6..8]);
                length(id, &BASE36_POWERS, 13)
            }
            Self::Base62 => {
                write_4_4_3::<3_844, 14_776_336>(&BASE62_PAIRS, id, digits);
                length(id, &BASE62_POWERS, 11)
            }
            Self::Base32 => {
                write_bits(&BASE32_PAIRS, 10, id, &mut digits[6..20]);
                bits_length(id, 5)
            }
            Self::Base58 => {
                write_4_4_3::<3_364, 11_316_496>(&BASE58_PAIRS, id, digits);
                length(id, &BASE58_POWERS, 11)
            }
        }
    }

    /// Writes the shortest form of the number into `digits`, and returns the part that was filled,
    /// in ASCII.
    #[inline]
    #[must_use]
    pub fn write(self, id: u64, digits: &mut Digits) -> &[u8] {
        let length = self.fill(id, digits);
        &digits[DIGITS_MAX.saturating_sub(length)..]
    }

    /// Writes the number like [`Radix::write`], with leading zeros up to [`Radix::width`].
    #[inline]
    #[must_use]
    pub fn write_padded(self, id: u64, digits: &mut Digits) -> &[u8] {
        self.fill(id, digits);
        &digits[DIGITS_MAX - self.width()..]
    }

    /// Returns the shortest form of the number.
    ///
    /// ```
    /// use snowmint_core::text::Radix;
    /// assert_eq!(Radix::Base62.encode(175_928_847_299_117_063), "Czks0tP37X");
    /// ```
    #[must_use]
    pub fn encode(self, id: u64) -> Text {
        let mut digits = [0; DIGITS_MAX];
        let length = self.fill(id, &mut digits);
        Text::of_digits(&digits, length)
    }

    /// Returns the number with leading zeros up to [`Radix::width`]: texts that sort as the numbers
    /// do.
    #[must_use]
    pub fn encode_padded(self, id: u64) -> Text {
        let mut digits = [0; DIGITS_MAX];
        self.fill(id, &mut digits);
        Text::of_digits(&digits, self.width())
    }

    /// Parses the text that [`Radix::encode`] writes, in either case where the base uses only one.
    ///
    /// # Errors
    /// [`TextError`]: an empty or too long text, a character that the base does not use, a leading
    /// zero, or a number that does not fit.
    pub fn decode(self, text: &str) -> Result<u64, TextError> {
        if text.is_empty() {
            return Err(TextError::Empty);
        }
        if text.len() > self.width() {
            return Err(TextError::TooLong { bytes: text.len(), bytes_max: self.width() });
        }
        let number = self.read(text)?;
        let first = text.as_bytes().first().map(|&byte| self.values()[usize::from(byte)]);
        if text.len() > 1 && first == Some(0) {
            return Err(TextError::LeadingZero { position: 0 });
        }
        Ok(number)
    }

    /// Parses the text that [`Radix::encode_padded`] writes, in either case where the base uses only
    /// one.
    ///
    /// # Errors
    /// The same as [`Radix::decode`], and [`TextError::Length`] when zeros are missing.
    pub fn decode_padded(self, text: &str) -> Result<u64, TextError> {
        if text.is_empty() {
            return Err(TextError::Empty);
        }
        if text.len() != self.width() {
            return Err(TextError::Length { bytes: text.len(), bytes_wanted: self.width() });
        }
        self.read(text)
    }

    fn read(self, text: &str) -> Result<u64, TextError> {
        let values = self.values();
        let base = self.alphabet().len() as u64;
        // Texts are no longer than the highest number, so only the last digit can overflow.
        let (mut number, mut before_last, mut last) = (0_u64, 0_u64, 0_u64);
        for (position, byte) in text.bytes().enumerate() {
            let value = values[usize::from(byte)];
            if value == BAD {
                return Err(bad_character(text, position));
            }
            (before_last, last) = (number, u64::from(value));
            number = number.wrapping_mul(base).wrapping_add(last);
        }
        before_last
            .checked_mul(base)
            .and_then(|high| high.checked_add(last))
            .ok_or(TextError::Overflow)
    }
}

#[cold]
fn bad_character(text: &str, position: usize) -> TextError {
    // All bytes before this one are ASCII, so a character starts here.
    let found = text.get(position..).and_then(|rest| rest.chars().next()).unwrap_or('\u{FFFD}');
    TextError::BadCharacter { position, found }
}

/// Returns how many digits of `digit_bits` the number has, at least 1.
#[inline(always)]
fn bits_length(id: u64, digit_bits: u32) -> usize {
    ((id | 1).ilog2() / digit_bits + 1) as usize
}

impl Text {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "lengths are at most 20")]
    fn of_digits(digits: &Digits, length: usize) -> Self {
        let mut bytes = [0; TEXT_BYTES_MAX];
        bytes[..DIGITS_MAX].copy_from_slice(digits);
        Self { bytes, start: (DIGITS_MAX - length) as u8, end: DIGITS_MAX as u8 }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    const SAMPLES: [u64; 12] = [
        0,
        1,
        9,
        10,
        61,
        62,
        3_843,
        3_844,
        (1 << 53) - 1,
        175_928_847_299_117_063,
        i64::MAX as u64,
        u64::MAX,
    ];

    /// Converts by plain division, for comparison.
    fn plain(mut id: u64, alphabet: &[u8]) -> Vec<u8> {
        let base = alphabet.len() as u64;
        let mut digits = Vec::new();
        loop {
            digits.insert(0, alphabet[usize::try_from(id % base).unwrap()]);
            id /= base;
            if id == 0 {
                return digits;
            }
        }
    }

    #[test]
    fn texts_match_division_at_and_next_to_each_power() {
        for radix in Radix::ALL {
            let alphabet = radix.alphabet();
            let powers = powers(alphabet.len() as u64);
            let near = powers
                .iter()
                .flat_map(|&power| [power.wrapping_sub(1), power, power.wrapping_add(1)]);
            for id in near.chain(SAMPLES) {
                let expected = plain(id, alphabet);
                assert_eq!(radix.encode(id).as_bytes(), expected, "{radix:?} {id}");
                assert_eq!(radix.write(id, &mut [0; DIGITS_MAX]), expected, "{radix:?} {id}");
                let padded = radix.encode_padded(id);
                assert_eq!(padded.len(), radix.width());
                assert!(padded.as_bytes().ends_with(&expected));
                assert_eq!(radix.write_padded(id, &mut [0; DIGITS_MAX]), padded.as_bytes());
                assert_eq!(radix.decode(&radix.encode(id)), Ok(id));
                assert_eq!(radix.decode_padded(&padded), Ok(id));
            }
        }
    }

    #[test]
    fn the_highest_number_has_exactly_the_width() {
        for radix in Radix::ALL {
            assert_eq!(radix.encode(u64::MAX).len(), radix.width(), "{radix:?}");
        }
    }

    #[test]
    fn alphabets_are_in_byte_order_so_that_padded_texts_sort() {
        for radix in Radix::ALL {
            assert!(radix.alphabet().is_sorted(), "{radix:?}");
        }
    }

    #[test]
    fn bases_of_one_case_are_read_in_both() {
        for (radix, text, number) in [
            // CosId's own example, in its capitals.
            (Radix::Base36, "28XOQD7HM874", 295_913_926_632_165_376),
            (Radix::Base36, "28xOqD7hm874", 295_913_926_632_165_376),
            (Radix::Hex, "7B", 0x7b),
            (Radix::Hex, "FFFFFFFFFFFFFFFF", u64::MAX),
            (Radix::Base32, "1z", 63),
            (Radix::Base32, "1o", 32),
            (Radix::Base32, "lL", 33),
            (Radix::Base32, "iI", 33),
        ] {
            assert_eq!(radix.decode(text), Ok(number), "{radix:?} {text:?}");
            let padded = std::format!("{}{text}", "0".repeat(radix.width() - text.len()));
            assert_eq!(radix.decode_padded(&padded), Ok(number), "{radix:?} {padded:?}");
        }
        // In these, case distinguishes digits.
        for radix in [Radix::Base62, Radix::Base58] {
            assert_ne!(radix.decode("A"), radix.decode("a"), "{radix:?}");
        }
        assert_eq!(Radix::Base36.encode(295_913_926_632_165_376), "28xoqd7hm874");
    }

    #[test]
    fn texts_that_are_never_written_are_refused() {
        let bad = |position, found| TextError::BadCharacter { position, found };
        for (radix, text, error) in [
            (Radix::Decimal, "", TextError::Empty),
            (Radix::Decimal, "007", TextError::LeadingZero { position: 0 }),
            (Radix::Decimal, "+7", bad(0, '+')),
            (Radix::Decimal, "-1", bad(0, '-')),
            (Radix::Decimal, "7 ", bad(1, ' ')),
            (Radix::Decimal, "1ä", bad(1, 'ä')),
            (Radix::Decimal, "18446744073709551616", TextError::Overflow),
            (Radix::Decimal, "99999999999999999999", TextError::Overflow),
            (
                Radix::Decimal,
                "184467440737095516150",
                TextError::TooLong { bytes: 21, bytes_max: 20 },
            ),
            (Radix::Hex, "0x7b", bad(1, 'x')),
            (Radix::Hex, "7G", bad(1, 'G')),
            (Radix::Base36, "zzzzzzzzzzzzz", TextError::Overflow),
            (Radix::Base36, "ZZZZZZZZZZZZZ", TextError::Overflow),
            (Radix::Base62, "zzzzzzzzzzz", TextError::Overflow),
            (Radix::Base62, "zzzzzzzzzz-", bad(10, '-')),
            (Radix::Base32, "o1", TextError::LeadingZero { position: 0 }),
            (Radix::Base32, "1U", bad(1, 'U')),
            (Radix::Base32, "1u", bad(1, 'u')),
            (Radix::Base32, "1-2", bad(1, '-')),
            (Radix::Base32, "G000000000000", TextError::Overflow),
            (Radix::Base58, "0", bad(0, '0')),
            (Radix::Base58, "12", TextError::LeadingZero { position: 0 }),
            (Radix::Base58, "l", bad(0, 'l')),
        ] {
            assert_eq!(radix.decode(text), Err(error), "{radix:?} {text:?}");
        }
        let short = TextError::Length { bytes: 2, bytes_wanted: 11 };
        assert_eq!(Radix::Base62.decode_padded("CY"), Err(short));
        assert_eq!(short.to_string(), "2 characters: this form has exactly 11");
    }
}
