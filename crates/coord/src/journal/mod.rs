//! The journal: a process's memory of its own leases, in a local file.
//!
//! The store's mark runs half a minute ahead, because the store is called rarely. The journal's
//! mark runs half a second ahead, because writing a local file is cheap. After a crash the process
//! can therefore continue almost where it was, under two conditions. No other member held its slot
//! in between (the lease's term shows it), and the journal is the very file that was written last.
//! The file is therefore bound to its machine, path, device and inode number, and to the kernel's
//! own stamp of its last change. A copy elsewhere is rejected, and so is an older state restored in
//! its place.
//!
//! STORAGE. Two copies of the whole content, each with a sequence number and a checksum, one after
//! the other in one file of fixed size. UPDATING. Both copies are written, each followed by a sync,
//! first the one that was not read; only then does the caller act on the content. A torn write
//! therefore leaves a whole copy of the content that was acted on, and so does any damage to one
//! copy. When both are damaged the journal is rejected; a wrong mark is never read.
//!
//! The journal keeps unused reserved numbers across a stop, if they cannot be given back to the
//! store. They are erased, and the erasure is durable, before the first of them is used. So numbers
//! read here were never used.
//!
//! The journal also detects store rollbacks: it remembers which store it belongs to and how many
//! writes that store had seen, so that a store restored from an old backup is recognised.

mod binding;
pub(crate) mod disk;
mod distrust;
mod frame;
mod lock;
mod record;
#[cfg(test)]
mod tests;
mod two_copies;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use binding::Binding;
pub use disk::{Directory, Disk, FileStatus, FileTime, JournalFile, LocalDisk, Work};
use distrust::Distrust;
use frame::{CONTENT_BYTES_MAX, COPY_BYTES_MAX, Frame};
pub use lock::DataDir;
use record::{JournalContent, SourcesText};
pub use record::{JournalLease, JournalTail, Past, Record, SavedDefinition};
pub use two_copies::{newest_copy, read_copy};

use crate::error::{Error, Result};

/// Name of the journal in its data directory.
const JOURNAL_FILE: &str = "journal";
/// Name of a new journal until it is whole.
const JOURNAL_FILE_NEW: &str = "journal.new";
/// Prefix of the names of journals that were set aside; a number follows.
const ASIDE_PREFIX: &str = "journal.aside-";
/// Maximum number of journals set aside in one data directory.
const ASIDE_MAX: u32 = 1_000;
/// Maximum delay, in seconds, of the kernel's stamp of the last change after the time that the
/// journal recorded for it. It covers one write to a busy disk, and is too short for a restore by
/// an operator.
const STAMP_LATE_SECONDS: i64 = 3;
/// Maximum time, in seconds, by which the stamp may precede the recorded time. A sync keeps the
/// data, not the stamp. After a loss of power the stamp is as old as the file system's last update
/// of its own (5 s on ext4, 30 s on XFS, by default). A later restore does not look like this,
/// unless the clock was set back too.
const STAMP_EARLY_SECONDS: i64 = 60;
/// Maximum number of writes of a copy until its stamp matches, so that a slow disk does not block
/// the caller forever.
const WRITES_MAX: u32 = 3;

/// An open journal. Its calls block on the disk.
#[derive(Debug)]
pub struct Journal {
    dir: Box<dyn Directory>,
    path: PathBuf,
    file: Box<dyn JournalFile>,
    binding: Binding,
    sequence: u64,
    /// Copy to write first: the one that does not hold the newest whole state.
    first: usize,
    sources: SourcesText,
}

impl Journal {
    /// Opens the journal of a directory of this machine, or creates one, and returns the state that
    /// an earlier process left in it.
    ///
    /// # Errors
    /// As [`Journal::open_in`]; `Unavailable` when the machine's identity cannot be read.
    pub fn open(dir: DataDir) -> Result<(Self, Option<Past>)> {
        Self::open_in(Box::new(dir), &LocalDisk.machine()?)
    }

    /// Opens the journal of a directory of the machine with this identity, or creates one, and
    /// returns the state that an earlier process left in it.
    ///
    /// # Errors
    /// `JournalRefused` when the file is damaged, a copy, or a restored older state;
    /// `StoreReadOnly`, `StorageFull` and `Unavailable` from the system.
    pub fn open_in(dir: Box<dyn Directory>, machine: &str) -> Result<(Self, Option<Past>)> {
        let path = dir.path().join(JOURNAL_FILE);
        match dir.open(JOURNAL_FILE) {
            Ok(Some(file)) => Self::open_existing(dir, path, file, machine),
            Ok(None) => Ok((Self::create(dir, path, machine)?, None)),
            Err(error) => Err(Error::io(&path, error)),
        }
    }

