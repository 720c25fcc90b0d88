//! An operator's move of a store, and what it does to each value.

use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::model::history::{History, Known, Standing};
use crate::model::lease::check_mark;
use crate::model::name::check_name;
use crate::model::pool::SlotDefaults;

/// Highest count to move a store to: it continues from there as a signed 64-bit number.
const COUNT_MAX: u64 = Mark::MAX.get() - 1;

/// Highest count of recoveries to move a store to: each moves all counters by 2^40 numbers.
const RECOVERIES_MAX: u64 = 1 << 20;

/// Values that an operator moves forward, never back, after a store was restored or replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastForward {
    /// Minimum mark of every slot of the namespace afterwards, claimed before or not. (A number of
    /// a pool without reuse can be assigned once more, above this mark, if a lost state had
    /// assigned it.)
    pub marks_at_least: Mark,
    /// Minimum marks (next numbers) of the listed sources afterwards. A source that the store does
    /// not have is kept like a deleted one: a later `define` continues above its mark.
    pub segments: Vec<(String, Mark)>,
    /// Minimum of the store's `writes` afterwards.
    pub writes_at_least: u64,
    /// Number that the count of recoveries must exceed, at most 2^20.
    pub recoveries_at_least: u64,
    /// Number that the catalog's version must exceed afterwards. The version also rises above its
    /// former value, so that no lost version number is used for another definition.
    pub catalog_at_least: u64,
    /// State of the store when this was planned. The store is moved only while it is the same: a
    /// doubt may begin, or a journal report, meanwhile. `None` where it was not read.
    pub planned_on: Option<Standing>,
    /// IDs of the journals that the store removes from its list: no process will return with them.
    pub forget_journals: Vec<String>,
    /// Whether the store gets a new identity.
    pub new_identity: bool,
    /// Whether the step is rejected where another database server has the rows than the one that
    /// wrote them. Otherwise the step accepts that server: its operator vouches that no process
    /// uses the former one. All other namespaces of the store are in doubt from then on.
    pub same_server: bool,
    /// Whether the values alone are raised, in a store that lacks nothing as far as its processes
    /// have found: leases and counters stay as they are, except for worker numbers below a requested
    /// mark. A process that knows more still puts the store in doubt. Otherwise the step is a
    /// recovery, which such a process accepts if the store was moved past all that it knows. Fails
    /// with `StoreRolledBack` in a store in doubt, or in one that lacks what the handle has seen,
    /// and with `StoreMismatch` on another server.
    pub values_only: bool,
}

impl FastForward {
    /// Returns the mark to which worker marks rise; `None` when they stay.
    #[must_use]
    pub fn raised_marks(&self) -> Option<Mark> {
        Some(self.marks_at_least).filter(|mark| *mark > Mark::ZERO)
    }

    /// Returns the count to which the writes rise; `None` when the values alone are raised.
    #[must_use]
    pub fn raised_writes(&self) -> Option<u64> {
        (!self.values_only).then_some(self.writes_at_least)
    }

    /// Checks that every store can keep the marks, names and counts.
    ///
    /// # Errors
    /// `Invalid` when one of them is out of bounds.
    pub fn check(&self) -> Result<()> {
        let mut marks = self.segments.iter().map(|(_, mark)| *mark).chain([self.marks_at_least]);
        marks.try_for_each(check_mark)?;
        self.segments.iter().try_for_each(|(name, _)| check_name("source", name))?;
        let counts = [
            ("writes_at_least", self.writes_at_least, COUNT_MAX),
            ("catalog_at_least", self.catalog_at_least, COUNT_MAX),
            ("recoveries_at_least", self.recoveries_at_least, RECOVERIES_MAX),
        ];
        if let Some((field, count, most)) = counts.iter().find(|(_, count, most)| count > most) {
            let message = format!("{field} is {count}, maximum {most}; correct it");
            return Err(Error::invalid(message));
        }
        Ok(())
    }
}

impl History {
    /// Returns the number of recoveries including this one and those that the store has lost.
    #[must_use]
    pub fn recoveries_after(&self, forward: &FastForward) -> u64 {
        self.recoveries.max(forward.recoveries_at_least).saturating_add(1)
    }

    /// Returns the history, with a new start, after an operator moved the store forward; `new_id` is
    /// the identity if it becomes another store.
    #[must_use]
    pub fn recovered(self, forward: &FastForward, new_id: &str, start: u64) -> Self {
        let recoveries = self.recoveries_after(forward);
        let store = if forward.new_identity { new_id.to_owned() } else { self.store };
        Self { store, recoveries, start: String::new(), in_doubt: false }.started(start)
    }
}

impl SlotDefaults {
    /// Returns the defaults after an operator moved the namespace forward.
    #[must_use]
    pub fn fast_forwarded(self, forward: &FastForward) -> Self {
        let recoveries = forward.recoveries_at_least.saturating_add(1);
        let mark = self.mark.max(forward.marks_at_least);
        Self { mark, term: self.term.leap(recoveries), ..self }
    }
}

impl Standing {
    /// Ends the doubt after the store was moved forward, which applied the reports. The far marks of
    /// these reports remain: they show their nodes that the operator saw them.
    pub fn end(&mut self, forward: &FastForward) {
        self.doubt = None;
        self.journals.retain(|journal| !forward.forget_journals.contains(&journal.id));
        for journal in &mut self.journals {
            if !journal.has_reported && !forward.values_only {
                journal.far_mark = 0;
            }
            journal.has_reported = false;
        }
        self.known = Known::default();
    }
}
