//! Content of the journal, and the times of its writes.

mod due;
mod ends;
mod write;

use std::collections::BTreeMap;

use snowmint_core::ElapsedMillis;

use self::write::Write;
pub(super) use self::write::{JournalMark, Written};
use super::store_knowledge::StoreFingerprint;
use crate::error::{Error, Result, chain};
use crate::ids::{Incarnation, Mark};
use crate::journal::{
    Directory, Disk, Journal, JournalLease, JournalTail, Past, Record, SavedDefinition, disk,
};
use crate::machine::{Now, WindowMachine};
use crate::model::history::StoreIdentity;
use crate::model::history::{JournalInfo, Known};
use crate::platform::random;
use crate::platform::waiters::Waiters;

/// Byte limit for definitions: half of what a journal holds.
const SOURCES_BYTES_MAX: usize = 1 << 19;
/// Byte limit for definitions and the ends of segment sources: what the most kept tails, some
/// hundreds of leases, and the other journals leave of a journal.
const KEPT_BYTES_MAX: usize = 10 << 16;
/// Byte limit for the other journals of the store.
const JOURNALS_BYTES_MAX: usize = 48 << 10;
/// Number of kept members before the last one. In a loop of crashes a member lives for a second,
/// and its lease for three by default: the leases of still earlier members have expired. A longer
/// lease may be in force after more crashes; then counters are rejected until it expires.
const EARLIER_MAX: usize = 64;
/// Wait after a write that failed.
const RETRY_MS: u64 = 200;

/// Journal of a node, if it has one.
#[derive(Debug)]
pub(super) struct JournalWriter {
    kept: Option<OpenJournal>,
}

#[derive(Debug)]
struct OpenJournal {
    /// None while a write is in flight.
    journal: Option<Journal>,
    record: Record,
    /// Waiters for the present record to be on disk.
    waiters: Waiters<()>,
    past: Option<Past>,
    wanted: bool,
    /// Time at which a write is due that can wait.
    due_at: Option<ElapsedMillis>,
    begun_at: Option<ElapsedMillis>,
    retry_at: ElapsedMillis,
    error: Option<Error>,
    /// Whether the marks that the store has granted are kept too, for a start without it.
    keeps_windows: bool,
    /// Number of writes that were begun, and the last one of them that succeeded.
    begun: u64,
    on_disk: u64,
}

/// Returns the bytes that a definition takes in a journal: it is a text within a text, in which
/// quotes are escaped.
fn source_bytes(name: &str, source: &SavedDefinition) -> usize {
    let escaped = source.spec.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
    const REST: usize = r#""":{"spec":"","version":18446744073709551615},"#.len();
    name.len() + source.spec.len() + escaped + REST
}

impl JournalWriter {
    /// Creates a writer without a journal: after a crash only the store's marks remain.
    pub(super) const fn none() -> Self {
        Self { kept: None }
    }

    /// Opens the journal of a locked data directory, for one namespace of one store.
    pub(super) fn open(
        dir: Box<dyn Directory>,
        machine: &str,
        namespace: &str,
        keeps_windows: bool,
    ) -> Result<Self> {
        let (journal, past) = Journal::open_in(dir, machine)?;
        let mut record = past.as_ref().map(|past| past.record.clone()).unwrap_or_default();
        if !keeps_windows {
            record.sources.clear();
        }
        // Not all leases are kept.
        record.mark = Mark::new(record.known().mark);
        if record.id.is_empty() {
            record.id = random::incarnation()?.to_string();
        }
        if record.namespace.is_empty() {
            record.namespace = namespace.into();
        }
        if record.namespace != namespace {
            return Err(Error::conflict(format!(
                "data directory {:?} belongs to namespace {:?}, expected {namespace:?}; use a \
                 directory for each namespace",
                journal.dir(),
                record.namespace
            )));
        }
        if past.as_ref().is_some_and(|past| !past.marks_are_sure) {
            record.doubt_ends();
        }
        let kept = OpenJournal {
            journal: Some(journal),
            record,
            waiters: Waiters::default(),
            past,
            wanted: false,
            due_at: None,
            begun_at: None,
            retry_at: ElapsedMillis::default(),
            error: None,
            keeps_windows,
            begun: 0,
            on_disk: 0,
        };
        Ok(Self { kept: Some(kept) })
    }

