//! Reports to a node's journal: how far the store has reserved for each segment source, for the
//! node itself and for embedded clients that reserve through it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use snowmint_core::ElapsedMillis;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::platform::lock::lock;

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
    write_error: Option<Error>,
    /// Time since which a report waits for the journal, counted from the last successful write.
    waits_since: Option<ElapsedMillis>,
    /// Sources that have an entry in the journal, by minter.
    places: BTreeSet<(String, ReservedFor)>,
    /// Those that are deleted, each with the catalog version of its deletion.
    deleted: BTreeMap<String, u64>,
    /// Own sources of the node; none where every source is its own.
    own: Option<BTreeSet<String>>,
    /// Bytes of all entries.
    used: usize,
    /// Bytes of entries of sources that are not the node's own.
    others_used: usize,
    bytes_max: usize,
}

/// Returns the bytes that a source's end takes in a journal: quoted name, number, separators.
const fn place_bytes(name: &str) -> usize {
    name.len() + 24
}

impl Open {
    /// Checks whether a report made now would be on disk soon, as far as this is known.
    fn check_disk(&self, now: ElapsedMillis) -> Result<()> {
        match (&self.write_error, self.waits_since) {
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
        let (bytes, is_own) = (place_bytes(source), self.is_own(source));
        self.make_room(bytes, is_own);
        if !self.has_room(bytes, is_own, 0) {
            return Err(self.no_room(source, is_own));
        }
        self.used = self.used.saturating_add(bytes);
        if !is_own {
            self.others_used = self.others_used.saturating_add(bytes);
        }
        self.places.insert((source.into(), reserved_for));
        // The journal still has its entry.
        self.reported.forgotten.remove(source);
        Ok(())
    }

    fn is_own(&self, source: &str) -> bool {
        self.own.as_ref().is_none_or(|own| own.contains(source))
    }

    /// Returns the byte limit for sources that are not the node's own. Any token with `admin` over
    /// a pattern of names can define such sources, and mint from each.
    const fn others_max(&self) -> usize {
        self.bytes_max / 2
    }

    /// Returns whether an entry has room once `freed` bytes of entries that it may take are gone.
    fn has_room(&self, bytes: usize, is_own: bool, freed: usize) -> bool {
        let after = |used: usize| used.saturating_sub(freed).saturating_add(bytes);
        after(self.used) <= self.bytes_max
            && (is_own || after(self.others_used) <= self.others_max())
    }

    fn no_room(&self, source: &str, is_own: bool) -> Error {
        let (bytes_max, others_max) = (self.bytes_max, self.others_max());
        let others_used = self.others_used.saturating_add(place_bytes(source));
        Error::exhausted(if !is_own && others_used > others_max {
            format!(
                "journal has no room for source {source:?}: sources outside the configuration have \
                 at most {others_max} bytes; delete unused ones, or add it to the configuration"
            )
        } else {
            format!(
                "journal has no room for source {source:?}, maximum {bytes_max} bytes; delete \
                 unused segment sources"
            )
        })
    }

    /// Takes entries of deleted sources where no other room is left, if they are enough. Until then
    /// they stay: restoring the store to undo a mistaken delete needs the ends of its numbers.
    fn make_room(&mut self, bytes: usize, is_own: bool) {
        if self.has_room(bytes, is_own, 0) {
            return;
        }
        let freed = self.takeable(is_own).map(|(name, _)| self.places_bytes(name)).sum();
        if !self.has_room(bytes, is_own, freed) {
            return;
        }
        while !self.has_room(bytes, is_own, 0)
            && let Some(name) = self.deleted_first(is_own)
        {
            self.deleted.remove(&name);
            self.places.retain(|(source, _)| *source != name);
            self.reported.forgotten.insert(name);
            self.count();
        }
    }

    /// Returns the bytes that a source's entries take.
    fn places_bytes(&self, source: &str) -> usize {
        let has_place =
            |reserved_for: &ReservedFor| self.places.contains(&(source.to_owned(), *reserved_for));
        place_bytes(source)
            * ReservedFor::ALL.iter().filter(|reserved_for| has_place(reserved_for)).count()
    }

    /// Returns the deleted sources whose entries a source may take. Only own sources take those of
    /// own ones.
    fn takeable(&self, is_own: bool) -> impl Iterator<Item = (&String, &u64)> {
        self.deleted.iter().filter(move |(name, _)| is_own || !self.is_own(name))
    }

    /// Returns the one of them that was deleted longest ago.
    fn deleted_first(&self, is_own: bool) -> Option<String> {
        let first = self.takeable(is_own).min_by_key(|(_, version)| **version);
        first.map(|(name, _)| name.clone())
    }

    fn count(&mut self) {
        let bytes = |(name, _): &(String, ReservedFor)| place_bytes(name);
        self.used = self.places.iter().map(bytes).sum();
        let others = self.places.iter().filter(|(name, _)| !self.is_own(name));
        self.others_used = others.map(bytes).sum();
    }
}

impl JournalBudget {
    /// Creates a budget; `journalled` is whether the node keeps a journal.
    pub(super) fn new(journalled: bool) -> Self {
        let state = if journalled { BudgetState::Open(Open::default()) } else { BudgetState::None };
        Self(Mutex::new(state))
    }

