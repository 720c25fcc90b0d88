//! Disks of machines that can die between any two steps of a write, and directories that can be
//! copied and restored.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use snowmint_coord::Error;
use snowmint_coord::journal::{Directory, Disk, FileStatus, FileTime, JournalFile, Work};

use super::START_MS;
use super::random::SimRng;
use super::time::{Gate, TrueTime};

/// Delay in milliseconds until a lying disk really has what it acknowledged.
const LIE_MS: u64 = 2_000;

/// One machine's disk.
#[derive(Clone, Debug)]
pub(super) struct SimDisk {
    machine: usize,
    /// Planted: the disk acknowledges before it has anything.
    lies: bool,
    state: Arc<Mutex<DiskState>>,
    rng: SimRng,
    time: TrueTime,
    gate: Gate,
}

#[derive(Debug, Default)]
struct DiskState {
    files: Files,
    locked: BTreeSet<PathBuf>,
    inodes: u64,
    /// Steps of the running work, and the files before it; `None` between two works.
    going_on: Option<(Files, Vec<WorkStep>)>,
    /// Planted: no write is kept.
    forgets: bool,
    /// Real contents of a lying disk, oldest first.
    behind: Vec<(u64, Files)>,
}

pub(super) type Files = BTreeMap<PathBuf, FileContent>;

#[derive(Clone, Debug)]
pub(super) struct FileContent {
    inode: u64,
    born_ms: u64,
    modified_ms: u64,
    changed_ms: u64,
    /// Written parts by their offset: a journal writes its copies whole.
    parts: BTreeMap<u64, Arc<[u8]>>,
}

/// One step of a work, repeated up to the moment at which the machine died.
#[derive(Clone, Debug)]
enum WorkStep {
    Create { path: PathBuf, content: FileContent },
    Write { path: PathBuf, offset: u64, bytes: Arc<[u8]>, at_ms: u64 },
    Rename { from: PathBuf, to: PathBuf },
}

impl WorkStep {
    fn apply(self, files: &mut Files) {
        match self {
            Self::Create { path, content } => drop(files.insert(path, content)),
            Self::Write { path, offset, bytes, at_ms } => {
                if let Some(file) = files.get_mut(&path) {
                    let part = file.parts.entry(offset).or_default();
                    *part = match part.get(bytes.len()..) {
                        Some(rest) if !rest.is_empty() => [&*bytes, rest].concat().into(),
                        _ => bytes,
                    };
                    (file.modified_ms, file.changed_ms) = (at_ms, at_ms);
                }
            }
            Self::Rename { from, to } => {
                if let Some(file) = files.remove(&from) {
                    files.insert(to, file);
                }
            }
        }
    }
}

impl SimDisk {
    pub(super) fn new(machine: usize, lies: bool, rng: SimRng, time: TrueTime, gate: Gate) -> Self {
        Self { machine, lies, state: Arc::default(), rng, time, gate }
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        START_MS + self.time.now_ms()
    }

    /// Models the death of the process. A lying disk then shows its real contents.
    pub(super) fn crash(&self) {
        let sure_ms = self.time.now_ms().saturating_sub(LIE_MS);
        let mut state = self.state();
        if self.lies
            && let Some((_, files)) =
                state.behind.iter().rev().find(|(at_ms, _)| *at_ms <= sure_ms).cloned()
        {
            state.files = files;
        }
        state.behind.clear();
    }

    /// Sets whether writes are dropped from now on.
    pub(super) fn forgets(&self, forgets: bool) {
        self.state().forgets = forgets;
    }

    /// Returns a copy of everything, for a backup.
    pub(super) fn backup(&self) -> Files {
        self.state().files.clone()
    }

    /// Returns another disk with a copy of the files.
    pub(super) fn copied(&self) -> Self {
        let state = DiskState { files: self.backup(), ..DiskState::default() };
        Self { state: Arc::new(Mutex::new(state)), ..self.clone() }
    }

    /// Replaces a directory's files by an earlier state. The kernel sees the change; with `hide`,
    /// the time of the last write does not show it.
    pub(super) fn restore_files(&self, files: Files, hide: bool) {
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.behind.clear();
        state.files = files;
        for file in state.files.values_mut() {
            file.changed_ms = now_ms;
            if !hide {
                file.modified_ms = now_ms;
            }
        }
    }

    /// Replaces the files by copies of another machine's files, under their names there.
    pub(super) fn copy_from(&self, files: Files) {
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.behind.clear();
        state.files.clear();
        for (path, file) in files {
            state.inodes += 1;
            let content = FileContent { inode: state.inodes, born_ms: now_ms, ..file };
            state.files.insert(path, content);
        }
    }

    /// Plugs in another disk, with these files unchanged.
    pub(super) fn swap(&self, files: Files) {
        let mut state = self.state();
        state.behind.clear();
        state.files = files;
    }

    /// Removes all files, as an operator does who sets them aside.
    pub(super) fn set_aside(&self) {
        self.swap(Files::new());
    }

    fn step(&self, step: WorkStep) {
        let mut state = self.state();
        if state.forgets {
            return;
        }
        if let Some((_, steps)) = &mut state.going_on {
            steps.push(step.clone());
        }
        step.apply(&mut state.files);
    }