    pub(super) const fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Returns what is known of the store at the start, and the name of this evidence.
    pub(super) fn fingerprint(&self) -> StoreFingerprint {
        match &self.kept {
            None => StoreFingerprint { who: "this process".into(), ..StoreFingerprint::default() },
            Some(OpenJournal { record, .. }) => StoreFingerprint {
                store: record.store.clone(),
                writes: record.writes,
                who: "the journal".into(),
                ground: None,
            },
        }
    }

    /// Returns the slots with journal marks that may be used as floors.
    pub(super) fn past_leases(&self) -> Vec<JournalLease> {
        let past = self.kept.as_ref().and_then(|kept| kept.past.as_ref());
        match past {
            Some(past) if past.marks_are_sure => past.record.leases.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the member that is dead by the proof of the directory's lock.
    pub(super) fn past_member(&self) -> Option<Incarnation> {
        self.kept.as_ref()?.past.as_ref()?.record.incarnation
    }

    /// Returns the members before that one, which are dead as well.
    pub(super) fn earlier_members(&self) -> Vec<Incarnation> {
        self.kept.as_ref().map(|kept| kept.record.earlier.clone()).unwrap_or_default()
    }

    /// Returns what earlier processes have seen of the store; an empty identity if there were none.
    pub(super) fn seen(&self) -> StoreIdentity {
        let StoreFingerprint { store, writes, .. } = self.fingerprint();
        StoreIdentity { id: store, writes }
    }

    /// Returns the numbers that an earlier process kept for this one. When this returns, they are
    /// erased, and the disk has confirmed it; numbers that could not be erased are never used.
    /// `met`: the store is the one that the journal knows. Until the store is reached, all stays in
    /// the journal.
    ///
    /// # Errors
    /// The disk is gone.
    pub(super) async fn take_tails(
        &mut self,
        disk: &dyn Disk,
        met: bool,
    ) -> Result<Vec<JournalTail>> {
        let Some(kept) = self.kept.as_mut().filter(|kept| !kept.record.tails.is_empty()) else {
            return Ok(Vec::new());
        };
        let (sure, boot) =
            (kept.past.as_ref().is_some_and(|past| past.marks_are_sure), disk.boot());
        let mut tails = std::mem::take(&mut kept.record.tails);
        let seen = |source: &str| kept.record.segments.get(source).map_or(0, |end| end.get());
        let is_ours = |tail: &JournalTail| {
            sure && tail.boot == boot && tail.first <= tail.last && tail.last < seen(&tail.source)
        };
        if !met {
            // Numbers that are unsure now stay so for ever.
            tails.retain(is_ours);
            kept.record.tails = tails;
            return Ok(Vec::new());
        }
        for tail in tails.iter_mut().filter(|tail| !is_ours(tail)) {
            // No definition matches version 0, so they are counted as lost.
            tail.definition_version = 0;
        }
        match self.write(disk).await? {
            Ok(()) => Ok(tails),
            Err(error) => {
                tracing::error!(error = %chain(&error), "failed to write the journal; its kept numbers stay unused");
                Ok(Vec::new())
            }
        }
    }

    pub(super) fn joined(&mut self, identity: &StoreIdentity, member: Incarnation) {
        if let Some(kept) = &mut self.kept {
            kept.record.store.clone_from(&identity.id);
            kept.record.writes = identity.writes;
            // Its slots may still be held, if it was killed before it could take over.
            kept.record.earlier.extend(kept.record.incarnation.replace(member));
            let too_many = kept.record.earlier.len().saturating_sub(EARLIER_MAX);
            kept.record.earlier.drain(..too_many);
            kept.wanted = true;
        }
    }

    /// Records what was seen of the joined store: its identity, if known, is kept with its write
    /// count.
    pub(super) fn saw(&mut self, seen: Option<StoreIdentity>, writes: u64) {
        let Some(kept) = &mut self.kept else { return };
        match seen {
            Some(seen) => (kept.record.store, kept.record.writes) = (seen.id, seen.writes),
            None => kept.record.writes = kept.record.writes.max(writes),
        }
    }

    /// Records that a lease had reached this mark; the lease itself may not be kept.
    pub(super) fn saw_mark(&mut self, mark: Mark) {
        if let Some(kept) = &mut self.kept {
            kept.record.mark = kept.record.mark.max(mark);
        }
    }

    /// Records the version of the store's catalog. It is no reason for a write: nothing is minted
    /// by a new definition before another change causes one.
    pub(super) fn saw_catalog(&mut self, version: u64) {
        if let Some(kept) = &mut self.kept {
            kept.record.catalog = kept.record.catalog.max(version);
        }
    }

    /// Returns the store's name for the journal; none without a journal.
    pub(super) fn id(&self) -> Option<&str> {
        self.kept.as_ref().map(|kept| kept.record.id.as_str())
    }

    /// Records the other journals of the store.
    pub(super) fn saw_journals(&mut self, mut journals: Vec<JournalInfo>) {
        let Some(kept) = &mut self.kept else { return };
        journals.retain(|other| other.id != kept.record.id);
        let journals = JournalInfo::fitting(journals, JOURNALS_BYTES_MAX);
        if kept.record.journals != journals {
            kept.record.journals = journals;
            kept.wanted = true;
        }
    }

    /// Returns what the journal knows; nothing without a journal.
    pub(super) fn known(&self) -> Known {
        self.kept.as_ref().map(|kept| kept.record.known()).unwrap_or_default()
    }

    /// Drops numbers from before a recovery of the store: another process may have them by now.
    pub(super) fn forget_tails(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.record.tails.clear();
            kept.wanted = true;
        }
    }

    /// Keeps the definitions that a start without the store needs: the first ones, as far as there
    /// is room.
    pub(super) fn keep_sources(&mut self, mut sources: Vec<(String, SavedDefinition)>) {
        let Some(kept) = &mut self.kept else { return };
        let mut room = SOURCES_BYTES_MAX;
        sources.retain(|(name, source)| {
            let left = room.checked_sub(source_bytes(name, source));
            room = left.unwrap_or(room);
            left.is_some()
        });
        let sources: BTreeMap<_, _> = sources.into_iter().collect();
        if kept.record.sources != sources {
            kept.record.sources = sources;
            kept.wanted = true;
        }
    }

    /// Returns the kept definitions.
    pub(super) fn saved_sources(&self) -> BTreeMap<String, SavedDefinition> {
        self.kept.as_ref().map(|kept| kept.record.sources.clone()).unwrap_or_default()
    }

    /// Begins the next write, if one is due and none is in flight.
    pub(super) fn begin<'a>(
        &mut self,
        now: Now,
        held: impl Iterator<Item = &'a WindowMachine>,
        past: &[JournalLease],
    ) -> Option<Write> {
        if self.next_poll_ms(now) != Some(0) {
            return None;
        }
        let kept = self.kept.as_mut()?;
        let journal = kept.journal.take()?;
        kept.wanted = false;
        (kept.due_at, kept.begun_at) = (None, Some(now.elapsed));
        kept.begun = kept.begun.saturating_add(1);
        let mut marks = Vec::new();
        let mut leases: Vec<_> = past.to_vec();
        for window in held {
            let lease = window.lease();
            let mark = window.journal_target();
            marks.push(JournalMark {
                pool: lease.pool.clone(),
                slot: lease.slot,
                term: lease.term,
                mark,
            });
            leases.push(JournalLease {
                pool: lease.pool.clone(),
                slot: lease.slot,
                term: lease.term,
                mark: Mark::from(mark),
                released: false,
                granted: window.mark(),
            });
        }
        if !kept.keeps_windows {
            leases.iter_mut().for_each(|lease| lease.granted = Mark::ZERO);
        }
        kept.record.leases = leases;
        let waiters = std::mem::take(&mut kept.waiters);
        Some(Write { number: kept.begun, journal, record: kept.record.clone(), marks, waiters })
    }

