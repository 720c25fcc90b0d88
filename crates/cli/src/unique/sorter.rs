//! Sorting of more keys than memory holds. Full blocks are sorted and appended to a temporary file
//! as runs. At the end the runs are merged, and repeated keys are reported.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::key::SortKey;
use crate::terminal::exit::{Failure, Outcome};

/// Smallest number of bytes read from a run at once.
const READ_BYTES_MIN: usize = 4 * 1024;

/// Sorter that takes keys in any order and reports the repeated ones.
///
/// It keeps at most `memory_bytes` of keys. Beyond that it writes [`SortKey::BYTES`] for each key
/// to a file without a name, so that no file remains however the process ends.
pub(crate) struct Sorter<K> {
    block: Vec<K>,
    block_keys_max: usize,
    memory_bytes: usize,
    temp_dir: PathBuf,
    spill: Option<File>,
    /// Start of each run in the file, in bytes, and its number of keys.
    runs: Vec<(u64, u64)>,
}

impl<K: SortKey> Sorter<K> {
    pub(crate) fn new(memory_bytes: usize, temp_dir: PathBuf) -> Self {
        // Half of the memory is for keys. Writing a run copies a part of it, and merging uses at
        // most the other half.
        let block_keys_max = (memory_bytes / 2 / size_of::<K>()).max(1);
        Self {
            block: Vec::new(),
            block_keys_max,
            memory_bytes,
            temp_dir,
            spill: None,
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, key: K) -> Outcome {
        if self.block.len() == self.block_keys_max {
            self.spill()?;
        }
        if self.block.len() == self.block.capacity() {
            // The vector doubles, but never exceeds the bound, as it would by itself.
            let more = self.block.len().max(1024).min(self.block_keys_max - self.block.len());
            self.block.reserve_exact(more);
        }
        self.block.push(key);
        Ok(())
    }

    /// Writes the block to the file as one run.
    fn spill(&mut self) -> Outcome {
        self.block.sort_unstable();
        let file = match &mut self.spill {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.temp_dir).map_err(|error| {
                Failure::unavailable(format!(
                    "temporary file cannot be created in {}: {error}; name another directory with \
                     --temp-dir, or raise --memory",
                    self.temp_dir.display()
                ))
            })?),
        };
        let begin = self.runs.last().map_or(0, |(begin, bytes)| begin + bytes);
        let mut bytes = Vec::with_capacity(64 * 1024);
        let mut written = 0_u64;
        for chunk in self.block.chunks((64 * 1024 / K::BYTES).max(1)) {
            bytes.clear();
            chunk.iter().for_each(|key| key.store(&mut bytes));
            file.write_all(&bytes).map_err(|error| {
                Failure::unavailable(format!(
                    "temporary file cannot be written in {}: {error}; name another directory with \
                     --temp-dir, or raise --memory",
                    self.temp_dir.display()
                ))
            })?;
            written += bytes.len() as u64;
        }
        self.runs.push((begin, written));
        self.block.clear();
        Ok(())
    }

    /// Calls `repeated` in order with every key that came more than once, and its count.
    pub(crate) fn each_repeated(mut self, repeated: impl FnMut(K, u64)) -> Outcome {
        let mut groups = Groups { last: None, repeated };
        if self.runs.is_empty() {
            self.block.sort_unstable();
            self.block.into_iter().for_each(|key| groups.add(key));
            groups.end();
            return Ok(());
        }
        self.spill()?;
        let Some(mut file) = self.spill.take() else { return Ok(()) };
        self.block = Vec::new();
        let read_bytes = (self.memory_bytes / 2 / self.runs.len()).max(READ_BYTES_MIN);
        let read_keys = (read_bytes / K::BYTES / 2).max(1);
        let mut runs: Vec<Run<K>> = self
            .runs
            .iter()
            .map(|&(begin, bytes)| Run {
                next: begin,
                end: begin + bytes,
                keys: Vec::new().into_iter(),
            })
            .collect();
        let mut heads = BinaryHeap::with_capacity(runs.len());
        let read = |run: &mut Run<K>, file: &mut File| {
            run.next(file, read_keys).map_err(|error| {
                Failure::unavailable(format!(
                    "temporary file cannot be read in {}: {error}; name another directory with \
                     --temp-dir, or raise --memory",
                    self.temp_dir.display()
                ))
            })
        };
        for (index, run) in runs.iter_mut().enumerate() {
            if let Some(key) = read(run, &mut file)? {
                heads.push(Reverse((key, index)));
            }
        }
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((key, index)) = *head;
            groups.add(key);
            match read(&mut runs[index], &mut file)? {
                Some(key) => *head = Reverse((key, index)),
                None => drop(std::collections::binary_heap::PeekMut::pop(head)),
            }
        }
        groups.end();
        Ok(())
    }
}

