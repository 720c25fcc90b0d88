//! Journals that know how far a store had come: those that have reported, those that were read, and
//! those that are missing.

use std::fmt;

use super::compare_journal::compare_journal;
use super::{Recovery, RecoveryRequest};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::{Inspected, Record};
use crate::model::history::{History, JournalInfo, Recalled};
use crate::store::Store;

/// State of a journal in a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalState {
    /// It has not been asked: the store is not in doubt, as far as its servers have found.
    NotAsked,
    /// Its server reports what the journal knows.
    Reported,
    /// Its file was read.
    Read,
    /// A file of it was read that may be an old copy.
    ReadCopy,
    /// An operator has named it as lost.
    LeftOut,
    /// Its knowledge is unknown.
    Missing,
    /// Its knowledge is unknown, and only another journal names it: the store has lost its join.
    HeardOf,
}

impl fmt::Display for JournalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAsked => "not asked",
            Self::Reported => "reported",
            Self::Read => "read here",
            Self::ReadCopy => "read here, perhaps an old copy",
            Self::LeftOut => "left out",
            Self::Missing => "MISSING",
            Self::HeardOf => "MISSING, known only from another journal",
        })
    }
}

impl Recovery {
    /// Adds the journals that the read journals name, and checks that every journal to leave out is
    /// known.
    pub(super) fn record_named_journals(&mut self) -> Result<()> {
        for other in self.read.iter().flat_map(|read| &read.record.journals) {
            if self.standing.journals.iter().all(|known| known.id != other.id) {
                self.standing.record_named(other);
            }
        }
        let is_known = |id: &String| self.standing.journals.iter().any(|known| known.id == *id);
        match self.without.iter().find(|id| !is_known(id)) {
            None => Ok(()),
            Some(id) => Err(Error::invalid(format!(
                "journal {id:?} (--without) is unknown to the store and to the journals read; \
                 check the ID"
            ))),
        }
    }

    /// Adds the read journals of another store, which this one may replace. Servers that run belong to
    /// this store, so then there is none. A journal of a third store was named by mistake.
    pub(super) fn record_of_others(&mut self) -> Result<()> {
        let read = self.read.iter().map(|read| &read.record);
        let others: Vec<_> = read.filter(|record| self.is_of_another(record)).cloned().collect();
        let Some(first) = others.first() else { return Ok(()) };
        let store = |record: &Record| History::of(&record.store).store;
        if self.runs && self.standing.doubt.is_some() {
            return Err(Error::invalid(format!(
                "journal {:?} (--journal) is of another store, {}; leave it out. If this store \
                 replaces that one, stop all servers, and use `snowmint worker fast-forward`",
                first.id,
                store(first)
            )));
        }
        if let Some(third) = others.iter().find(|other| store(other) != store(first)) {
            return Err(Error::invalid(format!(
                "journals {:?} and {:?} are of different stores, {} and {}, and neither is this one; \
                 leave out those whose store this one does not replace",
                first.id,
                third.id,
                store(first),
                store(third)
            )));
        }
        let is_whole = self.is_whole();
        for other in others.iter().filter(|_| !is_whole) {
            if self.standing.journals.iter().all(|known| known.id != other.id) {
                let (id, host) = (other.id.clone(), "an unnamed host".to_owned());
                let seen_at_ms = self.now.get();
                let read = JournalInfo { id, host, seen_at_ms, ..JournalInfo::default() };
                self.standing.record_named(&read);
            }
        }
        Ok(())
    }

    /// Returns whether a journal is of another store than this, which exists.
    pub(super) fn is_of_another(&self, record: &Record) -> bool {
        let own = self.planned_on.as_ref().map(|standing| History::of(&standing.id).store);
        let own = own.filter(|own| !own.is_empty() && !record.store.is_empty());
        own.is_some_and(|own| own != History::of(&record.store).store)
    }

