//! Reports to a node's journal: how far the store has reserved for each segment source, for the
//! node itself and for embedded clients that reserve through it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use snowmint_core::ElapsedMillis;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Longest time, in milliseconds, that a report may wait for the journal before reserving stops. A
/// disk responds within milliseconds, even a slow one within some hundred. With a disk that hangs,
/// callers give up after about a second, and the numbers reserved for them are lost.
const HANGS_MS: u64 = 1_000;

/// Minter of reserved numbers. For each, the journal has an entry with their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum For {
    /// The node.
    Node,
    /// An embedded client that reserves through the node.
    Programs,
    /// IDs that the numbers of either became, where IDs differ from numbers.
    Ids,
}

impl For {
    const ALL: [Self; 3] = [Self::Node, Self::Programs, Self::Ids];
}

/// Numbers that the store has reserved, for the journal to record.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) source: String,
    pub(crate) whose: For,
    /// End of the reserved numbers: everything below is reserved.
    pub(crate) end: u64,
    /// First ID that was never handed out, where IDs differ from numbers.
    pub(crate) free: Option<u64>,
    /// Notified once the journal is on disk.
    pub(crate) told: oneshot::Sender<()>,
}

/// Reports that the driver has not read yet.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    /// Deleted sources that lost their entries to others; apply this before `reserved`.
    pub(crate) forgotten: BTreeSet<String>,
    pub(crate) reserved: Vec<Reserved>,
}

/// Reports since the driver last read them.
#[derive(Debug)]
pub(crate) struct Reports(Mutex<State>);

#[derive(Debug)]
enum State {
    /// The node keeps no journal.
    None,
    Open(Open),
    /// The driver has ended and acknowledges nothing any more.
    Ended,
}

#[derive(Debug, Default)]
struct Open {
    reported: Reported,
    /// Error of the journal's last write, if that failed.
    trouble: Option<Error>,
    /// Time since which a report waits for the journal, counted from the last successful write.
    waits_since: Option<ElapsedMillis>,
    /// Sources that have an entry in the journal, by minter.
    places: BTreeSet<(String, For)>,
    /// Those that are deleted, each with the catalog version of its deletion.
    deleted: BTreeMap<String, u64>,
    /// Bytes left for entries of further sources.
    room: usize,
    bytes_max: usize,
}

/// Returns the bytes that a source's end takes in a journal: quoted name, number, separators.
const fn place_bytes(name: &str) -> usize {
    name.len() + 24
}

impl Open {
    /// Checks whether a report made now would be on disk soon, as far as this is known.
    fn check_disk(&self, now: ElapsedMillis) -> Result<()> {
        match (&self.trouble, self.waits_since) {
            (Some(error), _) => Err(Error::unavailable(
                "journal cannot record reserved numbers; check the disk of the data directory",
            )
            .with_source(error.clone())),
            (None, Some(since)) if now.since(since) > HANGS_MS => Err(Error::unavailable(format!(
                "journal disk did not respond for {} ms, limit {HANGS_MS} ms; \
                 check the disk of the data directory",
                now.since(since)
            ))),
            _ => Ok(()),
        }
    }

    fn place(&mut self, source: &str, whose: For) -> Result<()> {
        if self.places.contains(&(source.to_owned(), whose)) {
            // If it was deleted, it has been defined again since.
            self.deleted.remove(source);
            return Ok(());
        }
        self.make_room(place_bytes(source));
        let Some(room) = self.room.checked_sub(place_bytes(source)) else {
            return Err(Error::exhausted(format!(
                "journal has no room for source {source:?}, maximum {} bytes; \
                 delete unused segment sources",
                self.bytes_max
            )));
        };
        self.room = room;
        self.places.insert((source.into(), whose));
        // The journal still has its entry.
        self.reported.forgotten.remove(source);
        Ok(())
    }

    /// Takes entries of deleted sources where no other room is left, if they are enough. Until then
    /// they stay: restoring the store to undo a mistaken delete needs the ends of its numbers.
    fn make_room(&mut self, bytes: usize) {
        let deleted = || self.deleted.keys().map(|name| self.places_bytes(name));
        if bytes <= self.room || bytes > deleted().fold(self.room, usize::saturating_add) {
            return;
        }
        while bytes > self.room
            && let Some(name) = self.deleted_first()
        {
            self.room = self.room.saturating_add(self.places_bytes(&name));
            self.deleted.remove(&name);
            self.places.retain(|(source, _)| *source != name);
            self.reported.forgotten.insert(name);
        }
    }

