//! Foundation of a journal: a machine, a directory that one process alone uses, and a file in it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::lock::DataDir;
use crate::error::{Error, Result};
use crate::platform::private;

/// Layer below a journal. [`LocalDisk`] is the operating system's; a simulation has one in memory,
/// with a machine that can die at any point of a write.
#[async_trait]
pub trait Disk: Send + Sync + fmt::Debug + 'static {
    /// Returns the identity of this machine; empty where it has none.
    ///
    /// # Errors
    /// The identity cannot be read: that is not the same as none.
    fn machine(&self) -> Result<String>;

    /// Returns the identity of the machine's present boot; empty where unknown, and then nothing
    /// that depends on it is kept.
    fn boot(&self) -> String {
        String::new()
    }

    /// Creates the directory if it is missing, and locks it for this process alone.
    ///
    /// # Errors
    /// As [`DataDir::lock`].
    fn lock(&self, path: &Path) -> Result<Box<dyn Directory>>;

    /// Runs work that blocks on this disk, without blocking other tasks.
    async fn run(&self, work: Work);
}

/// Work that blocks.
pub type Work = Box<dyn FnOnce() + Send>;

/// A locked directory. Dropping it unlocks it.
pub trait Directory: Send + Sync + fmt::Debug {
    /// Returns the canonical path.
    fn path(&self) -> &Path;

    /// Opens a file to read and write; returns `None` when the file does not exist.
    ///
    /// # Errors
    /// The error of the system.
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn JournalFile>>>;

    /// Creates a file to read and write, or empties the existing one.
    ///
    /// # Errors
    /// The error of the system.
    fn create(&self, name: &str) -> io::Result<Box<dyn JournalFile>>;

    /// Renames a file durably.
    ///
    /// # Errors
    /// The error of the system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Returns the time by the clock that stamps the directory's files.
    ///
    /// # Errors
    /// The error of the system.
    fn now(&self) -> io::Result<FileTime>;
}

/// An open file.
pub trait JournalFile: Send + Sync + fmt::Debug {
    /// Reads the bytes at `offset`, at most as many as fit, and returns their count.
    ///
    /// # Errors
    /// The error of the system.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    /// The error of the system; the number of bytes written is then unknown.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Waits until everything written survives the loss of power.
    ///
    /// # Errors
    /// The error of the system; it is then unknown which writes survive.
    fn sync_data(&self) -> io::Result<()>;

    /// Returns the kernel's data about the file.
    ///
    /// # Errors
    /// The error of the system.
    fn status(&self) -> io::Result<FileStatus>;
}

/// A file time, as kept by the kernel of the file's machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Whole seconds since 1970.
    pub seconds: i64,
    /// Fraction of a second, in nanoseconds below 10^9.
    pub nanoseconds: u32,
}

impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.seconds, self.nanoseconds)
    }
}

/// Kernel's data about an open file.
#[derive(Clone, Copy, Debug)]
pub struct FileStatus {
    /// Device, unless the kernel renumbers it at each mount.
    pub device: Option<(u32, u32)>,
    /// Inode number of the file on its device.
    pub inode: u64,
    /// Creation time, in seconds and nanoseconds, where the file system records it.
    pub born: Option<(i64, u32)>,
    /// Time of the last change of the content. Any process may set it to any value.
    pub modified: FileTime,
    /// Time of the last change of anything about the file. No process can set it.
    pub changed: FileTime,
}

/// Runs blocking work on a disk and returns its result.
pub(crate) async fn on<T: Send + 'static>(
    disk: &dyn Disk,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (done, reply) = oneshot::channel();
    // The work is done even if the caller is gone.
    disk.run(Box::new(move || drop(done.send(work())))).await;
    reply.await.map_err(|_| {
        Error::internal("internal error: disk task ended without a result; please report it")
    })
}

/// Returns the identity in the first of these files that has one; empty if each is missing or
/// empty. Without an identity the journal recognises fewer copies, so a file that cannot be read
/// does not count as missing.
pub(super) fn machine_in(paths: &[impl AsRef<Path>]) -> Result<String> {
    for path in paths {
        let path: &Path = path.as_ref();
        match std::fs::read_to_string(path) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => return Ok(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = "machine's identity cannot be read; check owner and permissions of \
                               its file, then retry";
                return Err(Error::unavailable(message)
                    .with_detail(format!("{path:?}"))
                    .with_source(error));
            }
        }
    }
    Ok(String::new())
}

/// Files of the operating system. Needs a Tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalDisk;

#[async_trait]
impl Disk for LocalDisk {
    fn machine(&self) -> Result<String> {
        machine_in(&["/etc/machine-id", "/var/lib/dbus/machine-id"])
    }

    fn boot(&self) -> String {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Directory>> {
        Ok(Box::new(DataDir::lock(path)?))
    }

    async fn run(&self, work: Work) {
        if let Err(error) = tokio::task::spawn_blocking(work).await {
            tracing::error!(%error, "disk operation failed");
        }
    }
}

impl Directory for DataDir {
    fn path(&self) -> &Path {
        Self::path(self)
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn JournalFile>>> {
        match OpenOptions::new().read(true).write(true).open(Self::path(self).join(name)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn JournalFile>> {
        let mut how = private::options();
        let how = how.create(true).truncate(true).read(true).write(true);
        Ok(Box::new(how.open(Self::path(self).join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let path = Self::path(self);
        std::fs::rename(path.join(from), path.join(to))?;
        File::open(path)?.sync_all()
    }

    /// Sets the lock file's modification time to "now" and returns it.
    fn now(&self) -> io::Result<FileTime> {
        use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        };
        futimens(self.file(), &times)?;
        Ok(JournalFile::status(self.file())?.modified)
    }
}

impl JournalFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    /// Reads by a direct system call: a library that shifts the clock of a process also shifts the
    /// file times that it sees, and the journal compares them across restarts.
    #[cfg(target_os = "linux")]
    fn status(&self) -> io::Result<FileStatus> {
        use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp, statx};
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let stat = statx(self, "", AtFlags::EMPTY_PATH, wanted)?;
        let time =
            |time: StatxTimestamp| FileTime { seconds: time.tv_sec, nanoseconds: time.tv_nsec };
        let born = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(FileStatus {
            // Major 0 is for file systems without a device; their numbers change at each mount.
            device: (stat.stx_dev_major != 0).then_some((stat.stx_dev_major, stat.stx_dev_minor)),
            inode: stat.stx_ino,
            born: born.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
            modified: time(stat.stx_mtime),
            changed: time(stat.stx_ctime),
        })
    }

    /// Reads the standard library's data, where the direct call does not exist.
    #[cfg(all(unix, not(target_os = "linux")))]
    fn status(&self) -> io::Result<FileStatus> {
        use std::os::unix::fs::MetadataExt;
        let stat = self.metadata()?;
        let time = |seconds, nanoseconds: i64| FileTime {
            seconds,
            nanoseconds: u32::try_from(nanoseconds).unwrap_or(0),
        };
        Ok(FileStatus {
            device: None,
            inode: stat.ino(),
            born: None,
            modified: time(stat.mtime(), stat.mtime_nsec()),
            changed: time(stat.ctime(), stat.ctime_nsec()),
        })
    }
}
