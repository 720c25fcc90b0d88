//! What a journal holds, and its form in the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::binding::Binding;
use crate::error::Result;
use crate::history::{History, JournalInfo, Known};
use crate::lease::{Mark, Term};
use crate::member::Incarnation;

/// What a journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What the store calls the journal; empty until it has a name.
    pub id: String,
    /// The identity of the store; empty before the first contact.
    pub store: String,
    /// The namespace in it.
    pub namespace: String,
    /// The highest number of writes that the store was seen to have.
    pub writes: u64,
    /// The member that wrote this.
    pub incarnation: Option<Incarnation>,
    /// The members before it, the last at the end. They have ended, and may not have left.
    pub earlier: Vec<Incarnation>,
    /// The other journals that have joined the store, as far as there is room.
    pub journals: Vec<JournalInfo>,
    /// Its leases.
    pub leases: Vec<JournalLease>,
    /// The highest mark of a lease, also of those that are not kept any more; zero where the journal does not say.
    pub mark: Mark,
    /// The end (first number not reserved) of what was ever reserved of each segment source.
    pub segments: BTreeMap<String, Mark>,
    /// The same of what programs have reserved through this process. They give numbers back through others, too, so the
    /// store may have less.
    pub for_programs: BTreeMap<String, Mark>,
    /// No ID from here on was handed out, to the process or to a program, of each source whose numbers are other IDs.
    pub ids: BTreeMap<String, u64>,
    /// The newest version of the catalog that was seen; zero where the journal does not say.
    pub catalog: u64,
    /// Numbers that were reserved and used for nothing, for the next process to use.
    pub tails: Vec<JournalTail>,
    /// The definitions of the snowflake sources that were minted from: those that may be minted from
    /// before the store is met.
    pub sources: BTreeMap<String, KeptSource>,
}

/// Numbers of a segment source that a process had in stock when it stopped, and did not give back.
///
/// They are nobody else's as long as this stands in one journal only, and are used only after it was
/// erased from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalTail {
    /// The source.
    pub source: String,
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// The definition that they were reserved by: under another they are not used.
    pub definition_version: u64,
    /// Which start of the machine they were written in. After another they are not used: a whole machine
    /// that was put back to an older state does not show that it was.
    pub boot: String,
}

/// A source's definition, as the catalog had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptSource {
    /// All keys, as canonical JSON.
    pub spec: String,
    /// The catalog's version when it was last changed.
    pub version: u64,
}

/// A lease, as the journal knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLease {
    /// The pool's name.
    pub pool: String,
    /// The slot.
    pub slot: u64,
    /// The lease's term.
    pub term: Term,
    /// Nothing from here on has left the process.
    pub mark: Mark,
    /// Minting from it has ended for good.
    pub released: bool,
    /// The store had granted this lease everything below, when this was written; zero where the journal
    /// does not say.
    pub granted: Mark,
}

/// What an earlier process left in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// What it wrote last.
    pub record: Record,
    /// Whether the file is surely as it was left, so that its marks may be used as floors. It is not
    /// when somebody changed the file's owner, say, or put an old state in its place and hid it well;
    /// what it witnesses about the store holds either way.
    pub marks_are_sure: bool,
}

/// The definitions, by the names of their sources.
type Sources = BTreeMap<String, KeptSource>;

/// The form in the file. Numbers and names only, so that a person can read it in need. Definitions are written
/// as text that there is already.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content<S = Sources> {
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
    tails: Vec<TailContent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journals: Vec<JournalInfo>,
    // Written only where it is used, so that a version that does not know it can read the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sources: Option<S>,
}

/// The definitions as they stand in the file. They are most of it and hardly ever change, so they are not
/// written out for each write.
#[derive(Debug, Default)]
pub(super) struct SourcesText {
    sources: Sources,
    text: Option<Box<RawValue>>,
}

impl SourcesText {
    /// None where there are none.
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
struct TailContent {
    source: String,
    first: u64,
    last: u64,
    definition_version: u64,
    boot: String,
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

impl<'a> Content<&'a RawValue> {
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
            tails: record
                .tails
                .iter()
                .map(|tail| TailContent {
                    source: tail.source.clone(),
                    first: tail.first,
                    last: tail.last,
                    definition_version: tail.definition_version,
                    boot: tail.boot.clone(),
                })
                .collect(),
        })
    }
}

impl Record {
    /// How far the store had come, as this knows it.
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

impl Content {
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
        let tail = |tail: TailContent| JournalTail {
            source: tail.source,
            first: tail.first,
            last: tail.last,
            definition_version: tail.definition_version,
            boot: tail.boot,
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
            tails: self.tails.into_iter().map(tail).collect(),
            sources: self.sources.unwrap_or_default(),
        })
    }
}