    fn create(dir: Box<dyn Directory>, path: PathBuf, machine: &str) -> Result<Self> {
        let new_path = dir.path().join(JOURNAL_FILE_NEW);
        let failed = |error| Error::io(&new_path, error);
        let file = dir.create(JOURNAL_FILE_NEW).map_err(failed)?;
        let status = file.status().map_err(failed)?;
        let binding = Binding::new(machine, dir.path(), &status);
        let sources = SourcesText::default();
        let mut journal = Self { dir, path, file, binding, sequence: 0, first: 0, sources };
        journal.write(&Record::default())?;
        // The file gets its name only once the content is whole, so a file with this name is never
        // empty.
        let renamed = journal.dir.rename(JOURNAL_FILE_NEW, JOURNAL_FILE);
        renamed.map_err(|error| Error::io(&journal.path, error))?;
        Ok(journal)
    }

    fn open_existing(
        dir: Box<dyn Directory>,
        path: PathBuf,
        file: Box<dyn JournalFile>,
        machine: &str,
    ) -> Result<(Self, Option<Past>)> {
        let status = file.status().map_err(|error| Error::io(&path, error))?;
        let refused = |distrust: Distrust| distrust.into_error(&path, dir.path());
        let newest = newest(&*file).map_err(|error| Error::io(&path, error))?.map_err(refused)?;
        let stamped = newest.stamp(&status);
        let Newest { copy, frame, other } = newest;
        let content = read_content(&frame).map_err(refused)?;
        let binding = Binding::new(machine, dir.path(), &status);
        if let Some(difference) = binding.differs_from(&content.binding) {
            return Err(refused(Distrust::Place(difference)));
        }
        let marks_are_sure = match stamped {
            Stamp::AsLeft => true,
            Stamp::Touched => false,
            // A torn write also has a later stamp than the copy that it left whole.
            Stamp::Rewritten if other.is_none() => false,
            Stamp::Rewritten => {
                let (modified, written_at) = (status.modified, frame.written_at);
                return Err(refused(Distrust::Restored { modified, written_at }));
            }
        };
        let record = content.into_record().map_err(Distrust::Incarnation).map_err(refused)?;
        let (sequence, first) = (frame.sequence, 1 - copy);
        let sources = SourcesText::default();
        let journal = Self { dir, path, file, binding, sequence, first, sources };
        Ok((journal, Some(Past { record, marks_are_sure })))
    }

