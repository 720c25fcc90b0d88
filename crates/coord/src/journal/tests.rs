use std::collections::BTreeMap;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::*;
use crate::error::ErrorKind;
use crate::ids::{Incarnation, Mark, Term};

/// Offset of the first byte of a copy's content.
const CONTENT_STARTS: u64 = frame::HEADER_BYTES as u64;

/// A directory that is deleted with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let number = crate::platform::random::number().unwrap();
        let path = std::env::temp_dir().join(format!("snowmint-journal-{name}-{number:x}"));
        std::fs::create_dir(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn lock(&self) -> DataDir {
        DataDir::lock(&self.0).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.0.join(JOURNAL_FILE)
    }

    /// Creates a closed journal with these records, written one after the other.
    fn with(name: &str, records: &[Record]) -> Self {
        let scratch = Self::new(name);
        let (mut journal, past) = Journal::open(scratch.lock()).unwrap();
        assert_eq!(past, None);
        for record in records {
            journal.write(record).unwrap();
        }
        scratch
    }

    fn read(&self) -> Result<Record> {
        Journal::open(self.lock()).map(|(_, past)| past.unwrap().record)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn record(mark: u64) -> Record {
    Record {
        id: "j".into(),
        journals: Vec::new(),
        store: "store-1".into(),
        namespace: "default".into(),
        writes: mark / 2,
        incarnation: Some(Incarnation::new(77)),
        earlier: vec![Incarnation::new(75), Incarnation::new(76)],
        leases: vec![
            JournalLease {
                pool: "workers-10".into(),
                slot: 3,
                term: Term::new(9),
                mark: Mark::new(mark),
                released: false,
                granted: Mark::ZERO,
            },
            JournalLease {
                pool: "workers-22-never".into(),
                slot: 4_000_000,
                term: Term::new(1),
                mark: Mark::MAX,
                released: true,
                granted: Mark::ZERO,
            },
        ],
        mark: Mark::new(mark * 3),
        segments: BTreeMap::from([("numbers".into(), Mark::new(u64::MAX))]),
        for_programs: BTreeMap::from([("bills".into(), Mark::new(mark))]),
        ids: BTreeMap::from([("bills".into(), u64::MAX)]),
        catalog: mark / 5,
        tails: vec![JournalTail {
            source: "numbers".into(),
            first: mark,
            last: u64::MAX - 1,
            definition_version: 3,
            boot: "b00t".into(),
        }],
        sources: BTreeMap::new(),
    }
}

fn is_refused(result: &Result<Record>) -> bool {
    matches!(result.as_ref().map_err(Error::kind), Err(ErrorKind::JournalRefused))
}

#[test]
fn last_write_is_read_back() {
    let scratch = Scratch::with("last", &[record(1_000), record(2_000), record(3_000)]);
    let (mut journal, past) = Journal::open(scratch.lock()).unwrap();
    assert_eq!(past, Some(Past { record: record(3_000), marks_are_sure: true }));
    journal.write(&record(4_000)).unwrap();
    drop(journal);
    assert_eq!(scratch.read().unwrap(), record(4_000));
    assert_eq!(inspect(&scratch.lock()).unwrap(), record(4_000).into());
}

/// A directory that reads its clock long before the file is written, in the given number of calls.
#[derive(Debug)]
struct Slow {
    dir: DataDir,
    stalls: std::sync::atomic::AtomicU32,
    /// Whether the process ends in the first sync.
    ends_in_sync: bool,
}

const STALL_SECONDS: i64 = 10;

impl Slow {
    fn journal(scratch: &Scratch, stalls: u32, ends_in_sync: bool) -> Journal {
        let slow = Self { dir: scratch.lock(), stalls: stalls.into(), ends_in_sync };
        Journal::open_in(Box::new(slow), &LocalDisk.machine().unwrap()).unwrap().0
    }
}

impl Directory for Slow {
    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn JournalFile>>> {
        let file = Directory::open(&self.dir, name)?;
        Ok(match self.ends_in_sync {
            true => file.map(|file| Box::new(Unsynced(file)) as Box<dyn JournalFile>),
            false => file,
        })
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn JournalFile>> {
        self.dir.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.dir.rename(from, to)
    }

    fn now(&self) -> io::Result<FileTime> {
        use std::sync::atomic::Ordering::SeqCst;
        let mut time = self.dir.now()?;
        if self.stalls.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            time.seconds -= STALL_SECONDS;
        }
        Ok(time)
    }
}

/// A file of a process that ends while it waits for a sync.
#[derive(Debug)]
struct Unsynced(Box<dyn JournalFile>);

impl JournalFile for Unsynced {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::Interrupted.into())
    }

    fn status(&self) -> io::Result<FileStatus> {
        self.0.status()
    }
}

