//! The journal: what a process remembers of its own leases, in a file beside it.
//!
//! The store's mark runs half a minute ahead, because the store is asked rarely. The journal's mark
//! runs half a second ahead, because writing a local file is cheap. After a crash the process can
//! therefore go on almost where it was, if two things hold: nobody else held its slot in between
//! (the lease's term says so), and the journal is the very file that was written last. So the file is
//! bound to its machine, path, device and file number, and to the kernel's own stamp of its last
//! change: a copy elsewhere is refused, and so is an older state put back in its place.
//!
//! STORAGE. Two copies of the whole content, each with a sequence number and a checksum, one after the
//! other in one file of fixed size. UPDATING. Both copies are written, each followed by a sync, first
//! the one that was not read; only then does the caller act on what it wrote. A torn write therefore
//! leaves a whole copy of what was acted on, and so does any damage to one copy. When both are damaged
//! the journal is refused; a wrong mark is never read.
//!
//! Numbers that were reserved and not used are kept here over a stop, if they cannot go back to the store.
//! They are erased, and the disk has said so, before the first of them is used: so whatever is read here
//! was used by nobody.
//!
//! The journal is also a witness: it remembers which store it belongs to and how many writes that
//! store had seen, so that a store restored from an old backup is recognised.

mod binding;
pub(crate) mod disk;
mod frame;
mod lock;
mod record;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use binding::Binding;
pub use disk::{Directory, Disk, FileStatus, FileTime, JournalFile, LocalDisk, Work};
use frame::{CONTENT_BYTES_MAX, COPY_BYTES_MAX, Frame};
pub use lock::DataDir;
use record::{Content, SourcesText};
pub use record::{JournalLease, JournalTail, KeptSource, Past, Record};

use crate::error::{Error, ErrorKind, Result};

/// The journal's name in its data directory.
const JOURNAL_FILE: &str = "journal";
/// A new journal before it is whole.
const JOURNAL_FILE_NEW: &str = "journal.new";
/// What an operator can do about a journal that cannot be used.
const WAY_OUT: &str =
    "once no other process uses this data, run: snowmint worker fast-forward --data-dir";
/// What is said of a journal that this version cannot read, and is whole.
const NEWER: &str = "a newer version wrote it; run that one, or a newer";
/// How far the kernel's stamp of the last change may lie after the moment that the journal itself
/// took for it: the time of one write to a busy disk, not of somebody's restore.
const STAMP_LATE_SECONDS: i64 = 3;
/// How far before that moment it may lie: a disk is told to keep what is written, not when it was written, so
/// after a loss of power the stamp is as old as what the file system had last kept of its own (5 s on
/// ext4, 30 s on XFS, unless told otherwise). What was put back later does not look so, unless the clock went
/// back, too.
const STAMP_EARLY_SECONDS: i64 = 60;
/// How often a copy is written whose stamp is not of its moment: a disk that is always late keeps nobody for ever.
const WRITES_MAX: u32 = 3;

/// An open journal. Its calls block on the disk.
#[derive(Debug)]
pub struct Journal {
    dir: Box<dyn Directory>,
    path: PathBuf,
    file: Box<dyn JournalFile>,
    binding: Binding,
    sequence: u64,
    /// Which copy to write first: the one that does not hold the newest whole state.
    first: usize,
    sources: SourcesText,
}

impl Journal {
    /// Opens the journal of a directory of this machine, or makes one, and answers what an earlier
    /// process left in it.
    ///
    /// # Errors
    /// As [`Journal::open_in`].
    pub fn open(dir: DataDir) -> Result<(Self, Option<Past>)> {
        Self::open_in(Box::new(dir), &LocalDisk.machine())
    }

    /// Opens the journal of a directory of the machine with this identity, or makes one, and answers
    /// what an earlier process left in it.
    ///
    /// # Errors
    /// [`ErrorKind::JournalRefused`] when the file is damaged, a copy, or an older state put back;
    /// [`ErrorKind::Unwritable`], [`ErrorKind::StorageFull`] and [`ErrorKind::Unavailable`] as the
    /// system says.
    pub fn open_in(dir: Box<dyn Directory>, machine: &str) -> Result<(Self, Option<Past>)> {
        let path = dir.path().join(JOURNAL_FILE);
        match dir.open(JOURNAL_FILE) {
            Ok(Some(file)) => Self::take_up(dir, path, file, machine),
            Ok(None) => Ok((Self::create(dir, path, machine)?, None)),
            Err(error) => Err(Error::io("open journal", &path, error)),
        }
    }

