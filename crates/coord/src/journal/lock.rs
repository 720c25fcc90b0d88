//! The data directory, and the lock that says that nobody else uses it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// The name of the lock file in a data directory.
const LOCK_FILE: &str = "lock";

/// A data directory that this process alone uses, until it is dropped or the process ends, however
/// it ends. The lock is the kernel's: a file left behind does not hold it.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
}

impl DataDir {
    /// Makes the directory if there is none, and locks it.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another process has it; [`ErrorKind::Unwritable`],
    /// [`ErrorKind::StorageFull`] as the system says.
    pub fn lock(path: &Path) -> Result<Self> {
        let op = "lock data directory";
        std::fs::create_dir_all(path).map_err(|error| Error::io(op, path, error))?;
        let path = path.canonicalize().map_err(|error| Error::io(op, path, error))?;
        let lock_path = path.join(LOCK_FILE);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&lock_path)
            .map_err(|error| Error::io(op, &lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::new(op, ErrorKind::Locked { what: path.display().to_string() }))
            }
            Err(TryLockError::Error(error)) => Err(Error::io(op, &lock_path, error)),
        }
    }

    pub(super) const fn file(&self) -> &File {
        &self.lock
    }

    /// The canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
