//! Encoding of one copy of a mark file's content, with a checksum to detect damage.

/// First bytes of every copy: the name and the version of the format.
const MAGIC: [u8; 8] = *b"SNOWMRK1";
/// Size of one copy in bytes. A disk writes this much at once.
pub(super) const COPY_BYTES: usize = 512;
/// Bytes of magic, sequence number, mark, and length of the key; key and checksum follow.
const FIXED_BYTES: usize = 8 + 8 + 8 + 4;
/// Length of the longest key in bytes.
pub(super) const KEY_BYTES_MAX: usize = COPY_BYTES - FIXED_BYTES - 4;

/// One copy, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkRecord {
    /// Raised by every write; of two copies the one with the higher number is newer.
    pub(super) sequence: u64,
    /// End of the ticks that may have been minted, in Unix milliseconds.
    pub(super) mark_ms: u64,
    /// Layout and worker of the mark.
    pub(super) key: String,
}

impl MarkRecord {
    /// Returns the bytes of one copy. The key must be at most [`KEY_BYTES_MAX`] long; a longer key
    /// is cut, and then matches no worker.
    pub(super) fn encode(&self) -> [u8; COPY_BYTES] {
        let key = self.key.as_bytes();
        let key = key.get(..KEY_BYTES_MAX).unwrap_or(key);
        // At most 480.
        let length = u32::try_from(key.len()).unwrap_or(0);
        let mut bytes = Vec::with_capacity(COPY_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.mark_ms.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(key);
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        let mut copy = [0; COPY_BYTES];
        for (to, from) in copy.iter_mut().zip(bytes) {
            *to = from;
        }
        copy
    }

    /// Returns the copy at the start of `bytes`, if it is whole.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (mark, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (key, rest) = rest.split_at_checked(length)?;
        let (sum, _) = rest.split_first_chunk::<4>()?;
        let summed = bytes.get(..FIXED_BYTES.checked_add(length)?)?;
        let whole = *magic == MAGIC && crc32fast::hash(summed) == u32::from_le_bytes(*sum);
        whole.then(|| {
            Some(Self {
                sequence: u64::from_le_bytes(*sequence),
                mark_ms: u64::from_le_bytes(*mark),
                key: std::str::from_utf8(key).ok()?.to_owned(),
            })
        })?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> MarkRecord {
        MarkRecord { sequence: 3, mark_ms: 1_700_000_000_000, key: "worker-7".into() }
    }

    #[test]
    fn a_record_reads_back() {
        assert_eq!(MarkRecord::decode(&record().encode()), Some(record()));
        let longest = MarkRecord { key: "k".repeat(KEY_BYTES_MAX), ..record() };
        assert_eq!(MarkRecord::decode(&longest.encode()), Some(longest));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let bytes = record().encode();
        let used = FIXED_BYTES + record().key.len() + 4;
        for end in 0..used {
            assert_eq!(MarkRecord::decode(&bytes[..end]), None, "cut at {end}");
        }
        for index in 0..used {
            for bit in 0..8 {
                let mut bytes = bytes;
                bytes[index] ^= 1 << bit;
                assert_eq!(MarkRecord::decode(&bytes), None, "bit {bit} of byte {index}");
            }
        }
    }

    #[test]
    fn a_length_of_four_gigabytes_is_damage() {
        let mut bytes = record().encode();
        bytes[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(MarkRecord::decode(&bytes), None);
    }
}
