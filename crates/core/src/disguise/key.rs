//! Keys, and rings of keys that follow one another.

use core::fmt;
use core::str::FromStr;

use super::permute::{ROUNDS, RoundKey, fold};
use crate::time::UnixMillis;

/// A configured secret of 16 or 32 bytes, from which a [`Key`] is made. [`fmt::Debug`] does not
/// show it.
#[derive(Clone, Copy)]
pub struct KeyBytes {
    bytes: [u8; 32],
    length: usize,
}

impl KeyBytes {
    /// Returns a copy of these bytes: 16 or 32, from a good source of randomness.
    ///
    /// # Errors
    /// [`KeyError::Length`].
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() != 16 && bytes.len() != 32 {
            return Err(KeyError::Length { bytes: bytes.len() });
        }
        let mut copy = [0; 32];
        for (place, byte) in copy.iter_mut().zip(bytes) {
            *place = *byte;
        }
        Ok(Self { bytes: copy, length: bytes.len() })
    }

    /// Returns the secret itself, from which a caller may derive other keys.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns the key made from these bytes.
    #[must_use]
    pub fn key(&self) -> Key {
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(self.bytes.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(chunk);
            *word = u64::from_le_bytes(eight);
        }
        Key::from_words(words, self.length as u64)
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyBytes(secret)")
    }
}

impl FromStr for KeyBytes {
    type Err = KeyError;

    /// Parses 32 or 64 hexadecimal digits of either case. White space at both ends is ignored, as
    /// files end in a line break.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim_ascii().as_bytes();
        if digits.len() != 32 && digits.len() != 64 {
            return Err(KeyError::Digits { digits: digits.len() });
        }
        let mut bytes = [0_u8; 32];
        for (position, digit) in digits.iter().enumerate() {
            let Some(value) = char::from(*digit).to_digit(16) else {
                return Err(KeyError::NotHex { position });
            };
            if let Some(byte) = bytes.get_mut(position / 2) {
                // A digit's value is below 16.
                *byte = (*byte << 4) | value.to_le_bytes()[0];
            }
        }
        Ok(Self { bytes, length: digits.len() / 2 })
    }
}

/// A secret, spread over the rounds of a permutation. [`fmt::Debug`] does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub(super) rounds: [RoundKey; ROUNDS],
}

impl Key {
    /// Returns the key made from these bytes: 16 or 32, from a good source of randomness.
    ///
    /// # Errors
    /// [`KeyError::Length`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        KeyBytes::new(bytes).map(|bytes| bytes.key())
    }

    /// Spreads every bit of the words over all rounds. The first output follows two passes over the
    /// state, so that keys with one bit of difference share nothing. The length goes into every
    /// step; otherwise 16 bytes, and the same bytes with 16 zeros, would be one key.
    fn from_words(words: [u64; 4], length: u64) -> Self {
        // Digits of pi after the point, 64 bits each: nothing-up-my-sleeve numbers.
        const PI: [u64; 4] = [
            0x243f_6a88_85a3_08d3,
            0x1319_8a2e_0370_7344,
            0xa409_3822_299f_31d0,
            0x082e_fa98_ec4e_6c89,
        ];
        let [mut a, mut b, mut c, mut d] = words;
        let mut next = |step: u64| {
            let mixed =
                fold(a ^ PI[0] ^ step ^ (length << 32), b | 1) ^ fold(c ^ PI[1], d ^ PI[2] | 1);
            (a, b, c, d) = (b ^ mixed, c.wrapping_add(mixed), d ^ mixed.rotate_left(29), a ^ PI[3]);
            mixed ^ a.rotate_left(17)
        };
        for step in 0..8 {
            next(step);
        }
        let mut rounds = [RoundKey::default(); ROUNDS];
        for (step, round) in (8..).step_by(2).zip(rounds.iter_mut()) {
            round.add = next(step);
            round.multiply = next(step | 1) | 1;
        }
        Self { rounds }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl FromStr for Key {
    type Err = KeyError;

    /// Parses the same text as [`KeyBytes`].
    fn from_str(text: &str) -> Result<Self, KeyError> {
        text.parse().map(|bytes: KeyBytes| bytes.key())
    }
}

/// Maximum number of keys in a ring.
pub const KEYS_MAX: usize = 8;

/// One key of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberedKey {
    pub(super) number: u8,
    pub(super) since: UnixMillis,
    pub(super) key: Key,
}