    /// Ends a write. Returns the marks that are durable now; none when it failed.
    pub(super) fn end(&mut self, now: Now, mut written: Written) -> Option<Vec<JournalMark>> {
        let kept = self.kept.as_mut()?;
        kept.journal = Some(written.journal);
        match written.outcome {
            Ok(()) => {
                kept.error = None;
                kept.on_disk = kept.on_disk.max(written.number);
                // A caller that gave up has left its numbers as a gap.
                written.waiters.notify(&());
                Some(written.marks)
            }
            Err(error) => {
                tracing::error!(error = %chain(&error), "failed to write the journal");
                kept.error = Some(error);
                kept.waiters.add_all(written.waiters);
                kept.wanted = true;
                kept.retry_at = now.elapsed.saturating_add(RETRY_MS);
                None
            }
        }
    }

    pub(super) const fn error(&self) -> Option<&Error> {
        match &self.kept {
            Some(kept) => kept.error.as_ref(),
            None => None,
        }
    }

    /// Writes that all slots were given up, and waits for the disk.
    pub(super) async fn released(&mut self, disk: &dyn Disk, past: &[JournalLease]) -> Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.record.leases = past.to_vec();
        }
        self.write(disk).await?
    }

    /// Returns whether a waiter needs the next write.
    pub(super) fn is_waited_for(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.waiters.is_empty())
    }

    /// Writes the record if there are waiters, and notifies them.
    pub(super) async fn notify(&mut self, disk: &dyn Disk) {
        if self.is_waited_for()
            && let Ok(Ok(())) = self.write(disk).await
            && let Some(kept) = &mut self.kept
        {
            kept.waiters.notify(&());
        }
    }

    /// Writes the present record, and waits for the disk. The outer error: the disk is gone; the
    /// inner one: the write failed.
    async fn write(&mut self, disk: &dyn Disk) -> Result<Result<()>> {
        let Some(kept) = self.kept.as_mut() else { return Ok(Ok(())) };
        let Some(journal) = kept.journal.take() else {
            let message = "internal error: journal write never ended, so its content is unknown; \
                           please report it";
            return Err(Error::internal(message));
        };
        let (record, marks) = (kept.record.clone(), Vec::new());
        let write =
            Write { number: kept.begun, journal, record, marks, waiters: Waiters::default() };
        let written = disk::on(disk, move || write.run()).await?;
        kept.journal = Some(written.journal);
        Ok(written.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Term;
    use crate::journal::LocalDisk;
    use crate::model::name::NAME_BYTES_MAX;
    use crate::node::driver::PAST_MAX;
    use crate::node::lease::OTHERS_SLOTS_MAX;
    use crate::node::tails::TAILS_MAX;
    use crate::sources::{Reserved, ReservedFor};

    fn name(number: u64) -> String {
        format!("{number:0>NAME_BYTES_MAX$}")
    }

    /// The record needed for snowflakes is written, however many sources there are.
    #[tokio::test]
    async fn the_fullest_record_fits() {
        for keeps_windows in [true, false] {
            let number = random::number().unwrap();
            let path = std::env::temp_dir().join(format!("snowmint-record-{number:x}"));
            let dir = LocalDisk.lock(&path).unwrap();
            let mut journal_writer =
                JournalWriter::open(dir, "machine", "default", keeps_windows).unwrap();
            let spec = r#"{"kind":"snowflake","layout":"a \"name\""}"#.to_owned();
            if keeps_windows {
                let source = SavedDefinition { spec, version: u64::MAX };
                let sources = (0..10_000).rev().map(|at| (name(at), source.clone()));
                journal_writer.keep_sources(sources.collect());
                let saved = journal_writer.saved_sources();
                assert!(saved.len() > 1_000 && saved.contains_key(&name(9_999)));
            }
            let count = journal_writer.segments_bytes_max() / (NAME_BYTES_MAX + 24);
            for number in 0..u64::try_from(count).unwrap() {
                let (waiter, _) = tokio::sync::oneshot::channel();
                let reserved_for =
                    if number % 2 == 0 { ReservedFor::Node } else { ReservedFor::Clients };
                journal_writer.reserved(Reserved {
                    source: name(number),
                    reserved_for,
                    end: u64::MAX,
                    free: None,
                    waiter,
                });
            }
            let boot = "00000000-0000-0000-0000-000000000000".to_owned();
            let tail = JournalTail {
                source: name(0),
                first: u64::MAX,
                last: u64::MAX,
                definition_version: u64::MAX,
                boot,
            };
            assert_eq!(journal_writer.tails_left(), TAILS_MAX);
            journal_writer.keeps(vec![tail; TAILS_MAX]);
            assert_eq!(journal_writer.tails_left(), 0);
            let journal = |number: u64| JournalInfo {
                id: format!("{number:032x}"),
                owner: "o".repeat(60),
                host: "h".repeat(60),
                seen_at_ms: u64::MAX,
                has_reported: false,
                is_heard_of: false,
                reports: 0,
                far_mark: 0,
            };
            journal_writer.saw_journals((0..10_000).map(journal).collect());
            let lease = JournalLease {
                pool: "workers-10-clock-10".into(),
                slot: 1 << 20,
                term: Term::new(u64::MAX),
                mark: Mark::MAX,
                released: false,
                granted: Mark::MAX,
            };
            // As many that end, and of others and own sources.
            let others = usize::try_from(OTHERS_SLOTS_MAX).unwrap();
            let leases = vec![lease; PAST_MAX + 2 * others];
            let written = journal_writer.released(&LocalDisk, &leases).await;
            drop(std::fs::remove_dir_all(&path));
            written.unwrap();
        }
    }
}
