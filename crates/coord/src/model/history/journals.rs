//! Knowledge of journals about a store, collected in the store before an operator recovers it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Doubt, History, OthersInDoubt};
use crate::error::label::Visible;

/// Maximum number of journals that a store remembers: those that joined last.
pub const JOURNALS_MAX: usize = 256;

/// Known progress of a store. Each value is a maximum, so two merged reports know the larger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// Highest mark of a worker number.
    pub mark: u64,
    /// Next number of each source.
    pub ends: BTreeMap<String, u64>,
    /// First ID never issued, for each source with IDs that differ from its numbers. The store may
    /// have lost the stripe that maps numbers to IDs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ids: BTreeMap<String, u64>,
    /// Count of writes.
    pub writes: u64,
    /// Number of recoveries of the store.
    pub recoveries: u64,
    /// Version of the catalog.
    pub catalog: u64,
    /// Other journals that had joined; a store that was rolled back may not know them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub journals: Vec<JournalInfo>,
}

impl Known {
    /// Merges another report about the store, without its list of journals.
    pub fn merge(&mut self, other: &Self) {
        self.mark = self.mark.max(other.mark);
        self.writes = self.writes.max(other.writes);
        self.recoveries = self.recoveries.max(other.recoveries);
        self.catalog = self.catalog.max(other.catalog);
        raise(&mut self.ends, &other.ends);
        raise(&mut self.ids, &other.ids);
    }
}

/// Raises each entry to the maximum of both maps.
fn raise(known: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    for (name, other) in others {
        let known = known.entry(name.clone()).or_default();
        *known = (*known).max(*other);
    }
}

/// A journal that has joined a store, as the store remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalInfo {
    /// Random name of the journal; an owner may have several journals.
    pub id: String,
    /// Label of the process that owns the journal.
    pub owner: String,
    /// Host of that process.
    pub host: String,
    /// Time of its last join or report, in Unix milliseconds by the clock of its process.
    pub seen_at_ms: u64,
    /// Whether the journal has reported its knowledge since the store is in doubt.
    #[serde(default)]
    pub has_reported: bool,
    /// Whether the journal is known only from another journal's report: the store lost its join, or
    /// never had it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_heard_of: bool,
    /// Number of its reports, so that a repeated one shows. Earlier versions do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reports: u64,
    /// Mark of a worker number in its report to the present doubt, or the last one, if more than a
    /// day ahead of its clock; otherwise 0. Earlier versions do not name it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub far_mark: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Bytes of an entry's text without its labels.
const JOURNAL_BYTES: usize = 120;

impl JournalInfo {
    /// Returns whether the last report had this mark, far ahead of the clock. A store that a
    /// recovery has left below it was left there by the operator.
    pub(crate) const fn has_reported_far(&self, mark: u64) -> bool {
        self.far_mark > 0 && self.far_mark >= mark
    }

    /// Returns the journals seen last that fit into `bytes_max` bytes, without the state of their
    /// reports.
    #[must_use]
    pub fn fitting(mut journals: Vec<Self>, bytes_max: usize) -> Vec<Self> {
        journals.sort_by_key(|journal| std::cmp::Reverse(journal.seen_at_ms));
        let mut room = bytes_max;
        journals.retain_mut(|journal| {
            (journal.has_reported, journal.is_heard_of) = (false, false);
            (journal.reports, journal.far_mark) = (0, 0);
            let left = room.checked_sub(journal.owner.len() + journal.host.len() + JOURNAL_BYTES);
            room = left.unwrap_or(0);
            left.is_some()
        });
        journals
    }
}

/// State of a store in doubt, with the reports of journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Identity of the store, in its history: [`StoreIdentity::id`](crate::StoreIdentity::id).
    pub id: String,
    /// Reason for the doubt; `None` when the store is not in doubt.
    pub doubt: Option<Doubt>,
    /// Journals that have joined, by name.
    pub journals: Vec<JournalInfo>,
    /// Merged knowledge of all reports.
    pub known: Known,
    /// Other namespaces in doubt. They change no plan for this one.
    pub others_in_doubt: OthersInDoubt,
}

impl Standing {
    /// Puts the store in doubt, unless it is already.
    pub fn begin(&mut self, doubt: &Doubt) {
        if self.doubt.is_none() {
            self.doubt = Some(doubt.clone());
            for journal in &mut self.journals {
                (journal.has_reported, journal.far_mark) = (false, 0);
            }
            self.known = Known::default();
        }
    }

    /// Records a journal and its report. The report counts only while the store is in doubt, as the
    /// journal may know more by the next time. A process without a journal has no ID: its knowledge
    /// counts, but no report of it is awaited.
    pub fn record_report(&mut self, journal: &JournalInfo, known: Option<&Known>) {
        let known = known.filter(|_| self.doubt.is_some());
        if !journal.id.is_empty() {
            self.list(journal, known.is_some());
        }
        if let Some(known) = known {
            self.known.merge(known);
            let is_new = |other: &&JournalInfo| self.journals.iter().all(|it| it.id != other.id);
            let others: Vec<_> = known.journals.iter().filter(is_new).cloned().collect();
            others.iter().for_each(|other| self.record_named(other));
        }
    }

    /// Records a journal that another journal reported.
    pub fn record_named(&mut self, journal: &JournalInfo) {
        self.list(&JournalInfo { is_heard_of: true, ..journal.clone() }, false);
    }

    /// Adds a journal to those that have joined. Without a report, the state of an earlier one stays.
    fn list(&mut self, journal: &JournalInfo, reports: bool) {
        let before = self.journals.iter().position(|known| known.id == journal.id);
        let before = before.map(|at| self.journals.remove(at));
        let has_reported = reports || before.as_ref().is_some_and(|before| before.has_reported);
        let reported = before.as_ref().map_or((0, 0), |before| (before.reports, before.far_mark));
        let far_mark = if reports { journal.far_mark } else { reported.1 };
        let reports = reported.0.wrapping_add(u64::from(reports));
        // A report counts whatever labels its process has, so the labels are made visible instead
        // of rejected.
        let visible = |label: &str| Visible(label).to_string();
        let (owner, host) = (visible(&journal.owner), visible(&journal.host));
        let state = JournalInfo { has_reported, reports, far_mark, ..journal.clone() };
        self.journals.push(JournalInfo { owner, host, ..state });
        // While the store is in doubt no journal is dropped: its missing report would go unnoticed.
        if self.doubt.is_none() && self.journals.len() > JOURNALS_MAX {
            let oldest =
                self.journals.iter().min_by_key(|known| (known.seen_at_ms, known.id.clone()));
            let oldest = oldest.map(|known| known.id.clone());
            self.journals.retain(|known| Some(&known.id) != oldest.as_ref());
        }
        self.journals.sort_by(|one, other| one.id.cmp(&other.id));
    }

    /// Returns the journals without a report.
    pub fn missing(&self) -> impl Iterator<Item = &JournalInfo> {
        self.journals.iter().filter(|journal| !journal.has_reported)
    }

    /// Returns whether this is the same store, and nothing has changed since `before`: a repeated
    /// report adds nothing, and the count and start of a history are no part of it.
    #[must_use]
    pub fn says_the_same(&self, before: &Self) -> bool {
        let is_same_store = History::of(&self.id).store == History::of(&before.id).store;
        let reported = |standing: &Self| {
            let journals = standing.journals.iter();
            journals.map(|journal| (journal.id.clone(), journal.has_reported)).collect::<Vec<_>>()
        };
        is_same_store
            && self.doubt == before.doubt
            && self.known == before.known
            && reported(self) == reported(before)
    }
}
