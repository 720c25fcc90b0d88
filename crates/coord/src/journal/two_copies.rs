//! A file with two copies of its content, of which a torn write or damage leaves one whole.
//!
//! Only the reading is here. Formats, and the order of writes and syncs, are those of each file: a
//! journal syncs both copies, a mark file one.

use std::io;

use super::disk::JournalFile;

/// Returns the newest whole copy of two, as its index, the copy and the other one.
pub fn newest_copy<T>(
    [first, second]: [Option<T>; 2],
    sequence: impl Fn(&T) -> u64,
) -> Option<(usize, T, Option<T>)> {
    match (first, second) {
        (Some(first), Some(second)) if sequence(&first) < sequence(&second) => {
            Some((1, second, Some(first)))
        }
        (Some(first), second) => Some((0, first, second)),
        (None, second) => second.map(|second| (1, second, None)),
    }
}

/// Reads `length` bytes at an offset, or as many as the file has there.
///
/// # Errors
/// The error of the system.
pub fn read_copy(file: &dyn JournalFile, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
