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
pub(crate) enum ReservedFor {
    /// The node.
    Node,
    /// An embedded client that reserves through the node.
    Clients,
    /// IDs that the numbers of either became, where IDs differ from numbers.
    Ids,
}

impl ReservedFor {
    const ALL: [Self; 3] = [Self::Node, Self::Clients, Self::Ids];
}

/// Numbers that the store has reserved, for the journal to record.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) source: String,
    pub(crate) reserved_for: ReservedFor,
    /// End of the reserved numbers: everything below is reserved.
    pub(crate) end: u64,
    /// First ID that was never handed out, where IDs differ from numbers.
    pub(crate) free: Option<u64>,
    /// Notified once the journal is on disk.
    pub(crate) waiter: oneshot::Sender<()>,
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
pub(crate) struct JournalBudget(Mutex<BudgetState>);

#[derive(Debug)]
enum BudgetState {
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
    places: BTreeSet<(String, ReservedFor)>,
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

    fn place(&mut self, source: &str, reserved_for: ReservedFor) -> Result<()> {
        if self.places.contains(&(source.to_owned(), reserved_for)) {
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
        self.places.insert((source.into(), reserved_for));
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
        let has_place =
            |reserved_for: &ReservedFor| self.places.contains(&(source.to_owned(), *reserved_for));
        place_bytes(source)
            * ReservedFor::ALL.iter().filter(|reserved_for| has_place(reserved_for)).count()
    }

    /// Returns the source that was deleted longest ago.
    fn deleted_first(&self) -> Option<String> {
        let first = self.deleted.iter().min_by_key(|(_, version)| **version);
        first.map(|(name, _)| name.clone())
    }

    fn count(&mut self) {
        let used = self.places.iter().map(|(name, _)| place_bytes(name)).sum();
        self.room = self.bytes_max.saturating_sub(used);
    }
}

impl JournalBudget {
    /// Creates a budget; `journalled` is whether the node keeps a journal.
    pub(super) fn new(journalled: bool) -> Self {
        let state = if journalled { BudgetState::Open(Open::default()) } else { BudgetState::None };
        Self(Mutex::new(state))
    }

    fn state(&self) -> MutexGuard<'_, BudgetState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of a journal write. `trouble` is its error, if it failed; `waits` is whether
    /// a report waits for the next write.
    pub(crate) fn written(&self, now: ElapsedMillis, trouble: Option<Error>, waits: bool) {
        if let BudgetState::Open(open) = &mut *self.state() {
            if trouble.is_none() {
                let waits = waits || !open.reported.reserved.is_empty();
                open.waits_since = waits.then_some(now);
            }
            open.trouble = trouble;
        }
    }

    /// Records that the journal has room for `bytes_max` bytes of entries, and the entries it has.
    pub(crate) fn begin(&self, places: BTreeSet<(String, ReservedFor)>, bytes_max: usize) {
        if let BudgetState::Open(open) = &mut *self.state() {
            (open.places, open.bytes_max) = (places, bytes_max);
            open.count();
        }
    }

