//! Counter keys, and the section that each key belongs to.

use crate::error::{Error, Result};
use crate::model::pool::SECTIONS;

/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// A counter key, by the form in which it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterKey<'a> {
    /// Number in decimal without leading zeros: kept densely.
    Number(u64),
    /// Any other text.
    Text(&'a [u8]),
}

impl<'a> CounterKey<'a> {
    /// Parses a key.
    ///
    /// # Errors
    /// `Invalid` for an empty key or one longer than [`KEY_BYTES_MAX`].
    pub(super) fn new(key: &'a [u8]) -> Result<Self> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(Error::invalid(format!(
                "key has {} bytes, allowed are 1 to {KEY_BYTES_MAX}; correct it",
                key.len()
            )));
        }
        Ok(number(key).map_or(Self::Text(key), Self::Number))
    }
}

/// Returns the number that the key spells in decimal, if it has no leading zeros.
fn number(key: &[u8]) -> Option<u64> {
    const DIGITS_MAX: usize = 20;
    if key.len() > DIGITS_MAX || (key.len() > 1 && key.first() == Some(&b'0')) {
        return None;
    }
    key.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Map from a source's keys to sections, by the name that a key has in RESP: cluster clients and
/// all adapters agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sources) struct Slots {
    /// `SOURCE:`, or empty where keys stand alone.
    prefix: Vec<u8>,
    /// CRC state after the prefix.
    crc: u16,
}

impl Slots {
    pub(in crate::sources) fn new(source: &str, keys_alone: bool) -> Self {
        let prefix = if keys_alone { Vec::new() } else { format!("{source}:").into_bytes() };
        Self { crc: crc(0, &prefix), prefix }
    }

    /// Returns the section of a key.
    pub(in crate::sources) fn of(&self, key: &[u8]) -> u16 {
        // A prefix has no brace in it: source names do not allow them.
        let hashed = match tag(key) {
            Some(tag) => crc(0, tag),
            None => crc(self.crc, key),
        };
        hashed % SECTIONS
    }
}

/// Returns the part of a key between the first opening brace and the next closing one, unless it is
/// empty. Keys with the same tag share a section, as in the Redis Cluster specification.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let rest = key.get(open + 1..)?;
    let end = rest.iter().position(|byte| *byte == b'}')?;
    rest.get(..end).filter(|tag| !tag.is_empty())
}

/// Returns the hash slot of a whole key, as Redis Cluster computes it.
#[must_use]
pub fn hash_slot(key: &[u8]) -> u16 {
    crc(0, tag(key).unwrap_or(key)) % SECTIONS
}

/// Continues a CRC-16/XMODEM from `crc`, four bytes at a time: byte by byte, each step would wait
/// for the one before it, and a key is summed for every number.
fn crc(crc: u16, bytes: &[u8]) -> u16 {
    let of = |behind: usize, byte: u8| TABLES[behind][usize::from(byte)];
    let mut fours = bytes.chunks_exact(4);
    let crc = fours.by_ref().fold(crc, |crc, four| {
        let [high, low] = crc.to_be_bytes();
        match *four {
            [a, b, c, d] => of(3, high ^ a) ^ of(2, low ^ b) ^ of(1, c) ^ of(0, d),
            _ => crc,
        }
    });
    fours.remainder().iter().fold(crc, |crc, byte| {
        let [high, _] = crc.to_be_bytes();
        (crc << 8) ^ of(0, high ^ byte)
    })
}

/// Contribution of a byte to the sum, by the number of bytes behind it.
const TABLES: [[u16; 256]; 4] = tables();

const fn tables() -> [[u16; 256]; 4] {
    const POLYNOMIAL: u16 = 0x1021;
    let mut tables = [[0; 256]; 4];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut behind = 0;
        while behind < 4 {
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
                bit += 1;
            }
            tables[behind][byte as usize] = crc;
            behind += 1;
        }
        byte += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        // The specification's own example, and results of `CLUSTER KEYSLOT`.
        assert_eq!(crc(0, b"123456789"), 0x31c3);
        for cut in 0..9 {
            let (before, after) = b"123456789".split_at(cut);
            assert_eq!(crc(crc(0, before), after), 0x31c3, "{cut}");
        }
        assert_eq!(hash_slot(b"foo"), 12_182);
        assert_eq!(hash_slot(b"bar"), 5_061);
        assert_eq!(hash_slot(b"{user1000}.following"), hash_slot(b"user1000"));
        assert_eq!(hash_slot(b"foo{}{bar}"), crc(0, b"foo{}{bar}") % SECTIONS);
        assert_eq!(hash_slot(b"foo{{bar}}zap"), hash_slot(b"{bar"));
        assert_eq!(hash_slot(b"foo{bar}{zap}"), hash_slot(b"bar"));
    }

    #[test]
    fn a_source_and_its_key_hash_as_one_name() {
        let named = Slots::new("messages", false);
        for key in ["alice", "7", "a{b}c", "{}", "x"] {
            let whole = format!("messages:{key}");
            assert_eq!(named.of(key.as_bytes()), hash_slot(whole.as_bytes()), "{key}");
            let alone = Slots::new("messages", true).of(key.as_bytes());
            assert_eq!(alone, hash_slot(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn numbers_are_those_that_are_written_as_numbers_are() {
        let of = |key: &'static str| CounterKey::new(key.as_bytes()).unwrap();
        assert_eq!(of("0"), CounterKey::Number(0));
        assert_eq!(of("18446744073709551615"), CounterKey::Number(u64::MAX));
        for text in ["00", "01", "-1", "+1", "18446744073709551616", "1e3", "x", "1 "] {
            assert_eq!(of(text), CounterKey::Text(text.as_bytes()));
        }
        for bad in ["", &"k".repeat(KEY_BYTES_MAX + 1)] {
            assert_eq!(CounterKey::new(bad.as_bytes()).unwrap_err().kind().code(), "invalid");
        }
    }
}
