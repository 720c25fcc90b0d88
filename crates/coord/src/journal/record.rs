//! Content of a journal, and its form in the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::binding::Binding;
use crate::error::Result;
use crate::ids::{Incarnation, Mark, Term};
use crate::model::history::{History, JournalInfo, Known};

/// Content of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Name of the journal in the store; empty until it has one.
    pub id: String,
    /// Identity of the store; empty before the first contact.
    pub store: String,
    /// Namespace in the store.
    pub namespace: String,
    /// Highest number of writes seen in the store.
    pub writes: u64,
    /// Member that wrote this record.
    pub incarnation: Option<Incarnation>,
    /// Earlier members, newest last. They have ended, perhaps without leaving the store.
    pub earlier: Vec<Incarnation>,
    /// Other journals that have joined the store, as many as fit.
    pub journals: Vec<JournalInfo>,
    /// Leases of the member.
    pub leases: Vec<JournalLease>,
    /// Highest mark of a lease, including leases no longer listed; zero where the journal does not
    /// have it.
    pub mark: Mark,
    /// End (first number never reserved) of all reservations, for each segment source.
    pub segments: BTreeMap<String, Mark>,
    /// Ends of reservations of which the store may have less. Embedded clients through this process
    /// also give numbers back through other servers; and a journal may be a restored older state.
    pub for_programs: BTreeMap<String, Mark>,
    /// First ID never issued to the process or an embedded client, for each source with IDs that
    /// differ from its numbers.
    pub ids: BTreeMap<String, u64>,
    /// Newest catalog version seen; zero where the journal does not have it.
    pub catalog: u64,
    /// Reserved and unused numbers, left for the next process.
    pub tails: Vec<JournalTail>,
    /// Definitions of the snowflake sources with minted IDs: these sources may mint offline, before
    /// the store is reached.
    pub sources: BTreeMap<String, SavedDefinition>,
}

/// Prefetched numbers of a segment source that a process had when it stopped, and did not give
/// back.
///
/// They belong to this journal alone as long as no second journal lists them. A process uses them
/// only after it erased them from the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalTail {
    /// The source.
    pub source: String,
    /// First number.
    pub first: u64,
    /// Last number.
    pub last: u64,
    /// Version of the definition that they were reserved under; under another version they are not
    /// used.
    pub definition_version: u64,
    /// Boot of the machine in which they were written. They are not used after another boot: a
    /// whole machine that was restored to an older state shows no trace of the restore.
    pub boot: String,
}

/// Definition of a source, as the catalog had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedDefinition {
    /// All keys, as canonical JSON.
    pub spec: String,
    /// Catalog version at its last change.
    pub version: u64,
}

/// Lease, as recorded in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLease {
    /// Name of the pool.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// Term of the lease.
    pub term: Term,
    /// Mark at or above which no ID has left the process.
    pub mark: Mark,
    /// Whether minting from the lease has ended for good.
    pub released: bool,
    /// Mark that the store had granted this lease when the record was written; zero where the
    /// journal does not have it.
    pub granted: Mark,
}

/// State that an earlier process left in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Last record of that process.
    pub record: Record,
    /// Whether the file is surely as it was left, so that its marks may be used as floors. It is
    /// not, for example, when an operator changed the file's owner, or restored an old state and
    /// hid it well. Its evidence about the store holds in either case.
    pub marks_are_sure: bool,
}

/// Definitions, by the names of their sources.
type Sources = BTreeMap<String, SavedDefinition>;

/// Form in the file. It has only numbers and names, so that an operator can read it if necessary.
/// Definitions are written from cached text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalContent<S = Sources> {
    pub(super) binding: Binding,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    id: String,
    store: String,
    namespace: String,
    writes: u64,
    incarnation: Option<String>,
    leases: Vec<LeaseContent>,
    #[serde(default, skip_serializing_if = "is_zero")]
    mark: u64,
    segments: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    for_programs: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ids: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    catalog: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tails: Vec<JournalTail>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journals: Vec<JournalInfo>,
    // The field is written only where it is used, so that versions that do not know it can read
    // other journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sources: Option<S>,
}

/// Cached text of the definitions. They are most of the file and hardly ever change, so they are
/// not serialized for each write.
#[derive(Debug, Default)]
pub(super) struct SourcesText {
    sources: Sources,
    text: Option<Box<RawValue>>,
}