    /// Rejects read journals that know more than a store that is not in doubt: its servers mint, and
    /// only a running server that knows as much makes them stop.
    pub(super) async fn compare_read(&self, store: &dyn Store) -> Result<()> {
        for read in self.read.iter().filter(|read| !read.record.store.is_empty()) {
            let record = &read.record;
            let who = format!("journal {}", record.id);
            let compared =
                compare_journal(store, (&who, record), !read.is_perhaps_old, self.now).await;
            let error = match compared {
                Ok((_, None)) => continue,
                Ok((Recalled::Recovered, Some(error))) => {
                    let text = error.message();
                    return Err(Error::invalid(format!(
                        "journal {:?} (--journal) knows more than this store: {text}",
                        record.id
                    )));
                }
                Ok((Recalled::Same, Some(error))) | Err(error) => error,
            };
            let wrong = match error.kind() {
                ErrorKind::StoreRolledBack { evidence, seen, found } => format!(
                    "knows more than this store, which is not in doubt ({evidence}: was {seen}, is \
                     {found}). Start a server with its data directory, which puts the store in \
                     doubt, and run this again without --journal. If it is a program's, stop all \
                     servers, and run snowmint worker fast-forward"
                ),
                ErrorKind::StoreMismatch => {
                    "is of another store; leave it out, or name its own store".into()
                }
                _ => return Err(error),
            };
            return Err(Error::invalid(format!("journal {:?} (--journal) {wrong}", record.id)));
        }
        Ok(())
    }

    /// Checks that no journal is left out of a store that is not in doubt. The store would forget
    /// it, and a later recovery would not miss it.
    pub(super) fn check_left_out(&self, request: &RecoveryRequest) -> Result<()> {
        let raises_values = self.is_whole() && request.has_values();
        match self.without.first().filter(|_| raises_values) {
            None => Ok(()),
            Some(id) => Err(Error::invalid(format!(
                "journal {id:?} cannot be left out (--without), because the store is not in doubt; \
                 name values alone, or leave it out once a server is not ready"
            ))),
        }
    }

    /// Takes journals that an earlier recovery has set aside: no process continues with them, so
    /// that they can report no more. Only those count that the store or a read journal names. Their
    /// own lists are old, and name journals that may have left since.
    #[must_use]
    pub fn with_set_aside(mut self, aside: Vec<Record>) -> Self {
        let is_listed =
            |record: &Record| self.standing.journals.iter().any(|journal| journal.id == record.id);
        let is_read = |record: &Record| self.read.iter().any(|read| read.record.id == record.id);
        let listed = aside.into_iter().filter(|record| is_listed(record) && !is_read(record));
        let listed: Vec<_> =
            listed.map(|record| Record { journals: Vec::new(), ..record }).collect();
        self.set_aside.extend(listed.iter().map(|record| record.id.clone()));
        self.read.extend(listed.into_iter().map(Inspected::from));
        self
    }

    /// Returns the journals that have joined the store.
    pub fn journals(&self) -> impl Iterator<Item = (&JournalInfo, JournalState)> {
        self.standing.journals.iter().map(|journal| (journal, self.state(journal)))
    }

    fn state(&self, journal: &JournalInfo) -> JournalState {
        if self.without.contains(&journal.id) {
            JournalState::LeftOut
        } else if self.is_read_whole(&journal.id) {
            JournalState::Read
        } else if journal.has_reported && !self.is_whole() {
            JournalState::Reported
        } else if self.read.iter().any(|read| read.record.id == journal.id) {
            JournalState::ReadCopy
        } else if self.is_whole() {
            JournalState::NotAsked
        } else if journal.is_heard_of {
            JournalState::HeardOf
        } else {
            JournalState::Missing
        }
    }

    /// Returns the error of missing reports; `None` when all have arrived.
    pub(super) fn unreported(&self) -> Option<String> {
        let is_missing =
            |state: JournalState| matches!(state, JournalState::Missing | JournalState::HeardOf);
        let mut missing = self.journals().filter(|(_, state)| is_missing(*state));
        let (first, _) = missing.next()?;
        let count = missing.count() + 1;
        Some(format!(
            "{count} journals do not report what they know, among them {} of {}: numbers that only they know would repeat. \
             Start their servers, which report by themselves while the store is in doubt, or stop them and name their data \
             directories (--journal DIR), which also hold journals that were set aside. Where one is lost, name it \
             (--without ID), and the highest ID of each source that only it may have known (--segment SOURCE=id:ID)",
            first.id,
            first.of()
        ))
    }
}

impl JournalInfo {
    /// Describes the owner of the journal, for people.
    #[must_use]
    pub fn of(&self) -> String {
        let owner = if self.owner.is_empty() { "an unnamed owner" } else { &self.owner };
        format!("{owner} on {}", self.host)
    }
}