    fn create(dir: Box<dyn Directory>, path: PathBuf, machine: &str) -> Result<Self> {
        let op = "make journal";
        let new_path = dir.path().join(JOURNAL_FILE_NEW);
        let failed = |error| Error::io(op, &new_path, error);
        let file = dir.create(JOURNAL_FILE_NEW).map_err(failed)?;
        let status = file.status().map_err(failed)?;
        let binding = Binding::new(machine, dir.path(), &status);
        let sources = SourcesText::default();
        let mut journal = Self { dir, path, file, binding, sequence: 0, first: 0, sources };
        journal.write(&Record::default())?;
        // The name appears only once the content is whole, so that a file under it is never empty.
        let renamed = journal.dir.rename(JOURNAL_FILE_NEW, JOURNAL_FILE);
        renamed.map_err(|error| Error::io(op, &journal.path, error))?;
        Ok(journal)
    }

    fn take_up(
        dir: Box<dyn Directory>,
        path: PathBuf,
        file: Box<dyn JournalFile>,
        machine: &str,
    ) -> Result<(Self, Option<Past>)> {
        let op = "read journal";
        let status = file.status().map_err(|error| Error::io(op, &path, error))?;
        let refused = |reason: String| refused(op, &path, dir.path(), reason);
        let newest =
            newest(&*file).map_err(|error| Error::io(op, &path, error))?.map_err(refused)?;
        let stamped = newest.stamp(&status);
        let Newest { copy, frame, other } = newest;
        let content = read_content(&frame).map_err(refused)?;
        let binding = Binding::new(machine, dir.path(), &status);
        if let Some(difference) = binding.differs_from(&content.binding) {
            return Err(refused(difference));
        }
        let marks_are_sure = match stamped {
            Stamp::AsLeft => true,
            Stamp::Touched => false,
            // A write that was torn off also came after the copy that it left whole.
            Stamp::Rewritten if other.is_none() => false,
            Stamp::Rewritten => {
                return Err(refused(format!(
                    "it was last written at {}, but its content is from {}: an older state was put \
                     back",
                    status.modified, frame.written_at
                )));
            }
        };
        let record = content.into_record().map_err(|error| refused(error.to_string()))?;
        let (sequence, first) = (frame.sequence, 1 - copy);
        let sources = SourcesText::default();
        let journal = Self { dir, path, file, binding, sequence, first, sources };
        Ok((journal, Some(Past { record, marks_are_sure })))
    }

    /// Makes `record` what the journal holds. When this answers, it survives the loss of power; until
    /// then, do not act on it.
    ///
    /// # Errors
    /// [`ErrorKind::TooMany`] when the record is longer than a journal can hold;
    /// [`ErrorKind::StorageFull`], [`ErrorKind::Unwritable`] and [`ErrorKind::Unavailable`] as the
    /// system says. The journal then holds either the old record or the new one.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let op = "write journal";
        let content = Content::new(self.binding.clone(), record, &mut self.sources)
            .and_then(|content| serde_json::to_vec(&content))
            .map_err(|error| Error::internal(op, "a record has no JSON form").with_source(error))?;
        let sequence = self.sequence.saturating_add(1);
        let mut frame = Frame { sequence, written_at: FileTime::default(), content };
        for copy in [self.first, 1 - self.first] {
            self.put(copy, &mut frame)?;
            // Should the other copy fail now, the next write begins with that one.
            self.first = 1 - copy;
            self.sequence = sequence;
        }
        Ok(())
    }

    /// Writes one copy, and again if the disk took so long that the kernel's stamp is not of its moment any more: if the
    /// process died then, the journal would pass for an older state that was put back.
    fn put(&self, copy: usize, frame: &mut Frame) -> Result<()> {
        let failed = |error| Error::io("write journal", &self.path, error);
        for _ in 0..WRITES_MAX {
            // Not by the file's own stamp: a process that dies right here must leave the file as it was.
            frame.written_at = self.dir.now().map_err(failed)?;
            let bytes = frame.encode().ok_or_else(|| too_long(frame.content.len()))?;
            self.file.write_all_at(&bytes, offset(copy)).map_err(failed)?;
            self.file.sync_data().map_err(failed)?;
            let status = self.file.status().map_err(failed)?;
            if matches!(stamp(&status, frame.written_at), Stamp::AsLeft) {
                break;
            }
        }
        Ok(())
    }

    /// The data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// Reads what a journal holds, wherever it lies and whoever wrote it, for an operator's eyes: nothing
/// may be minted on it.
///
/// # Errors
/// As [`Journal::open`], but for the place; [`ErrorKind::NotFound`] when there is none.
pub fn inspect(dir: &DataDir) -> Result<Record> {
    let op = "inspect journal";
    let path = dir.path().join(JOURNAL_FILE);
    let file = File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(op, ErrorKind::NotFound { what: format!("journal {}", path.display()) })
        }
        _ => Error::io(op, &path, error),
    })?;
    let refused = |reason| refused(op, &path, dir.path(), reason);
    let Newest { frame, .. } =
        newest(&file).map_err(|error| Error::io(op, &path, error))?.map_err(refused)?;
    read_content(&frame).map_err(refused)?.into_record()
}