#[test]
fn a_write_over_which_the_disk_took_long_is_no_older_state() {
    for stalls in 0..4 {
        let scratch = Scratch::with("slow", &[record(1_000)]);
        let mut journal = Slow::journal(&scratch, stalls, false);
        journal.write(&record(2_000)).unwrap();
        drop(journal);
        let (_, past) = Journal::open(scratch.lock()).unwrap();
        assert_eq!(past, Some(Past { record: record(2_000), marks_are_sure: true }), "{stalls}");
    }
}

#[test]
fn a_kill_in_the_sync_after_a_long_write_is_no_older_state() {
    for stalls in 0..WRITES_MAX {
        let scratch = Scratch::with("killed", &[record(1_000)]);
        let mut journal = Slow::journal(&scratch, stalls, true);
        assert!(journal.write(&record(2_000)).is_err(), "it ends in the sync");
        drop(journal);
        let (_, past) = Journal::open(scratch.lock()).unwrap();
        assert_eq!(past, Some(Past { record: record(2_000), marks_are_sure: true }), "{stalls}");
    }
}

#[test]
fn a_sync_over_which_the_disk_took_long_is_no_older_state() {
    for first in [0, 1] {
        let scratch = Scratch::with("slow-sync", &[record(1_000)]);
        let file = OpenOptions::new().read(true).write(true).open(scratch.file()).unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        let mut frame = newest(&file).unwrap().unwrap().frame;
        // The copy written first records the earlier time, and the file's stamp belongs to the
        // other copy.
        frame.written_at.seconds -= STALL_SECONDS;
        JournalFile::write_all_at(&file, &frame.encode().unwrap(), offset(first)).unwrap();
        // The time that the test took must not count.
        file.set_modified(written).unwrap();
        drop(file);
        assert_eq!(scratch.read().unwrap(), record(1_000), "copy {first}");
    }
}

#[test]
fn a_data_directory_has_one_user() {
    let scratch = Scratch::new("lock");
    let held = scratch.lock();
    let second = DataDir::lock(&scratch.0).map_err(|error| error.kind().clone());
    assert!(matches!(second, Err(ErrorKind::Locked)), "{second:?}");
    drop(held);
    drop(scratch.lock());
}

#[test]
fn a_path_that_is_no_directory_is_refused() {
    let scratch = Scratch::new("file");
    std::fs::write(scratch.0.join("plain"), "x").unwrap();
    for path in ["plain", "plain/below"] {
        let error = DataDir::lock(&scratch.0.join(path)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::StoreReadOnly), "{error}");
    }
}

#[test]
fn a_garbled_byte_anywhere_never_changes_a_mark() {
    let scratch = Scratch::with("garbled", &[record(1_000), record(2_000)]);
    let whole = std::fs::read(scratch.file()).unwrap();
    let used = whole.len() - COPY_BYTES_MAX;
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    let written = file.metadata().unwrap().modified().unwrap();
    for start in [0, COPY_BYTES_MAX] {
        for index in start..start + used {
            file.write_all_at(&[whole[index] ^ 0x55], index as u64).unwrap();
            let found = newest(&File::open(scratch.file()).unwrap()).unwrap().unwrap().frame;
            let content: JournalContent = serde_json::from_slice(&found.content).unwrap();
            assert_eq!(content.into_record().unwrap(), record(2_000), "byte {index}");
            file.write_all_at(&whole[index..=index], index as u64).unwrap();
        }
    }
    // The time that the loop took must not make it an older state.
    file.set_modified(written).unwrap();
    assert_eq!(scratch.read().unwrap(), record(2_000));
}

#[test]
fn two_garbled_copies_are_rejected_with_a_remedy() {
    let scratch = Scratch::with("both", &[record(1_000)]);
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    for copy in [0, 1] {
        file.write_all_at(b"x", offset(copy) + CONTENT_STARTS).unwrap();
    }
    let read = scratch.read();
    assert!(is_refused(&read), "{read:?}");
    let message = read.unwrap_err().to_string();
    assert!(message.contains("damaged") && message.contains("fast-forward"), "{message}");
    assert!(is_refused(&inspect(&scratch.lock()).map(|read| read.record)));
}