    /// Returns the bytes that a source's entries take.
    fn places_bytes(&self, source: &str) -> usize {
        let has_place = |whose: &For| self.places.contains(&(source.to_owned(), *whose));
        place_bytes(source) * For::ALL.iter().filter(|whose| has_place(whose)).count()
    }

    /// Returns the source that was deleted longest ago.
    fn deleted_first(&self) -> Option<String> {
        let first = self.deleted.iter().min_by_key(|(_, version)| **version);
        first.map(|(name, _)| name.clone())
    }

    fn count(&mut self) {
        let taken = self.places.iter().map(|(name, _)| place_bytes(name)).sum();
        self.room = self.bytes_max.saturating_sub(taken);
    }
}

impl Reports {
    /// Creates reports; `journalled` is whether the node keeps a journal.
    pub(super) fn new(journalled: bool) -> Self {
        let state = if journalled { State::Open(Open::default()) } else { State::None };
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of a journal write. `trouble` is its error, if it failed; `waits` is whether
    /// a report waits for the next write.
    pub(crate) fn written(&self, now: ElapsedMillis, trouble: Option<Error>, waits: bool) {
        if let State::Open(open) = &mut *self.state() {
            if trouble.is_none() {
                let waits = waits || !open.reported.reserved.is_empty();
                open.waits_since = waits.then_some(now);
            }
            open.trouble = trouble;
        }
    }

    /// Records that the journal has room for `bytes_max` bytes of entries, and the entries it has.
    pub(crate) fn begin(&self, places: BTreeSet<(String, For)>, bytes_max: usize) {
        if let State::Open(open) = &mut *self.state() {
            (open.places, open.bytes_max) = (places, bytes_max);
            open.count();
        }
    }

    /// Sets the deleted sources, each with the catalog version of its deletion. Their entries go to
    /// other sources once no other room is left.
    pub(crate) fn deleted(&self, mut deleted: BTreeMap<String, u64>) {
        if let State::Open(open) = &mut *self.state() {
            deleted.retain(|name, _| open.places_bytes(name) > 0);
            open.deleted = deleted;
        }
    }

    /// Checks that the journal would record numbers reserved now for a source, and the IDs that
    /// they become where it `renumbers`. Numbers that it could not record would never be used, so
    /// they are not reserved.
    ///
    /// # Errors
    /// `Unavailable` while the journal cannot be written, or hangs; `Exhausted` when it has no room
    /// for another entry; `Closed`.
    pub(super) fn check(
        &self,
        (source, whose): (&str, For),
        renumbers: bool,
        now: ElapsedMillis,
    ) -> Result<()> {
        match &mut *self.state() {
            State::None => Ok(()),
            State::Open(open) => {
                open.check_disk(now)?;
                open.place(source, whose)?;
                if renumbers { open.place(source, For::Ids) } else { Ok(()) }
            }
            State::Ended => Err(ended()),
        }
    }

    /// Reports that everything below `end` is reserved, and no ID from `free` on was handed out.
    /// Returns the receiver that is notified when the journal has it; `None` without a journal.
    pub(super) fn report(
        &self,
        (source, whose): (&str, For),
        (end, free): (u64, Option<u64>),
        now: ElapsedMillis,
    ) -> Result<Option<oneshot::Receiver<()>>> {
        match &mut *self.state() {
            State::None => Ok(None),
            State::Open(open) => {
                let (told, written) = oneshot::channel();
                open.waits_since.get_or_insert(now);
                let source = source.into();
                open.reported.reserved.push(Reserved { source, whose, end, free, told });
                Ok(Some(written))
            }
            State::Ended => Err(ended()),
        }
    }

    /// Takes the reports made since the last call.
    pub(crate) fn take(&self) -> Reported {
        match &mut *self.state() {
            State::Open(open) => std::mem::take(&mut open.reported),
            State::None | State::Ended => Reported::default(),
        }
    }

    /// Ends the driver's part: reports that wait, or come later, fail. Otherwise a fetch with a
    /// late store result would wait for ever, and keep the store open.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        if matches!(*state, State::Open(_)) {
            *state = State::Ended;
        }
    }
}

