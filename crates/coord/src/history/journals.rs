//! What journals know of a store, as it is collected there before an operator recovers it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Doubt;
use crate::label::Visible;
use crate::store::FastForward;

/// How many journals a store remembers: those that joined last.
pub const JOURNALS_MAX: usize = 256;

/// How far a store has come, as somebody knows it. Each is a maximum: two reports together know the larger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// The highest mark of a worker number.
    pub mark: u64,
    /// The next number of each source.
    pub ends: BTreeMap<String, u64>,
    /// No ID from here on was handed out, of each source whose numbers are other IDs: the store may have lost by which
    /// stripe they became these.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ids: BTreeMap<String, u64>,
    /// The count of writes.
    pub writes: u64,
    /// How often the store was recovered.
    pub recoveries: u64,
    /// The version of the catalog.
    pub catalog: u64,
    /// The other journals that had joined, of which a store that was put back may not know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub journals: Vec<JournalInfo>,
}

impl Known {
    /// Takes in what another knows of the store, but not of other journals.
    pub fn merge(&mut self, other: &Self) {
        self.mark = self.mark.max(other.mark);
        self.writes = self.writes.max(other.writes);
        self.recoveries = self.recoveries.max(other.recoveries);
        self.catalog = self.catalog.max(other.catalog);
        raise(&mut self.ends, &other.ends);
        raise(&mut self.ids, &other.ids);
    }
}

/// Each is a maximum.
fn raise(known: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    for (name, other) in others {
        let known = known.entry(name.clone()).or_default();
        *known = (*known).max(*other);
    }
}

/// A journal that has joined a store, as the store remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalInfo {
    /// Its own name, at random; an owner may have several.
    pub id: String,
    /// The label of the process that has it.
    pub owner: String,
    /// Where that runs.
    pub host: String,
    /// When it joined or reported last, in Unix milliseconds by the clock of its process.
    pub seen_at_ms: u64,
    /// What it knows has been reported, since the store is in doubt.
    #[serde(default)]
    pub has_reported: bool,
    /// The store has lost its join, if it ever had it: a report of another journal tells of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_heard_of: bool,
}

/// What one takes as a text, beside its names.
const JOURNAL_BYTES: usize = 120;

impl JournalInfo {
    /// Those that were seen last, as far as they fit into so many bytes; what they have reported is left out.
    #[must_use]
    pub fn fitting(mut journals: Vec<Self>, bytes_max: usize) -> Vec<Self> {
        journals.sort_by_key(|journal| std::cmp::Reverse(journal.seen_at_ms));
        let mut room = bytes_max;
        journals.retain_mut(|journal| {
            (journal.has_reported, journal.is_heard_of) = (false, false);
            let left = room.checked_sub(journal.owner.len() + journal.host.len() + JOURNAL_BYTES);
            room = left.unwrap_or(0);
            left.is_some()
        });
        journals
    }
}

/// Whether a store is in doubt, and what journals have said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The store's identity, in its history: [`StoreIdentity::id`](crate::StoreIdentity::id).
    pub id: String,
    /// Why it is; none when it is not.
    pub doubt: Option<Doubt>,
    /// The journals that have joined, by their names.
    pub journals: Vec<JournalInfo>,
    /// All that was reported.
    pub known: Known,
}

impl Standing {
    /// Puts the store in doubt, unless it is.
    pub fn begin(&mut self, doubt: &Doubt) {
        if self.doubt.is_none() {
            self.doubt = Some(doubt.clone());
            self.forget_reports();
        }
    }

    fn forget_reports(&mut self) {
        self.journals.iter_mut().for_each(|journal| journal.has_reported = false);
        self.known = Known::default();
    }

    /// Takes in what a journal says: what it knows only while the store is in doubt, as it may know more by the next time.
    /// Without an ID it is a process that keeps none: what it knows counts, and nobody misses it.
    pub fn hear(&mut self, journal: &JournalInfo, known: Option<&Known>) {
        let known = known.filter(|_| self.doubt.is_some());
        if !journal.id.is_empty() {
            self.list(journal, known.is_some());
        }
        if let Some(known) = known {
            self.known.merge(known);
            let is_new = |other: &&JournalInfo| self.journals.iter().all(|it| it.id != other.id);
            let others: Vec<_> = known.journals.iter().filter(is_new).cloned().collect();
            others.iter().for_each(|other| self.hear_of(other));
        }
    }

    /// Takes in that a journal is there, which has not said so itself.
    pub fn hear_of(&mut self, journal: &JournalInfo) {
        self.list(&JournalInfo { is_heard_of: true, ..journal.clone() }, false);
    }

    /// Keeps a journal among those that have joined.
    fn list(&mut self, journal: &JournalInfo, reports: bool) {
        let before = self.journals.iter().position(|known| known.id == journal.id);
        let before = before.map(|at| self.journals.remove(at));
        let has_reported = reports || before.is_some_and(|before| before.has_reported);
        // What a journal knows counts, whatever its process is called.
        let visible = |label: &str| Visible(label).to_string();
        let (owner, host) = (visible(&journal.owner), visible(&journal.host));
        self.journals.push(JournalInfo { has_reported, owner, host, ..journal.clone() });
        // In doubt, one that was forgotten would not be missed.
        if self.doubt.is_none() && self.journals.len() > JOURNALS_MAX {
            let oldest =
                self.journals.iter().min_by_key(|known| (known.seen_at_ms, known.id.clone()));
            let oldest = oldest.map(|known| known.id.clone());
            self.journals.retain(|known| Some(&known.id) != oldest.as_ref());
        }
        self.journals.sort_by(|one, other| one.id.cmp(&other.id));
    }

    /// The journals whose reports are missing.
    pub fn missing(&self) -> impl Iterator<Item = &JournalInfo> {
        self.journals.iter().filter(|journal| !journal.has_reported)
    }

    /// Whether the same is known as was then: a journal that reports again says nothing new.
    #[must_use]
    pub fn says_the_same(&self, before: &Self) -> bool {
        let said = |standing: &Self| {
            let journals = standing.journals.iter();
            journals.map(|journal| (journal.id.clone(), journal.has_reported)).collect::<Vec<_>>()
        };
        self.doubt == before.doubt && self.known == before.known && said(self) == said(before)
    }

    /// The store was moved forward: what was reported has been done.
    pub fn end(&mut self, forward: &FastForward) {
        self.doubt = None;
        self.journals.retain(|journal| !forward.forget_journals.contains(&journal.id));
        self.forget_reports();
    }
}