#[test]
fn a_file_cut_at_any_length_is_recovered_or_refused() {
    let scratch = Scratch::with("cut", &[record(1_000), record(2_000)]);
    let whole = std::fs::read(scratch.file()).unwrap();
    let used = whole.len() - COPY_BYTES_MAX;
    let in_first = (0..used).chain([used, used + 1, COPY_BYTES_MAX / 2]);
    let in_second = COPY_BYTES_MAX..whole.len();
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    for length in in_first.chain(in_second) {
        file.set_len(length as u64).unwrap();
        let found = newest(&File::open(scratch.file()).unwrap()).unwrap();
        // Both copies hold the same: the first is enough, and less than it is nothing.
        assert_eq!(found.is_ok(), length >= used, "{length}");
        if let Ok(Newest { frame, .. }) = found {
            let content: JournalContent = serde_json::from_slice(&frame.content).unwrap();
            assert_eq!(content.into_record().unwrap(), record(2_000), "{length}");
        }
        file.write_all_at(&whole[..used], 0).unwrap();
        file.write_all_at(&whole[COPY_BYTES_MAX..], COPY_BYTES_MAX as u64).unwrap();
    }
    file.set_len(0).unwrap();
    assert!(is_refused(&scratch.read()), "an empty journal is no new journal");
}

#[test]
fn a_write_torn_at_any_byte_leaves_the_old_state_or_the_new() {
    let scratch = Scratch::with("torn", &[record(1_000), record(2_000)]);
    let before = std::fs::read(scratch.file()).unwrap();
    let (mut journal, _) = Journal::open(scratch.lock()).unwrap();
    let order = [journal.first, 1 - journal.first];
    journal.write(&record(3_000)).unwrap();
    drop(journal);
    let after = std::fs::read(scratch.file()).unwrap();
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    let copy = |bytes: &[u8], copy: usize| {
        let start = copy * COPY_BYTES_MAX;
        bytes[start..Ord::min(start + COPY_BYTES_MAX, bytes.len())].to_vec()
    };
    let read = || {
        let frame = newest(&File::open(scratch.file()).unwrap()).unwrap().unwrap().frame;
        let content: JournalContent = serde_json::from_slice(&frame.content).unwrap();
        content.into_record().unwrap()
    };
    for (done, now) in [(None, order[0]), (Some(order[0]), order[1])] {
        let used = copy(&after, now).iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for torn in 0..=used {
            for number in [0, 1] {
                let bytes = copy(if done == Some(number) { &after } else { &before }, number);
                file.write_all_at(&bytes[..used.min(bytes.len())], offset(number)).unwrap();
            }
            file.write_all_at(&copy(&after, now)[..torn], offset(now)).unwrap();
            // The bytes that were not written may have been the same before.
            let is_whole = copy(&before, now)[torn..used] == copy(&after, now)[torn..used];
            let wanted = if done.is_some() || is_whole { 3_000 } else { 2_000 };
            assert_eq!(read(), record(wanted), "{torn} bytes of copy {now}");
        }
    }
}

#[test]
fn after_damage_to_one_copy_the_next_write_begins_with_it() {
    for damaged in [0, 1] {
        let scratch = Scratch::with("heal", &[record(1_000)]);
        let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
        file.write_all_at(b"x", offset(damaged) + CONTENT_STARTS).unwrap();
        let (journal, past) = Journal::open(scratch.lock()).unwrap();
        assert_eq!(past.unwrap().record, record(1_000));
        assert_eq!(journal.first, damaged);
    }
}

#[test]
fn a_copy_at_another_path_is_refused() {
    let scratch = Scratch::with("original", &[record(1_000)]);
    let other = Scratch::new("copy");
    std::fs::copy(scratch.file(), other.file()).unwrap();
    let read = other.read();
    assert!(is_refused(&read), "{read:?}");
    let message = read.unwrap_err().to_string();
    assert!(message.contains(&scratch.0.display().to_string()), "{message}");
    assert_eq!(scratch.read().unwrap(), record(1_000), "the original is as good as before");
}