    /// Sets the deleted sources, each with the catalog version of its deletion. Their entries go to
    /// other sources once no other room is left.
    pub(crate) fn deleted(&self, mut deleted: BTreeMap<String, u64>) {
        if let BudgetState::Open(open) = &mut *self.state() {
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
        (source, reserved_for): (&str, ReservedFor),
        renumbers: bool,
        now: ElapsedMillis,
    ) -> Result<()> {
        match &mut *self.state() {
            BudgetState::None => Ok(()),
            BudgetState::Open(open) => {
                open.check_disk(now)?;
                open.place(source, reserved_for)?;
                if renumbers { open.place(source, ReservedFor::Ids) } else { Ok(()) }
            }
            BudgetState::Ended => Err(ended()),
        }
    }

    /// Reports that everything below `end` is reserved, and no ID from `free` on was handed out.
    /// Returns the receiver that is notified when the journal has it; `None` without a journal.
    pub(super) fn report(
        &self,
        (source, reserved_for): (&str, ReservedFor),
        (end, free): (u64, Option<u64>),
        now: ElapsedMillis,
    ) -> Result<Option<oneshot::Receiver<()>>> {
        match &mut *self.state() {
            BudgetState::None => Ok(None),
            BudgetState::Open(open) => {
                let (waiter, written) = oneshot::channel();
                open.waits_since.get_or_insert(now);
                let source = source.into();
                open.reported.reserved.push(Reserved { source, reserved_for, end, free, waiter });
                Ok(Some(written))
            }
            BudgetState::Ended => Err(ended()),
        }
    }

    /// Takes the reports made since the last call.
    pub(crate) fn take(&self) -> Reported {
        match &mut *self.state() {
            BudgetState::Open(open) => std::mem::take(&mut open.reported),
            BudgetState::None | BudgetState::Ended => Reported::default(),
        }
    }

    /// Ends the driver's part: reports that wait, or come later, fail. Otherwise a fetch with a
    /// late store result would wait for ever, and keep the store open.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        if matches!(*state, BudgetState::Open(_)) {
            *state = BudgetState::Ended;
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

    /// Returns a budget with room for ten sources.
    fn of_ten() -> JournalBudget {
        let budget = JournalBudget::new(true);
        budget.begin([(name(0), ReservedFor::Node)].into(), 10 * place_bytes(&name(0)));
        (0..10).chain(0..10).for_each(|number| {
            budget.check((&name(number), ReservedFor::Node), false, NOW).unwrap()
        });
        budget
    }

    fn forgotten(budget: &JournalBudget) -> Vec<String> {
        budget.take().forgotten.into_iter().collect()
    }

    #[test]
    fn source_without_journal_room_fails_until_one_is_deleted() {
        let budget = of_ten();
        for _ in 0..3 {
            let refused = budget.check((&name(10), ReservedFor::Node), false, NOW).unwrap_err();
            assert_eq!(refused.kind().code(), "exhausted", "{refused}");
            budget.check((&name(3), ReservedFor::Node), false, NOW).unwrap();
        }
        budget.deleted([(name(3), 20), (name(77), 1)].into());
        assert_eq!(forgotten(&budget), [""; 0], "no other source needs its place");
        budget.check((&name(10), ReservedFor::Node), false, NOW).unwrap();
        assert_eq!(forgotten(&budget), [name(3)]);
        assert!(budget.check((&name(3), ReservedFor::Node), false, NOW).is_err());
    }

    /// Thousands of sources may be made and deleted in turn; the last one deleted is kept longest.
    #[test]
    fn entry_deleted_longest_ago_is_removed_first() {
        let budget = of_ten();
        for number in 0..5_000 {
            budget.deleted((0..=number).rev().take(3).map(|gone| (name(gone), gone)).collect());
            budget.check((&name(number + 10), ReservedFor::Node), false, NOW).unwrap();
            assert_eq!(forgotten(&budget), [name(number)], "the others' places went before");
        }
        budget.deleted((5_000..5_010).map(|number| (name(number), 6_000 - number)).collect());
        for number in [9, 8, 7] {
            budget.check((&name(6_000 + number), ReservedFor::Node), false, NOW).unwrap();
            assert_eq!(forgotten(&budget), [name(5_000 + number)]);
        }
    }

    #[test]
    fn redefined_source_keeps_its_journal_entry() {
        let budget = of_ten();
        budget.deleted([(name(3), 20)].into());
        budget.check((&name(3), ReservedFor::Node), false, NOW).unwrap();
        assert!(budget.check((&name(10), ReservedFor::Node), false, NOW).is_err());
        assert_eq!(forgotten(&budget), [""; 0]);
        // Its entry is taken, and it gets a new one before the journal has seen the loss.
        budget.deleted([(name(3), 20), (name(4), 30)].into());
        budget.check((&name(10), ReservedFor::Node), false, NOW).unwrap();
        budget.check((&name(3), ReservedFor::Node), false, NOW).unwrap();
        assert_eq!(forgotten(&budget), [name(4)]);
    }

    #[test]
    fn places_that_are_not_enough_are_left_as_they_are() {
        let budget = of_ten();
        budget.deleted([(name(3), 20)].into());
        assert!(budget.check((&"long".repeat(15), ReservedFor::Node), false, NOW).is_err());
        assert_eq!(forgotten(&budget), [""; 0]);
        budget.check((&name(10), ReservedFor::Node), false, NOW).unwrap();
    }

    #[test]
    fn while_the_disk_hangs_nothing_more_is_reserved() {
        let (budget, later) = (of_ten(), |ms| NOW.saturating_add(ms));
        let refused = |ms| budget.check((&name(0), ReservedFor::Node), false, later(ms)).is_err();
        budget.report((&name(0), ReservedFor::Node), (11, None), NOW).unwrap();
        assert_eq!([HANGS_MS - 1, HANGS_MS, HANGS_MS + 1].map(refused), [false, false, true]);
        // A report that came after that write had begun waits for the next one.
        budget.take();
        budget.written(later(5_000), None, true);
        assert_eq!([6_000, 6_001].map(refused), [false, true]);
        budget.report((&name(0), ReservedFor::Node), (21, None), later(5_500)).unwrap();
        budget.written(later(7_000), None, false);
        assert_eq!([8_000, 8_001].map(refused), [false, true], "one was not even looked at");
        budget.take();
        budget.written(later(9_000), None, false);
        assert!(!refused(99_000), "no source waits");
    }
}