    /// Records that something besides a report waits for the journal.
    pub(crate) fn waits(&self, now: ElapsedMillis) {
        if let BudgetState::Open(open) = &mut *lock(&self.0) {
            open.waits_since.get_or_insert(now);
        }
    }

    /// Checks that the journal's disk responds, as far as this is known.
    ///
    /// # Errors
    /// `Unavailable` while the journal cannot be written, or hangs.
    pub(crate) fn check_disk(&self, now: ElapsedMillis) -> Result<()> {
        match &*lock(&self.0) {
            BudgetState::Open(open) => open.check_disk(now),
            BudgetState::None | BudgetState::Ended => Ok(()),
        }
    }

    /// Records the end of a journal write, with its error if it failed; `has_waiters` is whether a
    /// report waits for the next write.
    pub(crate) fn written(
        &self,
        now: ElapsedMillis,
        write_error: Option<Error>,
        has_waiters: bool,
    ) {
        if let BudgetState::Open(open) = &mut *lock(&self.0) {
            if write_error.is_none() {
                let waits = has_waiters || !open.reported.reserved.is_empty();
                open.waits_since = waits.then_some(now);
            }
            open.write_error = write_error;
        }
    }

    /// Records that the journal has room for `bytes_max` bytes of entries, and the entries it has.
    pub(crate) fn begin(&self, places: BTreeSet<(String, ReservedFor)>, bytes_max: usize) {
        if let BudgetState::Open(open) = &mut *lock(&self.0) {
            (open.places, open.bytes_max) = (places, bytes_max);
            open.count();
        }
    }

    /// Sets the own sources of the node. Without this call every source is its own.
    pub(crate) fn set_own(&self, own: BTreeSet<String>) {
        if let BudgetState::Open(open) = &mut *lock(&self.0) {
            open.own = Some(own);
            open.count();
        }
    }