#[test]
fn moved_directory_is_rejected() {
    let scratch = Scratch::with("moved", &[record(1_000)]);
    let moved = Scratch(scratch.0.with_extension("elsewhere"));
    std::fs::rename(&scratch.0, &moved.0).unwrap();
    assert!(is_refused(&moved.read()));
}

#[test]
fn a_backup_restored_at_the_same_path_is_refused() {
    let scratch = Scratch::with("backup", &[record(1_000)]);
    let backup = scratch.0.join("backup");
    std::fs::copy(scratch.file(), &backup).unwrap();
    let (mut journal, _) = Journal::open(scratch.lock()).unwrap();
    journal.write(&record(9_000)).unwrap();
    drop(journal);
    std::fs::rename(&backup, scratch.file()).unwrap();
    assert!(is_refused(&scratch.read()));
}

#[test]
fn an_older_state_written_into_the_file_later_is_refused() {
    let scratch = Scratch::with("in-place", &[record(1_000)]);
    let old = std::fs::read(scratch.file()).unwrap();
    let (mut journal, _) = Journal::open(scratch.lock()).unwrap();
    journal.write(&record(9_000)).unwrap();
    drop(journal);
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    file.write_all_at(&old, 0).unwrap();
    let later = file.metadata().unwrap().modified().unwrap() + Duration::from_secs(60);
    file.set_modified(later).unwrap();
    let read = scratch.read();
    assert!(is_refused(&read), "{read:?}");
    assert!(read.unwrap_err().to_string().contains("older state"));
}

#[test]
fn stamps_distinguish_own_writes_from_others() {
    let at = |seconds| FileTime { seconds, nanoseconds: 0 };
    let status = |modified, changed| FileStatus {
        device: None,
        inode: 1,
        born: None,
        modified: at(modified),
        changed: at(changed),
    };
    let verdict = |modified, changed| match stamp(&status(modified, changed), at(1_000)) {
        Stamp::AsLeft => "as left",
        Stamp::Touched => "touched",
        Stamp::Rewritten => "rewritten",
    };
    assert_eq!(verdict(1_000, 1_000), "as left");
    assert_eq!(verdict(1_003, 1_003), "as left");
    assert_eq!(verdict(1_000, 1_004), "touched", "its owner was changed, or it was well hidden");
    assert_eq!(verdict(1_004, 1_004), "rewritten");
    assert_eq!(verdict(997, 997), "as left");
    // The power failed before the file system had stored the stamps of the last writes.
    assert_eq!(verdict(996, 996), "touched");
    assert_eq!(verdict(940, 940), "touched");
    assert_eq!(verdict(939, 939), "rewritten");
    assert_eq!(verdict(i64::MIN, i64::MAX), "rewritten");
}

/// The marks are on disk with the time of their writing, but the file's stamps are half a minute
/// older.
#[test]
fn a_loss_of_power_that_took_the_last_stamps_is_no_older_state() {
    let scratch = Scratch::with("power", &[record(1_000), record(2_000)]);
    let file = OpenOptions::new().write(true).open(scratch.file()).unwrap();
    let before = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(30);
    file.set_modified(before).unwrap();
    let (_, past) = Journal::open(scratch.lock()).unwrap();
    let past = past.unwrap();
    assert_eq!(past.record, record(2_000), "it is evidence as before");
    assert!(!past.marks_are_sure, "and no more");
}

#[test]
fn another_machine_is_refused_and_an_unknown_one_is_not() {
    let scratch = Scratch::new("machine");
    let (mut journal, _) = Journal::open_in(Box::new(scratch.lock()), "m1").unwrap();
    journal.write(&record(5)).unwrap();
    drop(journal);
    let open = |machine| {
        Journal::open_in(Box::new(scratch.lock()), machine).map(|(_, past)| past.unwrap().record)
    };
    assert!(is_refused(&open("m2")));
    assert_eq!(open("m1").unwrap(), record(5));
    assert_eq!(open("").unwrap(), record(5));
}