impl SourcesText {
    /// Returns the text, or `None` where there are no definitions.
    fn of(&mut self, sources: &Sources) -> serde_json::Result<Option<&RawValue>> {
        if self.sources != *sources {
            let text = (!sources.is_empty()).then(|| to_raw_value(sources)).transpose()?;
            *self = Self { sources: sources.clone(), text };
        }
        Ok(self.text.as_deref())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseContent {
    pool: String,
    slot: u64,
    term: u64,
    mark: u64,
    released: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    granted: Option<u64>,
}

impl<'a> JournalContent<&'a RawValue> {
    pub(super) fn new(
        binding: Binding,
        record: &Record,
        text: &'a mut SourcesText,
    ) -> serde_json::Result<Self> {
        Ok(Self {
            binding,
            id: record.id.clone(),
            store: record.store.clone(),
            namespace: record.namespace.clone(),
            writes: record.writes,
            incarnation: record.incarnation.map(|incarnation| incarnation.to_string()),
            earlier: record.earlier.iter().map(ToString::to_string).collect(),
            journals: record.journals.clone(),
            leases: record
                .leases
                .iter()
                .map(|lease| LeaseContent {
                    pool: lease.pool.clone(),
                    slot: lease.slot,
                    term: lease.term.get(),
                    mark: lease.mark.get(),
                    released: lease.released,
                    granted: (lease.granted > Mark::ZERO).then(|| lease.granted.get()),
                })
                .collect(),
            mark: record.mark.get(),
            sources: text.of(&record.sources)?,
            segments: numbers(&record.segments),
            for_programs: numbers(&record.for_programs),
            ids: record.ids.clone(),
            catalog: record.catalog,
            tails: record.tails.clone(),
        })
    }
}

impl Record {
    /// Records that this may be a restored older state: unused numbers may have gone back to the
    /// store since. The ends stay, for reports: the store may be restored, too.
    pub(crate) fn doubt_ends(&mut self) {
        for (name, end) in std::mem::take(&mut self.segments) {
            let known = self.for_programs.entry(name).or_default();
            *known = end.max(*known);
        }
    }

    /// Returns the progress of the store as this record knows it.
    #[must_use]
    pub fn known(&self) -> Known {
        let mut known = Known {
            mark: self
                .leases
                .iter()
                .map(|lease| lease.mark.max(lease.granted).get())
                .fold(self.mark.get(), u64::max),
            ends: numbers(&self.segments),
            ids: self.ids.clone(),
            writes: self.writes,
            recoveries: History::of(&self.store).recoveries,
            catalog: self.catalog,
            journals: self.journals.clone(),
        };
        known.merge(&Known { ends: numbers(&self.for_programs), ..Known::default() });
        known
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn numbers(ends: &BTreeMap<String, Mark>) -> BTreeMap<String, u64> {
    ends.iter().map(|(name, end)| (name.clone(), end.get())).collect()
}

impl JournalContent {
    pub(super) fn into_record(self) -> Result<Record> {
        let incarnation = self.incarnation.map(|text| text.parse()).transpose()?;
        let earlier = self.earlier.iter().map(|text| text.parse());
        let earlier = earlier.collect::<Result<_>>()?;
        let lease = |lease: LeaseContent| JournalLease {
            pool: lease.pool,
            slot: lease.slot,
            term: Term::new(lease.term),
            mark: Mark::new(lease.mark),
            released: lease.released,
            granted: lease.granted.map_or(Mark::ZERO, Mark::new),
        };
        let marks = |ends: BTreeMap<String, u64>| {
            ends.into_iter().map(|(name, end)| (name, Mark::new(end))).collect()
        };
        Ok(Record {
            id: self.id,
            store: self.store,
            namespace: self.namespace,
            writes: self.writes,
            incarnation,
            earlier,
            journals: self.journals,
            leases: self.leases.into_iter().map(lease).collect(),
            mark: Mark::new(self.mark),
            segments: marks(self.segments),
            for_programs: marks(self.for_programs),
            ids: self.ids,
            catalog: self.catalog,
            tails: self.tails,
            sources: self.sources.unwrap_or_default(),
        })
    }
}
