//! Disk that fails when a test needs it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

use crate::error::Result;
use crate::journal::{Directory, Disk, FileStatus, FileTime, JournalFile, LocalDisk, Work};

/// Disk of a machine that loses power in the middle of a write, after this many writes.
#[derive(Clone, Debug)]
pub(super) struct Failing {
    pub(super) writes_left: Arc<AtomicU64>,
    pub(super) boot: &'static str,
    /// Time of the last change that files report.
    pub(super) changed: FileTime,
}

/// Disk that drops work on demand: the work is not done, and no caller is notified.
#[derive(Clone, Debug, Default)]
pub(super) struct Forgetful {
    pub(super) forgets: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Disk for Forgetful {
    fn machine(&self) -> Result<String> {
        Ok("machine".into())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Directory>> {
        Failing::never().lock(path)
    }

    async fn run(&self, work: Work) {
        if !self.forgets.load(Ordering::SeqCst) {
            work();
        }
    }
}

/// Disk that hangs on demand, as one that is out of reach does, and does its work later.
#[derive(Clone, Debug, Default)]
pub(super) struct Hanging {
    pub(super) hangs: Arc<watch::Sender<bool>>,
}

#[async_trait::async_trait]
impl Disk for Hanging {
    fn machine(&self) -> Result<String> {
        Ok("machine".into())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Directory>> {
        Failing::never().lock(path)
    }

    async fn run(&self, work: Work) {
        let _ = self.hangs.subscribe().wait_for(|hangs| !*hangs).await;
        work();
    }
}

/// Standing clock: a machine with such a clock, in the middle of a write, makes no file look as if
/// another process had written it.
const STAMP: FileTime = FileTime { seconds: 1_000, nanoseconds: 0 };

#[derive(Debug)]
struct Inside<T: ?Sized>(Failing, Box<T>);

impl Failing {
    pub(super) fn after(writes: u64) -> Self {
        Self { writes_left: Arc::new(AtomicU64::new(writes)), boot: "first", changed: STAMP }
    }

    /// Returns a disk that never fails, with files that were changed by others since they were
    /// written: perhaps restored.
    pub(super) fn touched() -> Self {
        let changed = FileTime { seconds: STAMP.seconds + 60, ..STAMP };
        Self { changed, ..Self::never() }
    }

    pub(super) fn never() -> Self {
        Self::after(u64::MAX)
    }
}

#[async_trait::async_trait]
impl Disk for Failing {
    fn machine(&self) -> Result<String> {
        Ok("machine".into())
    }

    fn boot(&self) -> String {
        self.boot.into()
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Directory>> {
        Ok(Box::new(Inside(self.clone(), LocalDisk.lock(path)?)))
    }

    async fn run(&self, work: Work) {
        work();
    }
}

impl Inside<dyn Directory> {
    fn file(&self, file: Box<dyn JournalFile>) -> Box<dyn JournalFile> {
        Box::new(Inside(self.0.clone(), file))
    }
}

impl Directory for Inside<dyn Directory> {
    fn path(&self) -> &Path {
        self.1.path()
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn JournalFile>>> {
        Ok(self.1.open(name)?.map(|file| self.file(file)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn JournalFile>> {
        Ok(self.file(self.1.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.1.rename(from, to)
    }

    fn now(&self) -> io::Result<FileTime> {
        Ok(STAMP)
    }
}

impl JournalFile for Inside<dyn JournalFile> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.read_at(bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let left = &self.0.writes_left;
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(1..) => self.1.write_all_at(bytes, offset),
            // Half of the last write succeeds.
            Ok(0) | Err(_) => {
                if left.swap(0, Ordering::SeqCst) == 0 && !bytes.is_empty() {
                    let half = &bytes[..bytes.len() / 2];
                    drop(self.1.write_all_at(half, offset));
                }
                Err(io::ErrorKind::StorageFull.into())
            }
        }
    }

    /// No power fails except on a test's demand.
    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn status(&self) -> io::Result<FileStatus> {
        Ok(FileStatus { modified: STAMP, changed: self.0.changed, ..self.1.status()? })
    }
}