/// Keys that follow one another, each with a small number and the time from which it is used.
///
/// One rule holds for every ID with a time: **the key in force when its tick begins**. All
/// processes that share the ring change over at the same tick, if each learns of the new key before
/// `since`. Keys must stay in a ring while IDs made with them are still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyring {
    entries: [Option<NumberedKey>; KEYS_MAX],
    newest: NumberedKey,
}

impl Keyring {
    /// Returns a ring of one key with number 0, in force from the beginning.
    #[must_use]
    pub const fn new(key: Key) -> Self {
        let first = NumberedKey { number: 0, since: UnixMillis::ZERO, key };
        let mut entries = [None; KEYS_MAX];
        entries[0] = Some(first);
        Self { entries, newest: first }
    }

    /// Returns the ring with one more key, in force from `since` on.
    ///
    /// # Errors
    /// [`KeyError::Number`] when the ring has the number, [`KeyError::Since`] when the key would
    /// not be the newest, [`KeyError::Full`] after [`KEYS_MAX`] keys.
    pub fn with(mut self, number: u8, since: UnixMillis, key: Key) -> Result<Self, KeyError> {
        if self.numbered(u64::from(number)).is_some() {
            return Err(KeyError::Number { number });
        }
        if since <= self.newest.since {
            return Err(KeyError::Since { since, newest: self.newest.since });
        }
        let slot = self.entries.iter_mut().find(|entry| entry.is_none()).ok_or(KeyError::Full)?;
        self.newest = NumberedKey { number, since, key };
        *slot = Some(self.newest);
        Ok(self)
    }

    /// Returns the newest key's number.
    #[must_use]
    pub const fn newest_number(&self) -> u8 {
        self.newest.number
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &NumberedKey> {
        self.entries.iter().flatten()
    }

    pub(super) fn number_max(&self) -> u8 {
        self.iter().map(|entry| entry.number).max().unwrap_or_default()
    }

    #[inline]
    pub(super) fn numbered(&self, number: u64) -> Option<&NumberedKey> {
        self.iter().find(|entry| u64::from(entry.number) == number)
    }

    #[inline]
    pub(super) fn newest(&self) -> &NumberedKey {
        &self.newest
    }
}

/// The error of an invalid key or ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// A key does not have 16 or 32 bytes.
    Length {
        /// Number of bytes given.
        bytes: usize,
    },
    /// A key's text does not have 32 or 64 hexadecimal digits.
    Digits {
        /// Length of the text in bytes.
        digits: usize,
    },
    /// A character is not a hexadecimal digit. It is not shown: it may be part of the key.
    NotHex {
        /// Position in bytes after leading white space.
        position: usize,
    },
    /// The ring already has a key with this number.
    Number {
        /// The number.
        number: u8,
    },
    /// A new key is not later than all others.
    Since {
        /// The time given for the new key.
        since: UnixMillis,
        /// Time from which the newest key so far is in force.
        newest: UnixMillis,
    },
    /// The ring holds no more keys.
    Full,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::civil::Rfc3339;
        match *self {
            Self::Length { bytes } => write!(f, "a key of {bytes} bytes: it has 16 or 32"),
            Self::Digits { digits } => {
                write!(f, "a key of {digits} characters: write 32 or 64 hexadecimal digits")
            }
            Self::NotHex { position } => {
                write!(f, "the key's character at byte {position} is not a hexadecimal digit")
            }
            Self::Number { number } => write!(f, "there already is a key number {number}"),
            Self::Since { since, newest } => write!(
                f,
                "a new key must come into force after the newest, at {}: {} is not later",
                Rfc3339(newest),
                Rfc3339(since)
            ),
            Self::Full => write!(f, "a ring holds at most {KEYS_MAX} keys"),
        }
    }
}

impl core::error::Error for KeyError {}