pub(super) fn ended() -> Error {
    Error::closed("node is closed; open it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: ElapsedMillis = ElapsedMillis::new(7);

    fn name(number: u64) -> String {
        format!("bills-{number:04}")
    }

    /// Reports with room for ten sources.
    fn of_ten() -> Reports {
        let reports = Reports::new(true);
        reports.begin([(name(0), For::Node)].into(), 10 * place_bytes(&name(0)));
        (0..10)
            .chain(0..10)
            .for_each(|number| reports.check((&name(number), For::Node), false, NOW).unwrap());
        reports
    }

    fn forgotten(reports: &Reports) -> Vec<String> {
        reports.take().forgotten.into_iter().collect()
    }

    #[test]
    fn source_without_journal_room_fails_until_one_is_deleted() {
        let reports = of_ten();
        for _ in 0..3 {
            let refused = reports.check((&name(10), For::Node), false, NOW).unwrap_err();
            assert_eq!(refused.kind().code(), "exhausted", "{refused}");
            reports.check((&name(3), For::Node), false, NOW).unwrap();
        }
        reports.deleted([(name(3), 20), (name(77), 1)].into());
        assert_eq!(forgotten(&reports), [""; 0], "nobody needs its place");
        reports.check((&name(10), For::Node), false, NOW).unwrap();
        assert_eq!(forgotten(&reports), [name(3)]);
        assert!(reports.check((&name(3), For::Node), false, NOW).is_err());
    }

    /// Thousands of sources may be made and deleted in turn; the last one deleted is kept longest.
    #[test]
    fn entry_deleted_longest_ago_is_removed_first() {
        let reports = of_ten();
        for number in 0..5_000 {
            reports.deleted((0..=number).rev().take(3).map(|gone| (name(gone), gone)).collect());
            reports.check((&name(number + 10), For::Node), false, NOW).unwrap();
            assert_eq!(forgotten(&reports), [name(number)], "the others' places went before");
        }
        reports.deleted((5_000..5_010).map(|number| (name(number), 6_000 - number)).collect());
        for number in [9, 8, 7] {
            reports.check((&name(6_000 + number), For::Node), false, NOW).unwrap();
            assert_eq!(forgotten(&reports), [name(5_000 + number)]);
        }
    }

    #[test]
    fn redefined_source_keeps_its_journal_entry() {
        let reports = of_ten();
        reports.deleted([(name(3), 20)].into());
        reports.check((&name(3), For::Node), false, NOW).unwrap();
        assert!(reports.check((&name(10), For::Node), false, NOW).is_err());
        assert_eq!(forgotten(&reports), [""; 0]);
        // Its entry is taken, and it gets a new one before the journal has seen the loss.
        reports.deleted([(name(3), 20), (name(4), 30)].into());
        reports.check((&name(10), For::Node), false, NOW).unwrap();
        reports.check((&name(3), For::Node), false, NOW).unwrap();
        assert_eq!(forgotten(&reports), [name(4)]);
    }

    #[test]
    fn places_that_are_not_enough_are_left_as_they_are() {
        let reports = of_ten();
        reports.deleted([(name(3), 20)].into());
        assert!(reports.check((&"long".repeat(15), For::Node), false, NOW).is_err());
        assert_eq!(forgotten(&reports), [""; 0]);
        reports.check((&name(10), For::Node), false, NOW).unwrap();
    }

    #[test]
    fn while_the_disk_hangs_nothing_more_is_reserved() {
        let (reports, later) = (of_ten(), |ms| NOW.saturating_add(ms));
        let refused = |ms| reports.check((&name(0), For::Node), false, later(ms)).is_err();
        reports.report((&name(0), For::Node), (11, None), NOW).unwrap();
        assert_eq!([HANGS_MS - 1, HANGS_MS, HANGS_MS + 1].map(refused), [false, false, true]);
        // A report that came after that write had begun waits for the next one.
        reports.take();
        reports.written(later(5_000), None, true);
        assert_eq!([6_000, 6_001].map(refused), [false, true]);
        reports.report((&name(0), For::Node), (21, None), later(5_500)).unwrap();
        reports.written(later(7_000), None, false);
        assert_eq!([8_000, 8_001].map(refused), [false, true], "one was not even looked at");
        reports.take();
        reports.written(later(9_000), None, false);
        assert!(!refused(99_000), "nobody waits");
    }
}