/// What opening the journal of a directory would find, or why it would be refused; none when there is none.
/// Changes nothing.
///
/// # Errors
/// As [`Journal::open`].
pub fn examine(dir: DataDir) -> Result<Option<Past>> {
    let path = dir.path().join(JOURNAL_FILE);
    match Directory::open(&dir, JOURNAL_FILE) {
        Ok(Some(file)) => {
            Journal::take_up(Box::new(dir), path, file, &LocalDisk.machine()).map(|(_, past)| past)
        }
        Ok(None) => Ok(None),
        Err(error) => Err(Error::io("read journal", &path, error)),
    }
}

/// Whether a directory has a journal, in use or not.
///
/// # Errors
/// As the system says.
pub fn is_in(dir: &Path) -> io::Result<bool> {
    dir.join(JOURNAL_FILE).try_exists()
}

/// Puts the directory's journal aside, so that the next start makes a new one. Only right once the
/// store has been moved past everything that the journal's process may have minted: this is part of
/// an operator's way out, and of nothing else. Answers where the old file is now; none when there was
/// no journal.
///
/// # Errors
/// As the system says.
pub fn set_aside(dir: &DataDir) -> Result<Option<PathBuf>> {
    let op = "set journal aside";
    let path = dir.path().join(JOURNAL_FILE);
    for number in 1..=1_000_u32 {
        let aside = dir.path().join(format!("{JOURNAL_FILE}.aside-{number}"));
        if aside.exists() {
            continue;
        }
        return match std::fs::rename(&path, &aside) {
            Ok(()) => File::open(dir.path())
                .and_then(|dir| dir.sync_all())
                .map(|()| Some(aside))
                .map_err(|error| Error::io(op, &path, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(op, &path, error)),
        };
    }
    let what = "journals set aside in one data directory: remove some".into();
    Err(Error::new(op, ErrorKind::TooMany { what, wanted: 1_001, limit: 1_000 }))
}

fn refused(op: &'static str, path: &Path, dir: &Path, reason: String) -> Error {
    let way_out = format!("{WAY_OUT} {}", dir.display());
    let path = path.display().to_string();
    Error::new(op, ErrorKind::JournalRefused { path, reason, way_out })
}

fn too_long(bytes: usize) -> Error {
    let limit = u64::try_from(CONTENT_BYTES_MAX).unwrap_or(u64::MAX);
    let wanted = u64::try_from(bytes).unwrap_or(u64::MAX);
    let what = "bytes of leases and segment sources in one journal".into();
    Error::new("write journal", ErrorKind::TooMany { what, wanted, limit })
}

/// Where a copy begins. There are two, so the number is 0 or 1.
fn offset(copy: usize) -> u64 {
    if copy == 0 { 0 } else { COPY_BYTES_MAX as u64 }
}

/// The newest whole copy.
struct Newest {
    copy: usize,
    frame: Frame,
    /// The other one, if it is whole too: of the same state or of the one before.
    other: Option<Frame>,
}

impl Newest {
    /// How the kernel's stamps compare with the moments of this state: of the two copies either may have been written
    /// last, and long after the other.
    fn stamp(&self, status: &FileStatus) -> Stamp {
        let twin = self.other.iter().filter(|other| other.sequence == self.frame.sequence);
        let best = twin.chain([&self.frame]).map(|copy| stamp(status, copy.written_at)).min();
        best.unwrap_or(Stamp::Rewritten)
    }
}

/// Or why there is none.
fn newest(file: &dyn JournalFile) -> io::Result<Result<Newest, String>> {
    let copies = [read_copy(file, offset(0))?, read_copy(file, offset(1))?];
    let [first, second] = copies.each_ref().map(|bytes| Frame::decode(bytes));
    let (copy, frame, other) = match (first, second) {
        (Some(first), Some(second)) if first.sequence < second.sequence => (1, second, Some(first)),
        (Some(first), second) => (0, first, second),
        (None, Some(second)) => (1, second, None),
        (None, None) => {
            let newer = copies.iter().find_map(|bytes| frame::newer_form(bytes));
            return Ok(Err(newer.map_or_else(
                || "both of its copies are damaged".into(),
                |form| format!("it is of form {form}, and this version reads form 1: {NEWER}"),
            )));
        }
    };
    Ok(Ok(Newest { copy, frame, other }))
}

/// The checksum is right, so whoever wrote it meant it.
fn read_content(frame: &Frame) -> Result<Content, String> {
    serde_json::from_slice(&frame.content)
        .map_err(|error| format!("its content is not for this version ({error}): {NEWER}"))
}

/// What there is of one copy.
fn read_copy(file: &dyn JournalFile, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; COPY_BYTES_MAX];
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

/// How the kernel's stamps compare with the journal's own, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stamp {
    /// Nobody touched the file since the journal did.
    AsLeft,
    /// Something about the file changed, though not, as far as it shows, its content; or its machine died
    /// before the stamps of the last writes were kept.
    Touched,
    /// The content was written by somebody else.
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