    /// Replaces the journal's content by `record`. After the call returns, the content survives the
    /// loss of power; do not act on it before.
    ///
    /// # Errors
    /// `LimitExceeded` when the record is longer than a journal can hold; `StorageFull`,
    /// `StoreReadOnly` and `Unavailable` from the system. The journal then holds either the old
    /// record or the new one.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let content = JournalContent::new(self.binding.clone(), record, &mut self.sources)
            .and_then(|content| serde_json::to_vec(&content))
            .map_err(|error| {
                let message =
                    "internal error: journal record cannot be written as JSON; please report it";
                Error::internal(message).with_source(error)
            })?;
        let sequence = self.sequence.saturating_add(1);
        let mut frame = Frame { sequence, written_at: FileTime::default(), content };
        for copy in [self.first, 1 - self.first] {
            self.put(copy, &mut frame)?;
            // If the other copy fails now, the next write begins with it.
            self.first = 1 - copy;
            self.sequence = sequence;
        }
        Ok(())
    }

    /// Writes one copy, and repeats it if the disk took so long that the kernel's stamp no longer
    /// matches the recorded time. If the process died then, the journal would look like a restored
    /// older state.
    fn put(&self, copy: usize, frame: &mut Frame) -> Result<()> {
        let failed = |error| Error::io(&self.path, error);
        let is_as_left = |written_at: FileTime| -> Result<bool> {
            let status = self.file.status().map_err(failed)?;
            Ok(matches!(stamp(&status, written_at), Stamp::AsLeft))
        };
        for left in (0..WRITES_MAX).rev() {
            // The time is not the file's own stamp: a process that dies right here must leave the
            // file unchanged.
            frame.written_at = self.dir.now().map_err(failed)?;
            let bytes = frame.encode().ok_or_else(|| too_long(frame.content.len()))?;
            self.file.write_all_at(&bytes, offset(copy)).map_err(failed)?;
            // The sync may take long, and a process that is killed in it leaves this stamp.
            if left > 0 && !is_as_left(frame.written_at)? {
                continue;
            }
            self.file.sync_data().map_err(failed)?;
            if is_as_left(frame.written_at)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// Journal that was read for an operator: nothing may be minted on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// Content of the file.
    pub record: Record,
    /// Whether the journal's process may know more: the file is not surely the one that it wrote
    /// last, but perhaps a copy or a restored older state.
    pub is_perhaps_old: bool,
}

impl From<Record> for Inspected {
    fn from(record: Record) -> Self {
        Self { record, is_perhaps_old: false }
    }
}

/// Reads a journal, whatever its place and its writer. A file that was moved with its directory is
/// the same file.
///
/// # Errors
/// As [`Journal::open`], except for the place and the time; `NotFound` when the journal is missing.
pub fn inspect(dir: &DataDir) -> Result<Inspected> {
    read_journal(&dir.path().join(JOURNAL_FILE), dir.path())
}

/// Reads the journals that were set aside in a directory. They change no more, so the directory's
/// lock is not needed, and a copy of one has all that it knew. One that cannot be read is left out,
/// and `unread` gets the reason.
///
/// # Errors
/// When the directory cannot be read. One that is missing has none.
pub fn inspect_set_aside(dir: &Path, mut unread: impl FnMut(&Error)) -> Result<Vec<Record>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(dir, error)),
    };
    let mut records = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| Error::io(dir, error))?.file_name();
        let is_aside = name.to_str().is_some_and(|name| name.starts_with(ASIDE_PREFIX));
        if is_aside {
            match read_journal(&dir.join(&name), dir) {
                Ok(read) => records.push(read.record),
                Err(error) => unread(&error),
            }
        }
    }
    Ok(records)
}

fn read_journal(path: &Path, dir: &Path) -> Result<Inspected> {
    let failed = |error| Error::io(path, error);
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::not_found("journal does not exist; check the data directory")
                .with_detail(format!("{path:?}"))
        }
        _ => failed(error),
    })?;
    let refused = |distrust: Distrust| distrust.into_error(path, dir);
    let status = JournalFile::status(&file).map_err(failed)?;
    let newest = newest(&file).map_err(failed)?.map_err(refused)?;
    let is_last_write = newest.is_last_write(&status);
    let content = read_content(&newest.frame).map_err(refused)?;
    // A machine whose identity cannot be read may be another one.
    let is_same_file = LocalDisk
        .machine()
        .is_ok_and(|here| Binding::new(&here, dir, &status).is_same_file(&content.binding));
    let record = content.into_record().map_err(Distrust::Incarnation).map_err(refused)?;
    Ok(Inspected { record, is_perhaps_old: !(is_last_write && is_same_file) })
}

/// Returns the state that opening the journal of a directory would find, or the error; `None` when
/// the journal is missing. Changes nothing.
///
/// # Errors
/// As [`Journal::open`].
pub fn examine(dir: DataDir) -> Result<Option<Past>> {
    let path = dir.path().join(JOURNAL_FILE);
    match Directory::open(&dir, JOURNAL_FILE) {
        Ok(Some(file)) => Journal::open_existing(Box::new(dir), path, file, &LocalDisk.machine()?)
            .map(|(_, past)| past),
        Ok(None) => Ok(None),
        Err(error) => Err(Error::io(&path, error)),
    }
}

/// Returns whether a directory has a journal, in use or not.
///
/// # Errors
/// The error of the system.
pub fn is_in(dir: &Path) -> io::Result<bool> {
    dir.join(JOURNAL_FILE).try_exists()
}