#[test]
fn machine_id_is_none_only_if_missing_or_empty() {
    let scratch = Scratch::new("machine-id");
    let path = |name: &str| scratch.0.join(name);
    std::fs::write(path("empty"), " \n").unwrap();
    std::fs::write(path("whole"), "m1\n").unwrap();
    std::fs::write(path("bytes"), [0xff_u8]).unwrap();
    std::os::unix::fs::symlink(path("loop"), path("loop")).unwrap();
    let read = |first: &str, second: &str| disk::machine_in(&[path(first), path(second)]);
    assert_eq!(read("missing", "empty").unwrap(), "");
    assert_eq!(read("empty", "missing").unwrap(), "");
    for (first, second) in [("whole", "loop"), ("missing", "whole"), ("empty", "whole")] {
        assert_eq!(read(first, second).unwrap(), "m1", "{first}, {second}");
    }
    // They stand for permissions, which root has, and for a process without descriptors.
    for unreadable in ["loop", "bytes", "."] {
        for error in [read(unreadable, "whole"), read("missing", unreadable)] {
            let error = error.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unavailable), "{unreadable}: {error}");
            assert!(error.to_string().contains("cannot be read"), "{unreadable}: {error}");
        }
    }
}

#[test]
fn a_record_too_long_is_refused_and_the_old_one_stays() {
    let scratch = Scratch::with("long", &[record(5)]);
    let (mut journal, _) = Journal::open(scratch.lock()).unwrap();
    let mut long = record(6);
    long.segments = (0..40_000).map(|n| (format!("source-{n:050}"), Mark::new(n))).collect();
    let error = journal.write(&long).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LimitExceeded), "{error}");
    drop(journal);
    assert_eq!(scratch.read().unwrap(), record(5));
}

/// A journal of an earlier version has neither grants nor definitions; this version writes the same
/// where they are unused.
#[test]
fn an_older_form_is_read_and_a_newer_one_is_called_by_its_name() {
    let binding = Binding::default();
    let mut text = SourcesText::default();
    let older = JournalContent::new(binding.clone(), &record(5), &mut text).unwrap();
    let older = serde_json::to_string(&older).unwrap();
    assert!(!older.contains("granted") && !older.contains("sources"), "{older}");
    let read = serde_json::from_str::<JournalContent>(&older).unwrap().into_record().unwrap();
    assert_eq!(read, record(5));
    let mut more = record(5);
    more.leases[0].granted = Mark::new(30_000);
    let spec = r#"{"kind":"snowflake"}"#.into();
    more.sources.insert("orders".into(), SavedDefinition { spec, version: 3 });
    let scratch = Scratch::with("more", &[more.clone()]);
    assert_eq!(scratch.read().unwrap(), more);

    // First an unknown form, then an unknown field in the known form.
    let newer = Scratch::with("newer-form", &[record(5)]);
    let file = OpenOptions::new().write(true).open(newer.file()).unwrap();
    for copy in [0, 1] {
        JournalFile::write_all_at(&file, b"SNOWJNL2", offset(copy)).unwrap();
    }
    let error = newer.read().unwrap_err().to_string();
    assert!(error.contains("form 2") && error.contains("newer version"), "{error}");
    assert!(!error.contains("damaged"), "{error}");
    let frame = Frame {
        sequence: 9,
        written_at: FileTime::default(),
        content: older.replace("\"writes\"", "\"later\":1,\"writes\"").into_bytes(),
    };
    let place = Path::new("a");
    let error = read_content(&frame).err().unwrap().into_error(place, place).to_string();
    assert!(error.contains("later") && error.contains("newer version"), "{error}");
}

#[test]
fn a_journal_set_aside_makes_room_for_a_new_one() {
    let scratch = Scratch::with("aside", &[record(5)]);
    let aside = set_aside(&scratch.lock()).unwrap().unwrap();
    assert!(aside.exists());
    let (journal, past) = Journal::open(scratch.lock()).unwrap();
    assert_eq!(past, None);
    drop(journal);
    assert_ne!(set_aside(&scratch.lock()).unwrap(), Some(aside.clone()));
    assert_eq!(set_aside(&scratch.lock()).unwrap(), None);
    let mut unread = Vec::new();
    let mut inspected =
        |dir: &Path| inspect_set_aside(dir, |error| unread.push(error.to_string())).unwrap();
    let dir = scratch.lock().path().to_owned();
    assert_eq!(inspected(Path::new("/no-such-folder")), []);
    assert!(matches!(&*inspected(&dir), [_, _]) && inspected(&dir).contains(&record(5)));
    // One that cannot be read is left out, with the reason.
    std::fs::write(&aside, "damaged").unwrap();
    assert!(matches!(&*inspected(&dir), [other] if *other != record(5)));
    let reason = unread[0].as_str();
    assert!(unread.len() == 1 && reason.contains(aside.to_str().unwrap()), "{unread:?}");
    let error = inspect(&scratch.lock()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotFound), "{error}");
}

