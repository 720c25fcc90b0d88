//! The file with the mark up to which a worker may have minted.
//!
//! STORAGE. One small file has two copies of one record (sequence number, mark, key, checksum), 4
//! KiB apart. A second, empty file is for the lock, which the kernel releases when the process
//! ends, even after a crash. UPDATING. To raise the mark, a process writes the copy that is not the
//! only durable one, and syncs. Only then may any tick below the mark be minted. Then it writes the
//! other copy without a sync, so that damage to one copy leaves the other. A torn write therefore
//! leaves a whole copy with the last mark in use. A clean close lowers the mark without a sync: if
//! that write is lost, the higher mark holds.
//!
//! A file without a whole copy is rejected. It is never treated as a new file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use snowmint_coord::journal::{newest_copy, read_copy};
use snowmint_coord::private;
use snowmint_core::{Clock, Pause, SystemClock, UnixMillis};

use super::record::{COPY_BYTES, MarkRecord};
use snowmint_coord::{Error, Result};

/// Offset of the second copy. It has its own block: no disk tears both copies in one write.
const SECOND_COPY_AT: u64 = 4096;
/// The longest pause between two tries to get the lock, in milliseconds.
const LOCK_PAUSE_MS_MAX: u64 = 8;

/// The lock on one worker of one layout.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    dir: PathBuf,
    key: String,
}

/// A mark file under its lock.
#[derive(Debug)]
pub(super) struct MarkFile {
    lock: Lock,
    path: PathBuf,
    file: File,
    sequence: u64,
    /// Index of the copy to write next: the other copy has the newest durable mark.
    next: usize,
}

/// Content found at the path of a mark file.
pub(super) enum Found {
    /// No file: no process has minted with this worker here.
    Nothing(Lock),
    /// A process may have minted up to the mark.
    Mark(MarkFile, UnixMillis),
}

impl Lock {
    /// Waits up to `wait_ms` for the lock. `key` becomes a part of file names.
    pub(super) fn acquire(dir: &Path, key: &str, wait_ms: u64) -> Result<Self> {
        private::make_directory(dir).map_err(|error| Error::io(dir, error))?;
        let path = dir.join(format!("{key}.lock"));
        let file = private::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| Error::io(&path, error))?;
        let until = SystemClock.read().elapsed().saturating_add(wait_ms);
        let mut pause_ms = 1;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file, dir: dir.into(), key: key.into() }),
                Err(TryLockError::Error(error)) => return Err(Error::io(&path, error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let left_ms = until.since(SystemClock.read().elapsed());
            if left_ms == 0 {
                return Err(Error::locked(format!(
                    "worker is used by another process ({path:?}); use another worker number or \
                     wait"
                )));
            }
            // The lock is between processes, so the wait uses real time, whatever clock mints.
            SystemClock.pause_until(UnixMillis::MAX, std::cmp::min(pause_ms, left_ms));
            pause_ms = std::cmp::min(pause_ms * 2, LOCK_PAUSE_MS_MAX);
        }
    }

    /// Reads the mark file of an earlier process.
    pub(super) fn find(self) -> Result<Found> {
        let path = self.path();
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Found::Nothing(self));
            }
            Err(error) => return Err(Error::io(&path, error)),
        };
        // The last write of an earlier process may be in memory only. After this sync, either copy
        // may be overwritten.
        file.sync_data().map_err(|error| Error::io(&path, error))?;
        let read = |copy| {
            let bytes = read_copy(&file, offset(copy), COPY_BYTES);
            bytes.map(|bytes| MarkRecord::decode(&bytes)).map_err(|error| Error::io(&path, error))
        };
        let newest = newest_copy([read(0)?, read(1)?], |record| record.sequence);
        let Some((copy, record, _)) = newest else {
            return Err(Error::journal_refused(format!(
                "mark file {path:?} has no whole copy; if the clock is right and no process mints \
                 with this worker, remove the file"
            )));
        };
        if record.key != self.key {
            return Err(Error::journal_refused(format!(
                "mark file {path:?} belongs to {:?}, not {:?}; if the clock is right and no \
                 process mints with this worker, remove the file",
                record.key, self.key
            )));
        }
        let mark = UnixMillis::new(record.mark_ms);
        let found = MarkFile { lock: self, path, file, sequence: record.sequence, next: 1 - copy };
        Ok(Found::Mark(found, mark))
    }

    /// Makes the file with `mark` in it. On return the file survives a power loss.
    pub(super) fn create(self, mark: UnixMillis) -> Result<MarkFile> {
        let new_path = self.dir.join(format!("{}.new", self.key));
        let path = self.path();
        let bytes = MarkRecord { sequence: 1, mark_ms: mark.get(), key: self.key.clone() }.encode();
        let write = || {
            let file = private::options()
                .create(true)
                .truncate(true)
                .read(true)
                .write(true)
                .open(&new_path)?;
            file.write_all_at(&bytes, offset(0))?;
            file.write_all_at(&bytes, offset(1))?;
            file.sync_all()?;
            // The name appears only once the content is whole, so that a file of this name is never
            // empty.
            std::fs::rename(&new_path, &path)?;
            File::open(&self.dir)?.sync_all()?;
            Ok(file)
        };
        let file = write().map_err(|error| Error::io(&new_path, error))?;
        Ok(MarkFile { lock: self, path, file, sequence: 1, next: 0 })
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.mark", self.key))
    }
}

impl MarkFile {
    /// Raises the mark. On return the new mark survives a power loss; until then, do not use it.
    /// After an error the file has the old mark or the new one.
    pub(super) fn raise(&mut self, mark: UnixMillis) -> Result<()> {
        let bytes = self.write(mark)?;
        self.file.sync_data().map_err(|error| Error::io(&self.path, error))?;
        // The other copy may be overwritten from here on. Writing it at once protects against
        // damage only; the mark is safe without it.
        self.next = 1 - self.next;
        let _ = self.file.write_all_at(&bytes, offset(self.next));
        Ok(())
    }

    /// Lowers the mark to the end of everything minted, and releases the lock.
    pub(super) fn lower_and_unlock(&mut self, mark: UnixMillis) -> Result<()> {
        let lowered = self.write(mark);
        self.lock.file.unlock().map_err(|error| Error::io(&self.path, error))?;
        lowered.map(|_| ())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, mark: UnixMillis) -> Result<[u8; COPY_BYTES]> {
        self.sequence = self.sequence.saturating_add(1);
        let key = self.lock.key.clone();
        let bytes = MarkRecord { sequence: self.sequence, mark_ms: mark.get(), key }.encode();
        self.file
            .write_all_at(&bytes, offset(self.next))
            .map_err(|error| Error::io(&self.path, error))?;
        Ok(bytes)
    }
}

fn offset(copy: usize) -> u64 {
    if copy == 0 { 0 } else { SECOND_COPY_AT }
}