/// A run that is read back.
struct Run<K> {
    next: u64,
    end: u64,
    keys: std::vec::IntoIter<K>,
}

impl<K: SortKey> Run<K> {
    fn next(&mut self, file: &mut File, read_keys: usize) -> std::io::Result<Option<K>> {
        if let Some(key) = self.keys.next() {
            return Ok(Some(key));
        }
        if self.next == self.end {
            return Ok(None);
        }
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(read_keys.saturating_mul(K::BYTES))];
        file.seek(SeekFrom::Start(self.next))?;
        file.read_exact(&mut bytes)?;
        self.next += bytes.len() as u64;
        self.keys = bytes.chunks_exact(K::BYTES).map(K::load).collect::<Vec<_>>().into_iter();
        Ok(self.keys.next())
    }
}

/// Counter of equal keys in sequence.
struct Groups<K, F> {
    last: Option<(K, u64)>,
    repeated: F,
}

impl<K: SortKey, F: FnMut(K, u64)> Groups<K, F> {
    fn add(&mut self, key: K) {
        match &mut self.last {
            Some((last, times)) if *last == key => *times += 1,
            _ => {
                self.end();
                self.last = Some((key, 1));
            }
        }
    }

    fn end(&mut self) {
        if let Some((key, times)) = self.last.take()
            && times > 1
        {
            (self.repeated)(key, times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::NumberKey;
    use super::*;

    fn repeated(numbers: impl IntoIterator<Item = u64>, memory_bytes: usize) -> Vec<(String, u64)> {
        let mut sorter = Sorter::<NumberKey>::new(memory_bytes, std::env::temp_dir());
        for number in numbers {
            sorter.push(NumberKey::read(&number.to_string(), None).unwrap()).unwrap();
            assert!(sorter.block.capacity() * size_of::<NumberKey>() <= memory_bytes.max(16));
        }
        let mut found = Vec::new();
        sorter.each_repeated(|key, times| found.push((key.show(None, false), times))).unwrap();
        found
    }

    #[test]
    fn duplicates_are_found_within_and_across_runs() {
        // A scattered order without repetition: 7919 and 10,000 are coprime.
        let scattered = || (0..10_000_u64).map(|n| n * 7_919 % 10_000);
        for memory_bytes in [1, 64, 4 * 1024, 1 << 20] {
            assert_eq!(repeated(scattered(), memory_bytes), [], "{memory_bytes}");
            let with_some = scattered().chain([42, 9_999, 42]);
            let found = repeated(with_some, memory_bytes);
            assert_eq!(found, [("42".into(), 3), ("9999".into(), 2)], "{memory_bytes}");
        }
        assert_eq!(repeated([], 64), []);
        assert_eq!(repeated([5, 5], 64), [("5".into(), 2)]);
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        let mut sorter = Sorter::<NumberKey>::new(1, "/nonexistent/place".into());
        let key = NumberKey::read("1", None).unwrap();
        sorter.push(key).unwrap();
        let Err(Failure::Explained { message, .. }) = sorter.push(key) else { panic!("must fail") };
        assert!(message.contains("/nonexistent/place"), "{message}");
    }
}
