//! What a journal stands on: a machine, a directory that one process alone uses, and a file in it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::lock::DataDir;
use crate::error::{Error, Result};
use crate::private;

/// What is below a journal. [`LocalDisk`] is the operating system's; a simulation has one in memory,
/// whose machine can die at any point of a write.
#[async_trait]
pub trait Disk: Send + Sync + fmt::Debug + 'static {
    /// This machine's identity; empty where there is none.
    fn machine(&self) -> String;

    /// Which start of the machine this is; empty where it cannot be told, and nothing that depends on it is
    /// kept then.
    fn boot(&self) -> String {
        String::new()
    }

    /// Makes the directory if there is none, and locks it for this process alone.
    ///
    /// # Errors
    /// As [`DataDir::lock`].
    fn lock(&self, path: &Path) -> Result<Box<dyn Directory>>;

    /// Does work that blocks on this disk, without holding up anybody else.
    async fn run(&self, work: Work);
}

/// Work that blocks.
pub type Work = Box<dyn FnOnce() + Send>;

/// A locked directory. Dropping it unlocks it.
pub trait Directory: Send + Sync + fmt::Debug {
    /// Its canonical path.
    fn path(&self) -> &Path;

    /// Opens a file to read and write; none when there is no such file.
    ///
    /// # Errors
    /// As the system says.
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn JournalFile>>>;

    /// Makes a file to read and write, or empties the one that there is.
    ///
    /// # Errors
    /// As the system says.
    fn create(&self, name: &str) -> io::Result<Box<dyn JournalFile>>;

    /// Gives a file another name, durably.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// The time by the clock that stamps the directory's files.
    ///
    /// # Errors
    /// As the system says.
    fn now(&self) -> io::Result<FileTime>;
}

/// An open file.
pub trait JournalFile: Send + Sync + fmt::Debug {
    /// Reads what there is at `offset`, at most as much as fits, and answers how many bytes.
    ///
    /// # Errors
    /// As the system says.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    /// As the system says; how much was written is then not known.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Waits until everything written survives the loss of power.
    ///
    /// # Errors
    /// As the system says; what survives is then not known.
    fn sync_data(&self) -> io::Result<()>;

    /// What the kernel says about the file.
    ///
    /// # Errors
    /// As the system says.
    fn status(&self) -> io::Result<FileStatus>;
}

/// A file time, as the kernel of the file's machine keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Whole seconds since 1970.
    pub seconds: i64,
    /// The rest, below 10^9.
    pub nanoseconds: u32,
}

impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.seconds, self.nanoseconds)
    }
}

/// What the kernel says about an open file.
#[derive(Clone, Copy, Debug)]
pub struct FileStatus {
    /// The device, unless it is one that the kernel numbers anew at each mount.
    pub device: Option<(u32, u32)>,
    /// The file's number on its device.
    pub inode: u64,
    /// When the file was made, in seconds and nanoseconds, where the file system says.
    pub born: Option<(i64, u32)>,
    /// When the content last changed. Anybody may set it to anything.
    pub modified: FileTime,
    /// When anything about the file last changed. Nobody can set it.
    pub changed: FileTime,
}

/// Does blocking work on a disk, and answers what came of it.
pub(crate) async fn on<T: Send + 'static>(
    disk: &dyn Disk,
    op: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (done, answer) = oneshot::channel();
    // The caller may be gone; the work is done all the same.
    disk.run(Box::new(move || drop(done.send(work())))).await;
    answer.await.map_err(|_| Error::internal(op, "work on the disk ended without an answer"))
}

/// The operating system's files. Its work needs a Tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalDisk;

#[async_trait]
impl Disk for LocalDisk {
    fn machine(&self) -> String {
        ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            .into_iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .map(|text| text.trim().to_owned())
            .find(|id| !id.is_empty())
            .unwrap_or_default()
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
            tracing::error!(%error, "work on the disk failed");
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

    /// What the lock file's modification time becomes when it is set to "now".
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

    /// Read by a direct system call where there is one: a library that shifts the clock of a process
    /// also shifts the file times that it sees, and those are compared over restarts here.
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

    /// What the standard library knows, where there is no such call.
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
