//! One copy of the journal's content as bytes, with everything needed to check that it is whole.

use super::disk::FileTime;

/// First bytes of every copy: the name and the version of the format.
const MAGIC: [u8; 8] = *b"SNOWJNL1";
/// First bytes of the copies of all versions, before the version's character.
const MAGIC_OF_ALL: &[u8] = b"SNOWJNL";
/// Magic, sequence number, write time (seconds and nanoseconds), length, checksum.
pub(super) const HEADER_BYTES: usize = 8 + 8 + 8 + 4 + 4 + 4;
/// Space for each of the two copies, in bytes.
pub(super) const COPY_BYTES_MAX: usize = 1 << 20;
/// Maximum length of the content, in bytes.
pub(super) const CONTENT_BYTES_MAX: usize = COPY_BYTES_MAX - HEADER_BYTES;

/// One decoded copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Sequence number, raised by every write; the higher of two copies is the newer.
    pub(super) sequence: u64,
    /// Time of the write, by the clock that stamps the file.
    pub(super) written_at: FileTime,
    pub(super) content: Vec<u8>,
}

fn checksum(header: &[u8], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(content);
    hasher.finalize()
}

/// Returns the form of a copy from a newer version; `None` for the present form, or for other
/// bytes.
pub(super) fn newer_form(bytes: &[u8]) -> Option<char> {
    let form = char::from(*bytes.strip_prefix(MAGIC_OF_ALL)?.first()?);
    (form.is_ascii_alphanumeric() && form > '1').then_some(form)
}

impl Frame {
    /// Encodes one copy; returns `None` when the content is too long.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        if self.content.len() > CONTENT_BYTES_MAX {
            return None;
        }
        let length = u32::try_from(self.content.len()).ok()?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.content.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.written_at.seconds.to_le_bytes());
        bytes.extend_from_slice(&self.written_at.nanoseconds.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        let sum = checksum(&bytes, &self.content);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&self.content);
        Some(bytes)
    }

    /// Decodes the copy at the start of `bytes`, if it is whole.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let (summed, sum) = header.split_at_checked(HEADER_BYTES - 4)?;
        let (magic, fields) = summed.split_at_checked(8)?;
        let (sequence, fields) = fields.split_first_chunk::<8>()?;
        let (seconds, fields) = fields.split_first_chunk::<8>()?;
        let (nanoseconds, fields) = fields.split_first_chunk::<4>()?;
        let (length, _) = fields.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let content = rest.get(..length)?;
        let whole = magic == MAGIC
            && length <= CONTENT_BYTES_MAX
            && sum == checksum(summed, content).to_le_bytes();
        whole.then(|| Self {
            sequence: u64::from_le_bytes(*sequence),
            written_at: FileTime {
                seconds: i64::from_le_bytes(*seconds),
                nanoseconds: u32::from_le_bytes(*nanoseconds),
            },
            content: content.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame {
            sequence: 7,
            written_at: FileTime { seconds: -3, nanoseconds: 9 },
            content: b"the content".to_vec(),
        }
    }

    #[test]
    fn frame_reads_back_and_ignores_trailing_bytes() {
        let mut bytes = frame().encode().unwrap();
        assert_eq!(Frame::decode(&bytes), Some(frame()));
        bytes.extend_from_slice(b"left over from a longer copy");
        assert_eq!(Frame::decode(&bytes), Some(frame()));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let bytes = frame().encode().unwrap();
        for end in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..end]), None, "cut at {end}");
        }
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[index] ^= 1 << bit;
                assert_eq!(Frame::decode(&bytes), None, "bit {bit} of byte {index}");
            }
        }
    }

    #[test]
    fn the_longest_content_fits_and_one_more_byte_does_not() {
        let mut frame = Frame { content: vec![1; CONTENT_BYTES_MAX], ..frame() };
        let bytes = frame.encode().unwrap();
        assert_eq!(bytes.len(), COPY_BYTES_MAX);
        assert_eq!(Frame::decode(&bytes).unwrap(), frame);
        frame.content.push(1);
        assert!(frame.encode().is_none());
    }
}