#[test]
fn incomplete_new_journal_is_ignored() {
    let scratch = Scratch::new("half");
    std::fs::write(scratch.0.join(JOURNAL_FILE_NEW), "half").unwrap();
    let (_, past) = Journal::open(scratch.lock()).unwrap();
    assert_eq!(past, None);
}

#[test]
fn file_time_is_the_time_of_the_machine() {
    let scratch = Scratch::new("time");
    let now = scratch.lock().now().unwrap();
    assert!(now.seconds > 1_700_000_000, "{now}");
}

/// A process that starts after a long time and dies in its first write leaves a torn copy, the
/// other copy whole and old, and a file with a recent change.
#[test]
fn a_first_write_that_was_torn_is_no_older_state() {
    let scratch = Scratch::with("torn-late", &[record(5)]);
    let file = OpenOptions::new().read(true).write(true).open(scratch.file()).unwrap();
    for copy in [0, 1] {
        let mut frame =
            Frame::decode(&read_copy(&file, offset(copy), COPY_BYTES_MAX).unwrap()).unwrap();
        frame.written_at.seconds -= 100;
        JournalFile::write_all_at(&file, &frame.encode().unwrap(), offset(copy)).unwrap();
    }
    let error = Journal::open(scratch.lock()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::JournalRefused), "both whole: {error}");
    JournalFile::write_all_at(&file, b"torn", offset(1) + CONTENT_STARTS).unwrap();
    let (_, past) = Journal::open(scratch.lock()).unwrap();
    let past = past.unwrap();
    assert_eq!(past.record, record(5));
    assert!(!past.marks_are_sure, "it could be an older state that was restored damaged");
}

/// Any user who can open a lock file can hold the lock.
#[test]
fn a_lock_and_a_journal_are_their_owners_alone() {
    let scratch = Scratch::new("rights");
    let path = scratch.0.join("data");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    drop(Journal::open(DataDir::lock(&path).unwrap()).unwrap());
    let (lock, journal) = (path.join("lock"), path.join(JOURNAL_FILE));
    assert_eq!([mode(&path), mode(&lock), mode(&journal)], [0o700, 0o600, 0o600]);
    // The mode that an earlier version gave it.
    std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
    let _locked = DataDir::lock(&path).unwrap();
    assert_eq!(mode(&lock), 0o600);
}

/// Changes the times that the copies of a journal recorded, by seconds.
fn shift_recorded(scratch: &Scratch, seconds: i64) -> File {
    let file = OpenOptions::new().read(true).write(true).open(scratch.file()).unwrap();
    for copy in [0, 1] {
        let bytes = read_copy(&file, offset(copy), COPY_BYTES_MAX).unwrap();
        let mut frame = Frame::decode(&bytes).unwrap();
        frame.written_at.seconds += seconds;
        JournalFile::write_all_at(&file, &frame.encode().unwrap(), offset(copy)).unwrap();
    }
    file
}

#[test]
fn inspected_journal_is_old_unless_it_is_the_file_written_last() {
    let inspected = |scratch: &Scratch| {
        let read = inspect(&scratch.lock()).unwrap();
        assert_eq!(read.record, record(5));
        read.is_perhaps_old
    };
    let scratch = Scratch::with("inspected", &[record(5)]);
    assert!(!inspected(&scratch));
    // Another file, with all of the times.
    let copied = Scratch::new("inspected-copy");
    std::fs::copy(scratch.file(), copied.file()).unwrap();
    assert!(inspected(&copied), "elsewhere");
    std::fs::remove_file(scratch.file()).unwrap();
    std::fs::copy(copied.file(), scratch.file()).unwrap();
    assert!(inspected(&scratch), "in place");

    // The same file, with older content.
    let scratch = Scratch::with("inspected-old", &[record(5)]);
    let file = shift_recorded(&scratch, -100);
    assert!(inspected(&scratch), "new times");
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_modified(modified - Duration::from_secs(100)).unwrap();
    assert!(inspected(&scratch), "old times: only the last change shows it");

    // A loss of power leaves earlier stamps than the last write.
    let scratch = Scratch::with("inspected-power", &[record(5)]);
    shift_recorded(&scratch, 20);
    assert!(!inspected(&scratch));
}
