//! Words of an operator that a recovery needs: about IDs far ahead of the clock, and counters of
//! which no journal knows.

use snowmint_core::{Rfc3339, UnixMillis};

use super::{JournalState, Recovery, RecoveryRequest, days_too_far_ahead};
use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::journal::{Inspected, Record};
use crate::model::history::{JournalInfo, Known};

/// Highest number of a counter that a recovery can pass: half of what the count of recoveries can
/// reach, so that later recoveries have room.
const COUNTERS_ABOVE_MAX: u64 = 1 << 59;

impl Recovery {
    /// Returns the reasons why the store cannot be moved yet: missing reports, journals that may
    /// be old copies, a journal's mark far ahead of the clock, and lost counters. `None` when all is
    /// known, or an operator vouches for the rest.
    #[must_use]
    pub fn unsaid(&self, request: &RecoveryRequest) -> Option<String> {
        let unreported = self.unreported();
        let lost = self.lost_counters(request).filter(|_| unreported.is_none());
        let reasons = [unreported, self.unvouched(request), self.far_marks(request), lost];
        let reasons: Vec<_> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join(". "))
    }

    /// Returns the knowledge that counts by the word of an operator. The number of recoveries is
    /// such that counters continue above the given number.
    pub(super) fn counted(&self, request: &RecoveryRequest) -> Known {
        let mut known = self.known();
        if request.no_ids_ahead {
            let near = self.marks().filter(|mark| !self.is_far(*mark)).max();
            known.mark = near.map_or(0, UnixMillis::get);
        }
        let recoveries = request.counters_above.map_or(0, Mark::leaps_below);
        known.recoveries = known.recoveries.max(recoveries);
        known
    }

    /// Returns whether the mark of a journal is left out, so that its process would reject the store.
    #[must_use]
    pub fn leaves_out(&self, record: &Record, request: &RecoveryRequest) -> bool {
        let mark = UnixMillis::new(record.known().mark);
        request.no_ids_ahead && !self.is_whole() && self.is_far(mark)
    }

    /// Rejects a number that counters cannot pass, marks that are left out without a time that no ID
    /// in use has reached, and both for a store that is not in doubt.
    pub(super) fn check_confirmed(&self, request: &RecoveryRequest) -> Result<()> {
        let above = request.counters_above;
        if let Some(above) = above.filter(|above| *above > COUNTERS_ABOVE_MAX) {
            return Err(Error::invalid(format!(
                "counters_above is {above}, maximum {COUNTERS_ABOVE_MAX}; give the highest number \
                 below that, and raise each key above it by itself (PUT /v1/counters/SOURCE/KEY)"
            )));
        }
        // The reports of all servers are one maximum, so that the near marks among them are unknown.
        if request.no_ids_ahead && request.mark.is_none() {
            return Err(Error::invalid(
                "marks cannot be left out (--no-ids-ahead) without a time that no ID in use has \
                 reached; give it (--mark TIME, \"mark\": \"TIME\")",
            ));
        }
        let whole = self.is_whole() && request.has_values();
        if whole && above.is_some() {
            return Err(Error::invalid(
                "counters cannot be moved (--counters-above), because the store is not in doubt; \
                 raise the bound of a counter (PUT /v1/counters)",
            ));
        }
        if whole && request.no_ids_ahead {
            return Err(Error::invalid(
                "no mark can be left out (--no-ids-ahead), because the store is not in doubt; omit \
                 the option",
            ));
        }
        Ok(())
    }

    /// Returns the marks of the reports, merged, and of each journal that was read.
    fn marks(&self) -> impl Iterator<Item = UnixMillis> {
        let read = self.read.iter().map(|read| read.record.known().mark);
        read.chain([self.standing.known.mark]).map(UnixMillis::new)
    }

    const fn is_far(&self, mark: UnixMillis) -> bool {
        days_too_far_ahead(mark, self.now).is_some()
    }

    /// Returns the mark of a journal that is far ahead of the clock.
    fn far_mark(&self, journal: &JournalInfo) -> Option<UnixMillis> {
        let read = self.read.iter().filter(|read| read.record.id == journal.id);
        let read = read.map(|read| read.record.known().mark);
        // A store that is not in doubt has those of the last recovery.
        let reported = Some(journal.far_mark).filter(|_| !self.is_whole());
        let marks = read.chain(reported).map(UnixMillis::new);
        marks.filter(|mark| self.is_far(*mark)).max()
    }

    /// Describes a journal's state, for people.
    #[must_use]
    pub fn state_text(&self, journal: &JournalInfo, state: JournalState) -> String {
        let mut read = self.read.iter().filter(|read| read.record.id == journal.id);
        let other =
            read.any(|read| self.is_of_another(&read.record)).then_some(", of another store");
        let far = self.far_mark(journal).map(|mark| format!(", worker mark {}", Rfc3339(mark)));
        format!("{state}{}{}", other.unwrap_or_default(), far.unwrap_or_default())
    }

    /// Returns the error of unconfirmed marks far ahead of the clock: all worker numbers would go
    /// there, and nothing lowers them.
    fn far_marks(&self, request: &RecoveryRequest) -> Option<String> {
        let latest = self.marks().max().filter(|mark| self.is_far(*mark))?;
        let is_named = request.no_ids_ahead || request.mark.is_some_and(|mark| mark >= latest);
        if is_named || self.is_whole() {
            return None;
        }
        let journals = self.standing.journals.iter();
        let named = journals.filter_map(|journal| {
            let mark = self.far_mark(journal)?;
            Some((mark, format!("journal {} of {} ({})", journal.id, journal.of(), Rfc3339(mark))))
        });
        let is_unlisted =
            |read: &&Record| self.standing.journals.iter().all(|journal| journal.id != read.id);
        let read = self.read.iter().map(|read| &read.record).filter(is_unlisted);
        let read = read.map(|read| (UnixMillis::new(read.known().mark), read));
        let read = read.filter(|(mark, _)| self.is_far(*mark)).map(|(mark, read)| {
            (mark, format!("journal {:?} that was read ({})", read.id, Rfc3339(mark)))
        });
        let mut named: Vec<_> = named.chain(read).collect();
        if named.iter().all(|(mark, _)| *mark < latest) {
            named.push((latest, format!("a report that names no journal ({})", Rfc3339(latest))));
        }
        let named: Vec<_> = named.into_iter().map(|(_, text)| text).collect();
        let (named, time) = (named.join(", "), Rfc3339(latest));
        Some(format!(
            "worker marks of {named} are more than a day ahead of this clock: moved there, no server \
             would mint by worker numbers before {time}, and nothing lowers them. If such IDs are in \
             use, confirm that time (--mark {time} --far-ahead). If none is, as after \
             `worker reclaim`, name a time that no ID in use has reached, and leave these marks \
             out (--mark TIME --no-ids-ahead). Later IDs would come again"
        ))
    }

    /// Returns the error of counters that may repeat: the lost journals may know of recoveries that
    /// no other knows, and each has moved all counters.
    fn lost_counters(&self, request: &RecoveryRequest) -> Option<String> {
        let is_named = request.counters_above.is_some() || !self.has_counters || self.is_whole();
        if is_named || self.knows_recoveries(request) {
            return None;
        }
        Some(
            "perhaps only journals that are lost, or newer than their copies, know how often the \
             store was recovered, so numbers of counters could come again. Give the highest number of any counter, or 0 if none has \
             counted (--counters-above NUMBER, \"counters_above\": \"NUMBER\")"
                .to_owned(),
        )
    }

    /// Returns whether the number of the store's recoveries is surely known: no journal is left out,
    /// and one at least has reported or was read. One that an earlier recovery has set aside does
    /// not know of that recovery, and an old copy not of those since. A report without a journal may
    /// be part of a restored doubt: nothing shows that its process repeats it.
    fn knows_recoveries(&self, request: &RecoveryRequest) -> bool {
        let is_current = |read: &&Inspected| {
            let is_last = request.journals_are_complete || !read.is_perhaps_old;
            is_last && !self.set_aside.contains(&read.record.id)
        };
        let mut read = self.read.iter().filter(is_current);
        let is_read = read.any(|read| !read.record.store.is_empty());
        let has_reported = self.standing.journals.iter().any(|journal| journal.has_reported);
        self.without.is_empty() && (is_read || has_reported)
    }
}
