//! The data directory, and the lock that excludes other processes.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::platform::private::{self, FILE_MODE};

/// Name of the lock file in a data directory.
const LOCK_FILE: &str = "lock";

/// A data directory used by this process alone, until the value is dropped or the process ends,
/// however it ends. The kernel holds the lock: a leftover file does not.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
}

impl DataDir {
    /// Creates the directory if it is missing, and locks it.
    ///
    /// # Errors
    /// `Locked` when another process holds it; `StoreReadOnly` or `StorageFull` from the system.
    pub fn lock(path: &Path) -> Result<Self> {
        private::make_directory(path).map_err(|error| Error::io(path, error))?;
        let path = path.canonicalize().map_err(|error| Error::io(path, error))?;
        let lock_path = path.join(LOCK_FILE);
        let lock = private::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&lock_path)
            .map_err(|error| Error::io(&lock_path, error))?;
        keep_private(&lock).map_err(|error| Error::io(&lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, lock }),
            Err(TryLockError::WouldBlock) => {
                let message = "data directory is used by another process; stop that process or \
                               use another data_dir";
                Err(Error::locked(message).with_detail(format!("{path:?}")))
            }
            Err(TryLockError::Error(error)) => Err(Error::io(&lock_path, error)),
        }
    }

    pub(super) const fn file(&self) -> &File {
        &self.lock
    }

    /// Returns the canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Restricts a lock file of an earlier version to its owner: any user who can open it, even only to
/// read, can hold the lock.
fn keep_private(lock: &File) -> io::Result<()> {
    let found = lock.metadata()?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.permissions().mode() & 0o777 & !FILE_MODE != 0 {
        lock.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(())
}