/// Renames the directory's journal, so that the next start makes a new one. Safe only once the
/// store has been moved past everything that the journal's process may have minted: only an
/// operator's recovery may call it. Returns the new path of the file, or `None` if the journal was
/// missing.
///
/// # Errors
/// The error of the system.
pub fn set_aside(dir: &DataDir) -> Result<Option<PathBuf>> {
    let path = dir.path().join(JOURNAL_FILE);
    for number in 1..=ASIDE_MAX {
        let aside = dir.path().join(format!("{ASIDE_PREFIX}{number}"));
        // A journal set aside earlier is evidence: the rename must not replace it.
        if aside.try_exists().map_err(|error| Error::io(&aside, error))? {
            continue;
        }
        return match std::fs::rename(&path, &aside) {
            Ok(()) => File::open(dir.path())
                .and_then(|dir| dir.sync_all())
                .map(|()| Some(aside))
                .map_err(|error| Error::io(&path, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(&path, error)),
        };
    }
    Err(Error::limit_exceeded(format!(
        "{:?} has {ASIDE_MAX} journals set aside, the maximum; remove some",
        dir.path()
    )))
}

fn too_long(bytes: usize) -> Error {
    Error::limit_exceeded(format!(
        "journal record has {bytes} bytes, maximum {CONTENT_BYTES_MAX}; delete unused segment \
         sources"
    ))
}

/// Returns the offset of copy 0 or 1.
fn offset(copy: usize) -> u64 {
    if copy == 0 { 0 } else { COPY_BYTES_MAX as u64 }
}

/// Newest whole copy.
struct Newest {
    copy: usize,
    frame: Frame,
    /// The other copy, if it is whole too: of the same state or the previous one.
    other: Option<Frame>,
}

impl Newest {
    /// Compares the kernel's stamps with the recorded times of this state: either copy may have
    /// been written last, and long after the other.
    fn stamp(&self, status: &FileStatus) -> Stamp {
        let best = self.written_at().map(|written_at| stamp(status, written_at)).min();
        best.unwrap_or(Stamp::Rewritten)
    }

    /// Returns whether nothing about the file changed after the last write of this state. A machine
    /// that lost power leaves earlier stamps; a restore with the old times leaves a later change.
    fn is_last_write(&self, status: &FileStatus) -> bool {
        let left = -STAMP_EARLY_SECONDS..=STAMP_LATE_SECONDS;
        self.written_at().any(|written_at| {
            [status.modified, status.changed]
                .iter()
                .all(|time| left.contains(&time.seconds.saturating_sub(written_at.seconds)))
        })
    }

    /// Returns the times recorded in the copies of this state.
    fn written_at(&self) -> impl Iterator<Item = FileTime> {
        let twin = self.other.iter().filter(|other| other.sequence == self.frame.sequence);
        twin.chain([&self.frame]).map(|copy| copy.written_at)
    }
}

/// Reads the newest whole copy, or returns the reason why none exists.
fn newest(file: &dyn JournalFile) -> io::Result<Result<Newest, Distrust>> {
    let read = |copy| read_copy(file, offset(copy), COPY_BYTES_MAX);
    let copies = [read(0)?, read(1)?];
    let frames = copies.each_ref().map(|bytes| Frame::decode(bytes));
    let newest = newest_copy(frames, |frame| frame.sequence);
    Ok(newest.map(|(copy, frame, other)| Newest { copy, frame, other }).ok_or_else(|| {
        let newer = copies.iter().find_map(|bytes| frame::newer_form(bytes));
        newer.map_or(Distrust::Damaged, Distrust::Form)
    }))
}

/// Parses the content. Its checksum is right, so an unknown form is intended and not damage.
fn read_content(frame: &Frame) -> Result<JournalContent, Distrust> {
    serde_json::from_slice(&frame.content).map_err(Distrust::Content)
}

/// Result of comparing the kernel's stamps with the journal's own, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stamp {
    /// The file is untouched since the journal's last write.
    AsLeft,
    /// Something about the file changed, though apparently not its content; or its machine died
    /// before the stamps of the last writes were durable.
    Touched,
    /// Another process wrote the content.
    Rewritten,
}

fn stamp(status: &FileStatus, written_at: FileTime) -> Stamp {
    let late_by = |time: FileTime| time.seconds.saturating_sub(written_at.seconds);
    let as_left = |time| (-STAMP_LATE_SECONDS..=STAMP_LATE_SECONDS).contains(&late_by(time));
    if as_left(status.modified) && as_left(status.changed) {
        Stamp::AsLeft
    } else if (-STAMP_EARLY_SECONDS..=STAMP_LATE_SECONDS).contains(&late_by(status.modified)) {
        Stamp::Touched
    } else {
        Stamp::Rewritten
    }
}