    /// Sets the deleted sources, each with the catalog version of its deletion. Their entries go to
    /// other sources once no other room is left.
    pub(crate) fn deleted(&self, mut deleted: BTreeMap<String, u64>) {
        if let BudgetState::Open(open) = &mut *lock(&self.0) {
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
        match &mut *lock(&self.0) {
            BudgetState::None => Ok(()),
            BudgetState::Open(open) => {
                open.check_disk(now)?;
                open.place(source, reserved_for)?;
                if renumbers { open.place(source, ReservedFor::Ids) } else { Ok(()) }
            }
            BudgetState::Ended => Err(node_closed()),
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
        match &mut *lock(&self.0) {
            BudgetState::None => Ok(None),
            BudgetState::Open(open) => {
                let (waiter, written) = oneshot::channel();
                open.waits_since.get_or_insert(now);
                let source = source.into();
                open.reported.reserved.push(Reserved { source, reserved_for, end, free, waiter });
                Ok(Some(written))
            }
            BudgetState::Ended => Err(node_closed()),
        }
    }

    /// Takes the reports made since the last call.
    pub(crate) fn take(&self) -> Reported {
        match &mut *lock(&self.0) {
            BudgetState::Open(open) => std::mem::take(&mut open.reported),
            BudgetState::None | BudgetState::Ended => Reported::default(),
        }
    }

    /// Ends the driver's part: reports that wait, or come later, fail. Otherwise a fetch with a
    /// late store result would wait for ever, and keep the store open.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.0);
        if matches!(*state, BudgetState::Open(_)) {
            *state = BudgetState::Ended;
        }
    }
}

pub(crate) fn node_closed() -> Error {
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

    /// Checks an entry of the node for this source.
    fn check(budget: &JournalBudget, number: u64) -> Result<(), String> {
        let checked = budget.check((&name(number), ReservedFor::Node), false, NOW);
        checked.map_err(|error| error.to_string())
    }

    /// Returns a budget with room for ten sources, for a node with these own sources.
    fn of_ten_with_own(own: std::ops::Range<u64>, places: std::ops::Range<u64>) -> JournalBudget {
        let budget = JournalBudget::new(true);
        let places = places.map(|number| (name(number), ReservedFor::Node)).collect();
        budget.begin(places, 10 * place_bytes(&name(0)));
        budget.set_own(own.map(name).collect());
        budget
    }

    /// One token could otherwise keep each new own source from minting.
    #[test]
    fn other_sources_leave_half_of_the_room_to_own_ones() {
        let budget = of_ten_with_own(100..110, 0..0);
        (0..4).for_each(|number| check(&budget, number).unwrap());
        // Entries of embedded clients, and those for IDs, count as well.
        budget.check((&name(0), ReservedFor::Node), true, NOW).unwrap();
        let refused = budget.check((&name(1), ReservedFor::Clients), false, NOW).unwrap_err();
        for part in ["outside the configuration", "at most 170 bytes"] {
            assert!(refused.to_string().contains(part), "{refused}");
        }
        (100..105).for_each(|number| check(&budget, number).unwrap());
        let refused = check(&budget, 105).unwrap_err();
        assert!(refused.contains("maximum 340 bytes"), "{refused}");
        (0..4).chain(100..105).for_each(|number| check(&budget, number).unwrap());

        // The entry of a deleted own source, however old, goes to own sources alone.
        budget.deleted([(name(100), 10), (name(1), 20), (name(2), 30)].into());
        check(&budget, 4).unwrap();
        assert_eq!(forgotten(&budget), [name(1)]);
        check(&budget, 105).unwrap();
        assert_eq!(forgotten(&budget), [name(100)]);
        check(&budget, 106).unwrap();
        assert_eq!(forgotten(&budget), [name(2)]);
    }

    /// A journal may be fuller: of an earlier version, or of a configuration with more sources.
    #[test]
    fn other_sources_beyond_their_half_get_no_more() {
        let budget = of_ten_with_own(100..110, 0..8);
        assert!(check(&budget, 8).unwrap_err().contains("outside the configuration"));
        (100..102).for_each(|number| check(&budget, number).unwrap());
        budget.deleted((0..3).map(|number| (name(number), number)).collect());
        assert!(check(&budget, 8).unwrap_err().contains("outside the configuration"));
        assert_eq!(forgotten(&budget), [""; 0], "three entries are not enough");
        budget.deleted((0..4).map(|number| (name(number), number)).collect());
        check(&budget, 8).unwrap();
        assert_eq!(forgotten(&budget), [name(0), name(1), name(2), name(3)]);
        assert!(check(&budget, 9).is_err());
        // The configuration takes one of them over.
        budget.set_own((4..5).chain(100..110).map(name).collect());
        check(&budget, 9).unwrap();
        assert!(check(&budget, 10).is_err());
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