    /// Models the death of the machine during the work: some of its first steps are done, and part
    /// of the next.
    fn die(&self) {
        let mut state = self.state();
        let Some((mut files, steps)) = state.going_on.take() else { return };
        let done = usize::try_from(self.rng.below(steps.len() as u64 + 1)).unwrap_or(0);
        let torn = steps.get(done).cloned();
        for step in steps.into_iter().take(done) {
            step.apply(&mut files);
        }
        if let Some(WorkStep::Write { path, offset, bytes, at_ms }) = torn {
            let kept = usize::try_from(self.rng.below(bytes.len() as u64)).unwrap_or(0);
            let bytes = bytes.get(..kept).unwrap_or_default().into();
            let parts = |files: &Files| files.get(&path).map(|file| file.parts.clone());
            let (before, begun) = (files.clone(), path.clone());
            WorkStep::Write { path: begun, offset, bytes, at_ms }.apply(&mut files);
            if parts(&before) == parts(&files) {
                // No part of it is there, so its time is not either.
                files = before;
            }
        }
        state.files = files;
    }
}

/// Guard that ends the running work: finished, or because no task waits for it any more.
struct GoingOn<'a>(&'a SimDisk);

impl Drop for GoingOn<'_> {
    fn drop(&mut self) {
        self.0.die();
    }
}

#[async_trait]
impl Disk for SimDisk {
    fn machine(&self) -> snowmint_coord::Result<String> {
        Ok(format!("machine-{}", self.machine))
    }

    /// Returns always the same boot: state that must not be used again is recognised by other
    /// means.
    fn boot(&self) -> String {
        "boot".into()
    }

    fn lock(&self, path: &Path) -> snowmint_coord::Result<Box<dyn Directory>> {
        if !self.state().locked.insert(path.to_owned()) {
            return Err(Error::locked(format!(
                "directory {path:?} is locked by another process; stop that process"
            )));
        }
        Ok(Box::new(SimDirectory { disk: self.clone(), path: path.to_owned() }))
    }

    async fn run(&self, work: Work) {
        if self.rng.percent(30) {
            self.time.sleep_ms(self.rng.between(1, 40)).await;
            self.gate.pass().await;
        }
        {
            let mut state = self.state();
            if self.lies {
                let (now_ms, files) = (self.time.now_ms(), state.files.clone());
                state.behind.push((now_ms, files));
                if state.behind.len() > 200 {
                    state.behind.remove(0);
                }
            }
            state.going_on = Some((state.files.clone(), Vec::new()));
        }
        let going_on = GoingOn(self);
        work();
        if self.rng.percent(50) {
            self.time.sleep_ms(self.rng.between(1, 100)).await;
            self.gate.pass().await;
        }
        self.state().going_on = None;
        drop(going_on);
    }
}

#[derive(Debug)]
struct SimDirectory {
    disk: SimDisk,
    path: PathBuf,
}

impl SimDirectory {
    fn file(&self, path: &Path) -> Box<dyn JournalFile> {
        Box::new(SimFile { disk: self.disk.clone(), inode: self.inode(path).unwrap_or(0) })
    }

    fn inode(&self, path: &Path) -> Option<u64> {
        self.disk.state().files.get(path).map(|file| file.inode)
    }
}

impl Drop for SimDirectory {
    fn drop(&mut self) {
        self.disk.state().locked.remove(&self.path);
    }
}

impl Directory for SimDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn JournalFile>>> {
        let path = self.path.join(name);
        Ok(self.inode(&path).is_some().then(|| self.file(&path)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn JournalFile>> {
        let (path, now_ms) = (self.path.join(name), self.disk.now_ms());
        let inode = {
            let mut state = self.disk.state();
            state.inodes += 1;
            state.inodes
        };
        let content = FileContent {
            inode,
            born_ms: now_ms,
            modified_ms: now_ms,
            changed_ms: now_ms,
            parts: BTreeMap::new(),
        };
        self.disk.step(WorkStep::Create { path: path.clone(), content });
        Ok(self.file(&path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path.join(from), self.path.join(to));
        self.disk.step(WorkStep::Rename { from, to });
        Ok(())
    }

    fn now(&self) -> io::Result<FileTime> {
        Ok(file_time(self.disk.now_ms()))
    }
}

/// An open file, which is known by its inode: its name may change.
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: u64,
}

impl SimFile {
    fn path(&self) -> io::Result<PathBuf> {
        let state = self.disk.state();
        let found = state.files.iter().find(|(_, file)| file.inode == self.inode);
        found.map(|(path, _)| path.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn content<T>(&self, read: impl FnOnce(&FileContent) -> T) -> io::Result<T> {
        let path = self.path()?;
        self.disk.state().files.get(&path).map(read).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn file_time(ms: u64) -> FileTime {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    FileTime { seconds, nanoseconds: u32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000 }
}

impl JournalFile for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.content(|content| {
            let Some((start, part)) = content.parts.range(..=offset).next_back() else { return 0 };
            let skip = usize::try_from(offset - start).unwrap_or(usize::MAX);
            let rest = part.get(skip..).unwrap_or_default();
            let count = rest.len().min(bytes.len());
            bytes[..count].copy_from_slice(&rest[..count]);
            count
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (path, at_ms) = (self.path()?, self.disk.now_ms());
        self.disk.step(WorkStep::Write { path, offset, bytes: bytes.into(), at_ms });
        Ok(())
    }

    /// Does nothing: unsynced data is lost only with the machine's death, in [`SimDisk::die`].
    fn sync_data(&self) -> io::Result<()> {
        self.path().map(drop)
    }

    fn status(&self) -> io::Result<FileStatus> {
        self.content(|content| {
            let born = file_time(content.born_ms);
            FileStatus {
                device: Some((8, 1)),
                inode: content.inode,
                born: Some((born.seconds, born.nanoseconds)),
                modified: file_time(content.modified_ms),
                changed: file_time(content.changed_ms),
            }
        })
    }
}
